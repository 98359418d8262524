//! Inside a member: init, wire frames, ssh, the configuration pass.
//!
//! ```text
//!  host │ control.sock                          ssh.sock │ bound by the launcher, 0700
//! ──────┼───────────────────────────────────────────────┼────────────────────────────
//!       ▼                                               ▼
//!  control.rs  wire frames ◄─► Link (daemon)        ssh/   russh: publickey, exec, shell
//!       │ Apply                                         │
//!       ▼                                               ▼
//!  pass/  login user, home, sudo, environment,     login.rs  who may come in, with which
//!         the managed block of authorized_keys               variables; read at every login
//!       └──────────► the member's own files ◄───────────┘
//! ```
//!
//! The two halves share nothing but the member's files, so what a login sees is what the last
//! pass wrote, whether or not the agent was restarted between. The agent runs as root of the
//! member in any root file system: it reads and writes passwd and group itself (a static binary
//! has no NSS) and needs no program of the image but the login shell. Where a user can write,
//! it works with that user's rights only (`sys::session::as_user`).

pub mod link;
pub mod wire;

mod accounts;
mod hostile;
mod place;
