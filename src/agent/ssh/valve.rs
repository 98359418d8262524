//! Flow control of what clients send.
//!
//! russh grants a channel new window as soon as data arrives, whether or not the program reads
//! its input, and stops the whole connection (output too) when a handler waits. Either is wrong:
//! memory without bound, or a program that waits for its output to be taken while the connection
//! waits for the program to read. So the handler never waits, and the window is steered by the
//! one value russh lets us choose, the window a grant fills up to:
//!
//! - While every program keeps up, a grant fills up to `WINDOW_BYTES`.
//! - Once an `Input` holds more than `HIGH_BYTES`, grants fill up to `TRICKLE_BYTES` only. The
//!   client uses up its window, then may send two bytes for every two received. (Not none: russh
//!   grants only when something arrives, so a channel without window would be stuck for good.)
//! - After each such drop the `Gate` pauses reading from the client for a moment, so the trickle
//!   costs nothing. Window adjustments and keystrokes of other channels pass between the pauses,
//!   so output flows on.
//!
//! An input holds at most about `HIGH_BYTES` and one and a half windows; a client that ignores
//! its window is cut off at `INPUT_BYTES_MAX`. The trickle is the connection's, not the
//! channel's: with several channels on one connection, input to all of them slows while one
//! program does not read.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// The window of a channel whose program keeps up.
pub(super) const WINDOW_BYTES: u32 = 1 << 20;
/// The smallest target from which russh still grants anything.
const TRICKLE_BYTES: u32 = 2;
const TRICKLE_PAUSE: Duration = Duration::from_millis(20);
const HIGH_BYTES: usize = 512 << 10;
const LOW_BYTES: usize = 128 << 10;
const INPUT_BYTES_MAX: usize = 64 << 20;
/// What is read ahead at most: all that one flooding channel's window allows, and some more.
const AHEAD_BYTES_MAX: usize = 2 << 20;
/// Small packets are put together up to this size.
const CHUNK_BYTES: usize = 32 << 10;

/// What one connection's channels and its transport know of each other.
#[derive(Debug)]
pub(super) struct Valve {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Inputs above their mark.
    full: usize,
    paused_until: Option<Instant>,
    /// None once the client has logged in.
    login_by: Option<Instant>,
    reader: Option<Waker>,
}

/// What a client has sent and the program has not read yet.
#[derive(Debug)]
pub(super) struct Input {
    valve: Arc<Valve>,
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Counted in `State::full`.
    is_full: bool,
    is_ended: bool,
    /// The program reads no more: what comes is dropped.
    is_unread: bool,
}

/// The client has sent more than its windows allow.
#[derive(Debug)]
pub(super) struct Overflow;

/// A connection's transport, with pauses, and a deadline until the client has logged in.
///
/// russh does not read while it waits to write. A client that does the same would wait with us
/// for ever, each for the other to read; so while a write waits, the gate reads ahead.
#[derive(Debug)]
pub(super) struct Gate<S> {
    stream: S,
    ahead: VecDeque<u8>,
    valve: Arc<Valve>,
    timer: Pin<Box<Sleep>>,
}

impl Valve {
    /// The client has so long to log in.
    pub(super) fn new(login_max: Duration) -> Self {
        let login_by = Some(Instant::now() + login_max);
        Self { state: Mutex::new(State { full: 0, paused_until: None, login_by, reader: None }) }
    }

    pub(super) fn logged_in(&self) {
        self.state().login_by = None;
    }

    /// A channel was just filled up to `filled_to`: what the next grant fills up to.
    pub(super) fn next_window(&self, filled_to: u32) -> u32 {
        let mut state = self.state();
        if state.full == 0 {
            return WINDOW_BYTES;
        }
        if filled_to == TRICKLE_BYTES {
            state.paused_until = Some(Instant::now() + TRICKLE_PAUSE);
        }
        TRICKLE_BYTES
    }

    fn one_fuller(&self) {
        self.state().full += 1;
    }

