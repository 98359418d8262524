//! Shells over the pure rooms: actix, nowhere else.
//!
//! ```text
//!   http ── doors ──► Supervisor ─ starts, rebuilds ─► Owner<Pool>  ─┐ submit
//!            │                                         Owner<Fleet>  ├────────► store
//!            └─────────── ask ───────────────────────► Owner<Catalog>┘            │ effects
//!                                                          ▲ facts                ▼
//!                                                      MemberActor ◄──── wants ───┘
//! ```
//!
//! `owner.rs` is the one shell of every owner and `member.rs` that of every machine; `impl Handler`
//! stands in these two and in the supervisor, nowhere else. A branch on what a pool or a machine
//! should do is a defect here: it belongs into their pure rooms.

pub mod adoption;
mod asked;
pub mod backend;
mod catalog;
pub mod core;
pub mod directory;
pub mod doors;
mod fleet;
pub mod house;
pub mod member;
pub mod owner;
mod placement;
mod pool;
mod reading;
pub mod supervisor;
#[cfg(test)]
mod tests;
pub mod turns;
pub mod watchdog;
