//! sled and postcard, nowhere else: records, the committer, start-up.
//!
//! Nothing is said before it is written. An owner submits a whole decision synchronously; one
//! committer thread writes batches and then, in queue order, applies each to the view and runs
//! its effects (replies, orders to machines).

pub mod record;
