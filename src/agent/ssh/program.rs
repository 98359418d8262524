//! One running session: a child, its streams, and the end it came to.
//!
//! The session is over when the program has ended and its output is drained, as sshd does it: a
//! background process that keeps the output open keeps the session open. When the client goes
//! first, the program's process group gets SIGHUP and its streams are closed.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use russh::server::{Handle, Msg};
use russh::{ChannelWriteHalf, Sig};
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;

use super::valve::Input;
use crate::sys::session::{self, Terminal};

/// The extended data type of standard error (RFC 4254, 5.2).
const STANDARD_ERROR: u32 = 1;
const CHUNK_BYTES: usize = 32 << 10;

/// What a client asks of a running session. The client is gone when the sender is.
#[derive(Debug)]
pub(super) enum Order {
    Signal(Signal),
    Resize(Winsize),
}

/// A child and how to talk to it.
#[derive(Debug)]
pub(super) enum Program {
    Piped(Child),
    OnTerminal(Child, Terminal),
}

/// The client's side of a session.
#[derive(Debug)]
pub(super) struct Client {
    pub channel: ChannelWriteHalf<Msg>,
    pub handle: Handle,
    pub input: std::sync::Arc<Input>,
    pub orders: mpsc::Receiver<Order>,
}

/// Serves the session until both sides are done.
pub(super) async fn serve(program: Program, mut client: Client) {
    let Client { channel, handle, input, orders } = &mut client;
    let status = match program {
        Program::Piped(mut child) => {
            let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let output = async {
                tokio::try_join!(copy(stdout, channel, None), copy(stderr, channel, Some(STANDARD_ERROR)))
                    .map(|_| ())
            };
            follow(&mut child, feed(stdin, input), output, orders, |_| ()).await
        }
        Program::OnTerminal(mut child, terminal) => {
            let output = show(&terminal, channel);
            let resize = |size| drop(terminal.resize(size));
            follow(&mut child, type_in(&terminal, input), output, orders, resize).await
        }
    };
    if let Some(status) = status {
        // The client may be gone by now: then nobody is left to be told.
        drop(report(channel, handle, status).await);
    }
}

/// Waits for the end of child and output. None if the client went first.
async fn follow(
    child: &mut Child,
    feeding: impl Future<Output = ()>,
    output: impl Future<Output = Result<(), russh::Error>>,
    orders: &mut mpsc::Receiver<Order>,
    resize: impl Fn(Winsize),
) -> Option<ExitStatus> {
    tokio::pin!(feeding, output);
    let (mut is_fed, mut is_drained, mut status) = (false, false, None);
    loop {
        if let (Some(status), true) = (status, is_drained) {
            return Some(status);
        }
        tokio::select! {
            () = &mut feeding, if !is_fed => is_fed = true,
            drained = &mut output, if !is_drained => match drained {
                Ok(()) => is_drained = true,
                Err(_) => break,
            },
            ended = child.wait(), if status.is_none() => match ended {
                Ok(ended) => status = Some(ended),
                Err(_) => break,
            },
            order = orders.recv() => match order {
                Some(Order::Signal(signal)) => session::signal(child, signal),
                Some(Order::Resize(size)) => resize(size),
                None => break,
            },
        }
    }
    session::signal(child, Signal::HUP);
    None
}

/// Tells the client how the program ended, and closes the channel.
async fn report(
    channel: &ChannelWriteHalf<Msg>,
    handle: &Handle,
    status: ExitStatus,
) -> Result<(), russh::Error> {
    channel.eof().await?;
    match (status.code(), status.signal()) {
        (Some(code), _) => channel.exit_status(code.cast_unsigned()).await?,
        (None, signal) => {
            let (name, no_text) = (signal_name(signal.unwrap_or_default()), String::new());
            let told = handle.exit_signal_request(
                channel.id(),
                name,
                status.core_dumped(),
                no_text.clone(),
                no_text,
            );
            told.await.map_err(|()| russh::Error::SendError)?;
        }
    }
    channel.close().await
}

