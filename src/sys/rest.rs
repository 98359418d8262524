//! Threads of this process that are not ours, put to rest: sled's helpers ask once a second for
//! work, each of seven, for as long as the process lives, and nothing of sled's API stops them.
//!
//! A thread at rest waits inside a signal handler until everybody is roused. Wherever it was
//! interrupted, it holds what it held; so only threads are interrupted that sleep in the kernel's
//! futex, which is no moment at which a lock of the allocator is held, and whoever uses what they
//! serve must rouse them first.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const ROUSED: u32 = 0;
const AT_REST: u32 = 1;

/// What the handler waits on.
static STATE: AtomicU32 = AtomicU32::new(ROUSED);
static HANDLED: Once = Once::new();

/// Puts every thread to rest whose name begins with `prefix`. Answers how many could not be: they
/// were at work, or the kernel does not say what they do. To be called by one thread at a time.
///
/// # Errors
/// When the threads of this process cannot be listed.
pub fn lay(prefix: &str) -> io::Result<usize> {
    HANDLED.call_once(handle);
    STATE.store(AT_REST, Ordering::SeqCst);
    let mut restless = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        // One that has just ended has no name any more.
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok()) else { continue };
        if name.starts_with(prefix) && !(sleeps(&thread.path()) && interrupt(id)) {
            restless += 1;
        }
    }
    Ok(restless)
}

/// Lets all of them go on.
pub fn rouse() {
    if STATE.swap(ROUSED, Ordering::SeqCst) == AT_REST {
        // SAFETY: the call reads nothing but the address of a static.
        unsafe {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, STATE.as_ptr(), wake, libc::c_int::MAX);
        }
    }
}

/// A real-time signal that nobody else here uses.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

fn handle() {
    // SAFETY: an all-zero sigaction is a valid one; the handler does only what a handler may.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = wait_until_roused as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal(), &raw const action, std::ptr::null_mut());
    }
}

/// Runs on the interrupted thread: one system call, and `errno` is left as it was.
extern "C" fn wait_until_roused(_: libc::c_int) {
    // SAFETY: errno's address is this thread's own, and the futex is a static.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        while STATE.load(Ordering::SeqCst) == AT_REST {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            let for_ever = std::ptr::null::<libc::timespec>();
            libc::syscall(libc::SYS_futex, STATE.as_ptr(), wait, AT_REST, for_ever);
        }
        *errno = before;
    }
}

/// Whether a thread waits in a futex right now, ours included.
fn sleeps(thread: &Path) -> bool {
    let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    call.split_whitespace().next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex)
}

fn interrupt(thread: libc::pid_t) -> bool {
    // SAFETY: the call takes three numbers; a thread that has ended is no longer found.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal()) == 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;

    /// How often a thread was switched to.
    fn switches(thread: libc::pid_t) -> u64 {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).expect("it runs");
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).expect("a count")
    }

    #[test]
    fn a_thread_at_rest_is_not_woken_by_its_own_timer_and_goes_on_when_roused() {
        let (said, heard) = mpsc::channel();
        let (tell, told) = mpsc::channel::<()>();
        let body = move || {
            // SAFETY: takes and gives a number.
            said.send(unsafe { libc::gettid() }).expect("heard");
            // Asks again and again, as sled's threads do.
            while told.recv_timeout(Duration::from_millis(5)) == Err(mpsc::RecvTimeoutError::Timeout) {}
        };
        let thread = std::thread::Builder::new().name("resting-1".into()).spawn(body).expect("a thread");
        let id = heard.recv().expect("it began");
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut last = switches(id);
        loop {
            assert!(Instant::now() < deadline, "it does not rest");
            let restless = lay("resting-").expect("threads");
            std::thread::sleep(Duration::from_millis(50));
            let now = switches(id);
            if restless == 0 && now == last {
                break;
            }
            last = now;
        }
        tell.send(()).expect("it lives");
        assert_eq!(switches(id), last, "nothing wakes it");
        rouse();
        thread.join().expect("it went on and ended");
    }
}
