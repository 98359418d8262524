//! A plain thread that pings every arbiter: a handler that hangs blocks all actors beside it, and
//! nothing inside actix would notice.
//!
//! systemd's watchdog is fed only when all have answered, so a daemon that hangs as a whole is
//! restarted too. Members outlive either.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use actix::ArbiterHandle;

/// Between two rounds, unless systemd wants to hear more often.
const PERIOD: Duration = Duration::from_secs(10);
/// How long an arbiter may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the thread. `on_stuck` is told which arbiter does not answer, and should end the process.
///
/// # Errors
/// When no thread can be made.
pub fn start(
    arbiters: Vec<ArbiterHandle>,
    on_alive: impl Fn() + Send + 'static,
    on_stuck: impl Fn(usize) + Send + 'static,
    alive_within: Option<Duration>,
) -> std::io::Result<()> {
    let period = alive_within.map_or(PERIOD, |within| PERIOD.min(within / 3));
    let rounds = move || loop {
        match round(&arbiters, PATIENCE) {
            Round::Answered => on_alive(),
            Round::Stuck(arbiter) => on_stuck(arbiter),
            Round::GoingDown => return,
        }
        std::thread::sleep(period);
    };
    std::thread::Builder::new().name("watchdog".into()).spawn(rounds).map(drop)
}

enum Round {
    Answered,
    Stuck(usize),
    GoingDown,
}

fn round(arbiters: &[ArbiterHandle], patience: Duration) -> Round {
    let (sender, answers) = mpsc::channel();
    for (arbiter, handle) in arbiters.iter().enumerate() {
        let sender = sender.clone();
        let pong = async move {
            let _ = sender.send(arbiter);
        };
        if !handle.spawn(pong) {
            return Round::GoingDown;
        }
    }
    drop(sender);
    let until = Instant::now() + patience;
    let mut silent: Vec<usize> = (0..arbiters.len()).collect();
    while !silent.is_empty() {
        match answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(arbiter) => silent.retain(|waiting| *waiting != arbiter),
            Err(mpsc::RecvTimeoutError::Timeout) => return Round::Stuck(silent[0]),
            // Every sender is gone unanswered: the arbiters have stopped.
            Err(mpsc::RecvTimeoutError::Disconnected) => return Round::GoingDown,
        }
    }
    Round::Answered
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
        assert!(matches!(round(&handles, Duration::from_millis(300)), Round::Stuck(1)));
        drop(hold);
        assert!(matches!(round(&handles, Duration::from_secs(30)), Round::Answered));
    }
}
