//! A plain thread that notices an arbiter or a committer that hangs: a handler that never returns
//! blocks all actors beside it, and nothing inside actix would notice.
//!
//! Each arbiter beats as its thread wakes and as it goes to sleep. The first beat of a quiet daemon
//! rouses the watchdog, which then looks every few seconds until all sleep again, and sleeps
//! itself, without a timeout: an idle daemon wakes for nobody. An arbiter that has been awake with
//! no beat since the last look is pinged: one that is merely busy answers between two handlers.
//! systemd's watchdog, where there is one, is fed only while nothing hangs. Members outlive either.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use actix::ArbiterHandle;

/// Between two looks while something is at work.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long an arbiter may take to answer.
const ARBITER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a submission may wait for the disk: as long as the clients that wait for its answer.
const COMMITTER_PATIENCE: Duration = Duration::from_secs(30);

/// What does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    Arbiter(usize),
    Committer,
}

/// The heartbeats of all arbiters. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Heart(Arc<Chambers>);

#[derive(Debug)]
struct Chambers {
    /// Odd while the arbiter's thread is awake.
    beats: Vec<AtomicU64>,
    /// Somebody woke since the watchdog last looked.
    roused: AtomicBool,
    watchdog: OnceLock<Thread>,
}

impl Heart {
    /// For so many arbiters, all awake: their threads have not slept yet.
    #[must_use]
    pub fn new(arbiters: usize) -> Self {
        let beats = (0..arbiters).map(|_| AtomicU64::new(1)).collect();
        Self(Arc::new(Chambers { beats, roused: AtomicBool::new(true), watchdog: OnceLock::new() }))
    }

    /// The arbiter's thread goes to sleep.
    pub fn sleeps(&self, arbiter: usize) {
        self.0.beats[arbiter].fetch_add(1, Ordering::SeqCst);
    }

    /// The arbiter's thread has woken. Costs two atomic operations; a wake-up only where the
    /// watchdog sleeps.
    pub fn wakes(&self, arbiter: usize) {
        self.0.beats[arbiter].fetch_add(1, Ordering::SeqCst);
        if !self.0.roused.swap(true, Ordering::SeqCst)
            && let Some(watchdog) = self.0.watchdog.get()
        {
            watchdog.unpark();
        }
    }

