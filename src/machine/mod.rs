//! Pure: what one workstation needs next, its deadlines, and how layers become one setup.
//!
//! `contract.rs` is the language between an owner (a pool, the fleet) and a member actor: the
//! owner sends the whole wish (`Want`), the actor reports the whole state (`Fact`). Both are
//! level-triggered: a lost, doubled or late one is put right by the next.

mod contract;
pub mod drive;

pub use contract::*;
