//! What each command records. None of them goes further than the write itself: what follows
//! from it is a pass's work.

pub mod fact;
pub mod lease;
pub mod member;
pub mod pool;
