//! The main job, end to end: a real daemon, real machines, the real `rl`, the stock OpenSSH client.
//!
//! Needs root (the sandbox makes namespaces and mounts) and fails, saying so, without it.

mod harness;

#[path = "break.rs"]
mod breaking;
mod cli;
mod crash;
mod leak;
mod lease;
mod many;
mod metrics;
mod service;
mod wrong;
