//! Image generations: immutable root file systems that members are made from.

/// The images of one daemon.
pub struct Images {}