/// Gives the program what the client sends, then the end of it.
async fn feed(stdin: Option<ChildStdin>, input: &Input) {
    if let Some(mut stdin) = stdin {
        while let Some(chunk) = input.next().await {
            if stdin.write_all(&chunk).await.is_err() {
                break;
            }
        }
    }
    input.stop();
}

/// Sends the client what the program writes.
async fn copy<R: AsyncRead + Unpin>(
    source: Option<R>,
    channel: &ChannelWriteHalf<Msg>,
    extended: Option<u32>,
) -> Result<(), russh::Error> {
    let Some(mut source) = source else {
        return Ok(());
    };
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let count = source.read(&mut buffer).await.unwrap_or(0);
        let data = buffer[..count].to_vec();
        match extended {
            _ if count == 0 => return Ok(()),
            None => channel.data_bytes(data).await?,
            Some(extended) => channel.extended_data_bytes(extended, data).await?,
        }
    }
}

/// Sends the client what appears on the terminal.
async fn show(terminal: &Terminal, channel: &ChannelWriteHalf<Msg>) -> Result<(), russh::Error> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match terminal.read(&mut buffer).await.unwrap_or(0) {
            0 => return Ok(()),
            count => channel.data_bytes(buffer[..count].to_vec()).await?,
        }
    }
}

/// Types what the client sends; at its end, what a person would type there.
async fn type_in(terminal: &Terminal, input: &Input) {
    while let Some(chunk) = input.next().await {
        if type_all(terminal, &chunk).await.is_err() {
            break;
        }
    }
    if let Ok(line) = rustix::termios::tcgetattr(terminal.line())
        && line.local_modes.contains(LocalModes::ICANON)
    {
        drop(type_all(terminal, &[line.special_codes[SpecialCodeIndex::VEOF]]).await);
    }
    input.stop();
}

async fn type_all(terminal: &Terminal, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = terminal.write(bytes).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// The signal of that name; `USR2` has a name in RFC 4254 too, though not in russh.
pub(super) fn signal_of(name: &Sig) -> Option<Signal> {
    Some(match name {
        Sig::ABRT => Signal::ABORT,
        Sig::ALRM => Signal::ALARM,
        Sig::FPE => Signal::FPE,
        Sig::HUP => Signal::HUP,
        Sig::ILL => Signal::ILL,
        Sig::INT => Signal::INT,
        Sig::KILL => Signal::KILL,
        Sig::PIPE => Signal::PIPE,
        Sig::QUIT => Signal::QUIT,
        Sig::SEGV => Signal::SEGV,
        Sig::TERM => Signal::TERM,
        Sig::USR1 => Signal::USR1,
        Sig::Custom(name) if name == "USR2" => Signal::USR2,
        Sig::Custom(_) => return None,
    })
}

/// The name of a signal that a program died of.
fn signal_name(number: i32) -> Sig {
    match Signal::from_named_raw(number) {
        Some(Signal::ABORT) => Sig::ABRT,
        Some(Signal::ALARM) => Sig::ALRM,
        Some(Signal::FPE) => Sig::FPE,
        Some(Signal::HUP) => Sig::HUP,
        Some(Signal::ILL) => Sig::ILL,
        Some(Signal::INT) => Sig::INT,
        Some(Signal::KILL) => Sig::KILL,
        Some(Signal::PIPE) => Sig::PIPE,
        Some(Signal::QUIT) => Sig::QUIT,
        Some(Signal::SEGV) => Sig::SEGV,
        Some(Signal::TERM) => Sig::TERM,
        Some(Signal::USR1) => Sig::USR1,
        Some(Signal::USR2) => Sig::Custom("USR2".to_owned()),
        // The form that RFC 4254 gives to names of one's own.
        Some(_) | None => Sig::Custom(format!("{number}@ringleader.dev")),
    }
}
