//! sled while nobody uses it: its helper threads are put to rest, or they would wake the processor
//! seven times a second for as long as the daemon lives.
//!
//! They are the process's, not one store's: whoever works with sled holds a [`Work`], and while
//! anybody does, none of them rests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::rest;

/// What sled's threads are called.
const HELPERS: &str = "sled-io-";

/// How many work with sled in this process.
static AT_WORK: Mutex<u32> = Mutex::new(0);

/// Somebody works with sled.
#[derive(Debug)]
pub(super) struct Work(());

impl Work {
    /// From here to its drop sled's threads are awake.
    pub(super) fn begin() -> Self {
        let mut at_work = lock();
        *at_work += 1;
        rest::rouse();
        Self(())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        *lock() -= 1;
    }
}

/// Puts sled's threads to rest, unless somebody works. False if one of them was still busy: try
/// again a little later.
pub(super) fn lay_to_rest() -> bool {
    let at_work = lock();
    if *at_work > 0 {
        return true;
    }
    match rest::lay(HELPERS) {
        Ok(restless) => restless == 0,
        Err(error) => {
            tracing::debug!(%error, "sled's threads stay awake");
            true
        }
    }
}

fn lock() -> MutexGuard<'static, u32> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}
