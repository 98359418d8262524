//! The one module with `unsafe`: the system calls no safe crate offers.

#![expect(unsafe_code, reason = "this is the module for it")]

pub mod namespaces;
pub mod session;
