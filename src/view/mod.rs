//! What http reads: immutable objects, indexes, and the ring of watch events.
//!
//! The committer alone writes here, in version order, after the write is on disk. Readers never
//! block it for long and never see what is not durable.

mod resource;

pub use resource::{Key, Resource};

/// Placeholder of the read side; see `resource.rs` for what it holds.
#[derive(Debug, Default)]
pub struct View {}