    fn one_emptier(&self) {
        let mut state = self.state();
        state.full -= 1;
        if state.full == 0 {
            state.paused_until = None;
            if let Some(reader) = state.reader.take() {
                reader.wake();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Input {
    pub(super) fn new(valve: Arc<Valve>) -> Self {
        Self { valve, held: Mutex::default(), changed: Notify::new() }
    }

    /// Takes what the client sent. Never waits.
    pub(super) fn push(&self, data: &[u8]) -> Result<(), Overflow> {
        let mut held = self.held();
        if held.is_unread || held.is_ended {
            return Ok(());
        }
        match held.chunks.back_mut().filter(|last| last.len() + data.len() <= CHUNK_BYTES) {
            Some(last) => last.extend_from_slice(data),
            None => held.chunks.push_back(data.to_vec()),
        }
        held.bytes += data.len();
        if held.bytes > HIGH_BYTES && !held.is_full {
            held.is_full = true;
            self.valve.one_fuller();
        }
        self.changed.notify_one();
        if held.bytes > INPUT_BYTES_MAX { Err(Overflow) } else { Ok(()) }
    }

    /// The client sends no more.
    pub(super) fn end(&self) {
        self.held().is_ended = true;
        self.changed.notify_one();
    }

    /// The next bytes for the program; None at the end.
    pub(super) async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut held = self.held();
                if let Some(chunk) = held.chunks.pop_front() {
                    held.bytes -= chunk.len();
                    self.note_emptier(&mut held);
                    return Some(chunk);
                }
                if held.is_ended {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// The program reads no more.
    pub(super) fn stop(&self) {
        let mut held = self.held();
        held.is_unread = true;
        held.chunks.clear();
        held.bytes = 0;
        self.note_emptier(&mut held);
    }

    fn note_emptier(&self, held: &mut Held) {
        if held.is_full && held.bytes <= LOW_BYTES {
            held.is_full = false;
            self.valve.one_emptier();
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<S> Gate<S> {
    pub(super) fn new(stream: S, valve: Arc<Valve>) -> Self {
        Self { stream, ahead: VecDeque::new(), valve, timer: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }

    /// Ready when reading may go on; an error when the time to log in is over.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let now = Instant::now();
            let (paused_until, login_by) = {
                let mut state = self.valve.state();
                state.paused_until.take_if(|until| *until <= now);
                if state.paused_until.is_some() {
                    state.reader = Some(context.waker().clone());
                }
                (state.paused_until, state.login_by)
            };
            if login_by.is_some_and(|by| by <= now) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let Some(wake_at) = paused_until.into_iter().chain(login_by).min() else {
                return Poll::Ready(Ok(()));
            };
            self.timer.as_mut().reset(wake_at);
            match (self.timer.as_mut().poll(context), paused_until) {
                (Poll::Ready(()), _) => {}
                (Poll::Pending, Some(_)) => return Poll::Pending,
                (Poll::Pending, None) => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Gate<S> {
    /// Takes in what has arrived. An end or an error is left for the next read to see.
    fn read_ahead(&mut self, context: &mut Context<'_>) {
        let mut bytes = [0; 16 << 10];
        while self.ahead.len() < AHEAD_BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.ahead.extend(buffer.filled()),
                Poll::Ready(_) | Poll::Pending => return,
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?;
        let count = self.ahead.len().min(buffer.remaining());
        if count > 0 {
            buffer.put_slice(&self.ahead.drain(..count).collect::<Vec<u8>>());
            if self.ahead.is_empty() {
                self.ahead = VecDeque::new();
            }
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_pending() {
            self.read_ahead(context);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn input_comes_out_as_it_went_in_and_then_ends() {
        let input = Input::new(Arc::new(Valve::new(HOUR)));
        input.push(b"ab").expect("room");
        input.push(b"c").expect("room");
        input.end();
        assert_eq!(input.next().await.as_deref(), Some(&b"abc"[..]));
        assert_eq!(input.next().await, None);
    }

    #[tokio::test]
    async fn a_full_input_narrows_the_window_until_it_is_read_or_dropped() {
        let valve = Arc::new(Valve::new(HOUR));
        let (input, other) = (Input::new(valve.clone()), Input::new(valve.clone()));
        assert_eq!(valve.next_window(WINDOW_BYTES), WINDOW_BYTES);
        input.push(&vec![0; HIGH_BYTES + 1]).expect("room");
        assert_eq!(valve.next_window(WINDOW_BYTES), TRICKLE_BYTES);
        other.push(&vec![0; HIGH_BYTES + 1]).expect("room");
        assert_eq!(input.next().await.map(|chunk| chunk.len()), Some(HIGH_BYTES + 1));
        assert_eq!(valve.next_window(TRICKLE_BYTES), TRICKLE_BYTES);
        drop(other);
        assert_eq!(valve.next_window(TRICKLE_BYTES), WINDOW_BYTES);
    }

    #[test]
    fn a_client_that_ignores_its_window_is_cut_off() {
        let input = Input::new(Arc::new(Valve::new(HOUR)));
        let mebibyte = vec![0; 1 << 20];
        let taken = (0..1000).take_while(|_| input.push(&mebibyte).is_ok()).count();
        assert_eq!(taken, INPUT_BYTES_MAX >> 20);
        input.stop();
        assert!(input.push(&mebibyte).is_ok());
    }

    /// Looks once whether a byte can be read.
    fn glance(gate: &mut Gate<&[u8]>) -> Poll<io::Result<()>> {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(gate).poll_read(&mut context, &mut ReadBuf::new(&mut byte))
    }

    #[tokio::test]
    async fn reading_pauses_after_a_drop_and_goes_on_at_once_when_the_input_is_read() {
        let valve = Arc::new(Valve::new(HOUR));
        let input = Input::new(valve.clone());
        let mut gate = Gate::new(&b"xyz"[..], valve.clone());
        input.push(&vec![0; HIGH_BYTES + 1]).expect("room");
        assert!(glance(&mut gate).is_ready());
        valve.next_window(TRICKLE_BYTES);
        assert!(glance(&mut gate).is_pending());
        input.next().await.expect("something");
        assert!(glance(&mut gate).is_ready());
    }

    #[tokio::test]
    async fn two_sides_that_both_write_first_do_not_wait_for_each_other_for_ever() {
        const BYTES: usize = 1 << 20;
        let (mut client, stream) = tokio::io::duplex(64);
        let mut gate = Gate::new(stream, Arc::new(Valve::new(HOUR)));
        let both_ways = |fill: u8| (vec![fill; BYTES], vec![0; BYTES]);
        let ((ours, mut got), (theirs, mut client_got)) = (both_ways(1), both_ways(2));
        let serving = async {
            gate.write_all(&ours).await?;
            gate.read_exact(&mut got).await
        };
        let asking = async {
            client.write_all(&theirs).await?;
            client.read_exact(&mut client_got).await
        };
        tokio::try_join!(serving, asking).expect("both went through");
        assert!(got == theirs && client_got == ours);
    }

    #[tokio::test]
    async fn a_pause_ends_by_itself() {
        let valve = Arc::new(Valve::new(HOUR));
        let input = Input::new(valve.clone());
        let mut gate = Gate::new(&b"x"[..], valve.clone());
        input.push(&vec![0; HIGH_BYTES + 1]).expect("room");
        valve.next_window(TRICKLE_BYTES);
        assert_eq!(gate.read_u8().await.expect("read"), b'x');
    }

    #[tokio::test]
    async fn a_client_that_does_not_log_in_in_time_is_cut_off_and_one_that_did_is_not() {
        let (_silent, stream) = tokio::io::duplex(64);
        let mut gate = Gate::new(stream, Arc::new(Valve::new(Duration::from_millis(1))));
        let error = gate.read_u8().await.expect_err("cut off");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let valve = Arc::new(Valve::new(Duration::ZERO));
        valve.logged_in();
        assert_eq!(Gate::new(&b"x"[..], valve).read_u8().await.expect("read"), b'x');
    }
}