    /// Sleeps until somebody has woken since the last look.
    fn wait(&self) {
        while !self.0.roused.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    /// The beats now. Who wakes from here on rouses the watchdog anew.
    fn look(&self) -> Vec<u64> {
        self.0.roused.store(false, Ordering::SeqCst);
        self.0.beats.iter().map(|beats| beats.load(Ordering::SeqCst)).collect()
    }
}

/// Starts the thread. `unwritten` says how long the oldest submission has waited for the disk;
/// `on_stuck` is told what does not answer, and should end the process. With `alive_within`,
/// systemd's wish, `on_alive` is called three times within it.
///
/// # Errors
/// When no thread can be made.
pub fn start(
    arbiters: Vec<ArbiterHandle>,
    heart: Heart,
    unwritten: impl Fn() -> Option<Duration> + Send + 'static,
    on_alive: impl Fn() + Send + 'static,
    on_stuck: impl Fn(Stuck) + Send + 'static,
    alive_within: Option<Duration>,
) -> std::io::Result<()> {
    let watch = move || {
        let _ = heart.0.watchdog.set(thread::current());
        let mut last = heart.look();
        loop {
            if let Some(within) = alive_within {
                thread::sleep(LOOK_EVERY.min(within / 3));
            } else {
                heart.wait();
                thread::sleep(LOOK_EVERY);
            }
            let now = heart.look();
            let waited = unwritten();
            if waited.is_some() {
                // What the committer does rouses nobody: look again.
                heart.0.roused.store(true, Ordering::SeqCst);
            }
            match examine(&arbiters, &last, &now, waited) {
                Ok(Look::Alive { any_awake }) => {
                    if any_awake {
                        heart.0.roused.store(true, Ordering::SeqCst);
                    }
                    on_alive();
                }
                Ok(Look::GoingDown) => return,
                Err(stuck) => on_stuck(stuck),
            }
            last = now;
        }
    };
    thread::Builder::new().name("watchdog".into()).spawn(watch).map(drop)
}

enum Look {
    Alive { any_awake: bool },
    GoingDown,
}

/// Judges two looks at the beats, and pings those that were awake all the time between them.
fn examine(
    arbiters: &[ArbiterHandle],
    last: &[u64],
    now: &[u64],
    unwritten: Option<Duration>,
) -> Result<Look, Stuck> {
    if unwritten.is_some_and(|waited| waited > COMMITTER_PATIENCE) {
        return Err(Stuck::Committer);
    }
    let is_awake = |beats: &u64| beats % 2 == 1;
    let silent = last.iter().zip(now).enumerate();
    let silent = silent.filter(|(_, (last, now))| last == now && is_awake(now)).map(|(arbiter, _)| arbiter);
    match ping(arbiters, silent.collect(), ARBITER_PATIENCE) {
        Ping::Answered => Ok(Look::Alive { any_awake: now.iter().any(is_awake) }),
        Ping::Stuck(arbiter) => Err(Stuck::Arbiter(arbiter)),
        Ping::GoingDown => Ok(Look::GoingDown),
    }
}

enum Ping {
    Answered,
    Stuck(usize),
    GoingDown,
}

fn ping(arbiters: &[ArbiterHandle], mut silent: Vec<usize>, patience: Duration) -> Ping {
    let (sender, answers) = mpsc::channel();
    for arbiter in silent.clone() {
        let sender = sender.clone();
        let pong = async move {
            let _ = sender.send(arbiter);
        };
        if !arbiters[arbiter].spawn(pong) {
            return Ping::GoingDown;
        }
    }
    drop(sender);
    let until = Instant::now() + patience;
    while !silent.is_empty() {
        match answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(arbiter) => silent.retain(|waiting| *waiting != arbiter),
            Err(mpsc::RecvTimeoutError::Timeout) => return Ping::Stuck(silent[0]),
            // Every sender is gone unanswered: the arbiters have stopped.
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ping::GoingDown,
        }
    }
    Ping::Answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arbiter_that_hangs_is_named_and_the_others_are_not() {
        let system = actix::System::new();
        let (healthy, stuck) = system.block_on(async { (actix::Arbiter::new(), actix::Arbiter::new()) });
        let (hold, held) = mpsc::channel::<()>();
        stuck.spawn(async move {
            let _ = held.recv();
        });
        let handles = [healthy.handle(), stuck.handle()];
        assert!(matches!(ping(&handles, vec![0, 1], Duration::from_millis(300)), Ping::Stuck(1)));
        drop(hold);
        assert!(matches!(ping(&handles, vec![0, 1], Duration::from_secs(30)), Ping::Answered));
    }

    #[test]
    fn only_who_was_awake_all_the_time_is_pinged() {
        // Nobody is there to answer, so that each ping would be noticed.
        let alive =
            |last: &[u64], now: &[u64]| matches!(examine(&[], last, now, None), Ok(Look::Alive { .. }));
        assert!(alive(&[2, 2], &[2, 2]), "both sleep");
        assert!(alive(&[1, 2], &[3, 5]), "both are awake, and were asleep meanwhile");
        assert!(std::panic::catch_unwind(|| alive(&[3], &[3])).is_err(), "this one is pinged");
    }

    #[test]
    fn a_committer_is_stuck_when_its_clients_have_given_up() {
        let of = |waited| examine(&[], &[2], &[2], Some(Duration::from_secs(waited)));
        assert!(matches!(of(29), Ok(Look::Alive { any_awake: false })));
        assert!(matches!(of(31), Err(Stuck::Committer)));
    }

    #[test]
    fn a_look_forgets_what_was_before_it_and_a_beat_rouses() {
        let heart = Heart::new(1);
        heart.sleeps(0);
        assert_eq!(heart.look(), [2]);
        heart.wakes(0);
        heart.wait();
        assert_eq!(heart.look(), [3]);
    }
}
