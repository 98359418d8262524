//! Being told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals by which a person or a service manager ends a command.
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Which signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "the signal's own name")]
pub enum Interrupt {
    /// Ctrl-C.
    Interrupt,
    Terminate,
    HangUp,
}

impl Interrupts {
    /// Takes the signals over: from here on they no longer end the process by themselves.
    pub fn take() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Interrupt,
            _ = self.terminate.recv() => Interrupt::Terminate,
            _ = self.hang_up.recv() => Interrupt::HangUp,
        }
    }
}
