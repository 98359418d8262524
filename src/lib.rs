//! Ringleader pools: one machine becomes a pool of ready workstations, lent out one at a time.
//!
//! ARCHITECTURE.md is the map. The modules below stand in reading order: the pure rooms that
//! decide, then the store that makes a decision durable, then the shells that act on it.

pub mod access;
pub mod actor;
pub mod agent;
pub mod catalog;
pub mod cli;
pub mod client;
pub mod clock;
pub mod daemon;
pub mod fleet;
pub mod http;
pub mod machine;
pub mod metrics;
pub mod object;
pub mod pool;
pub mod provider;
pub mod settings;
pub mod store;
pub mod sys;
pub mod view;
