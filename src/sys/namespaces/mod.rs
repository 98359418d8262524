//! Making namespaces and executing into them (the launcher and init).
//!
//! Everything here is called from single-threaded programs only: `rl launcher`, what it forks,
//! and `rl init`. A process with threads must neither fork without exec nor unshare.

mod confine;
mod descriptors;
mod mounts;
mod processes;
mod signals;

pub use confine::{enter_cgroup_namespace, enter_mount_namespace, join_new_session_keyring, raise_loopback};
pub use descriptors::{adopt, close_on_exec_from, place_at, watch};
pub use mounts::{Access, clone_mount, map_ids, set_access};
pub use processes::{Cloned, Namespaces, clone_into, end, execute, fork};
pub use signals::{Signals, block_no_signals};
