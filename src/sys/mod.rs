//! The one module with `unsafe`: the system calls no safe crate offers.

pub mod namespaces;
pub mod session;
