//! How long to leave a machine alone after something failed.

/// A wait that doubles with every failure.
#[derive(Debug)]
pub(super) struct Backoff {
    first_ms: u64,
    max_ms: u64,
    failures: u32,
    until_ms: u64,
}

impl Backoff {
    /// No wait yet.
    pub(super) const fn new(first_ms: u64, max_ms: u64) -> Self {
        Self { first_ms, max_ms, failures: 0, until_ms: 0 }
    }

    /// Another failure: the next try is further away.
    pub(super) fn failed(&mut self, now_ms: u64) {
        let wait = self.first_ms.saturating_mul(1 << self.failures.min(16)).min(self.max_ms);
        self.failures = self.failures.saturating_add(1);
        self.until_ms = now_ms.saturating_add(wait);
    }

    /// A success: the next failure waits least again.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
        self.until_ms = 0;
    }

    /// Whether the wait is over.
    pub(super) const fn open(&self, now_ms: u64) -> bool {
        now_ms >= self.until_ms
    }

    /// When the wait is over, on the monotonic clock.
    pub(super) const fn until_ms(&self) -> u64 {
        self.until_ms
    }
}
