//! What a pool is made of: one plain struct for each thing that is stored. Each shows itself to
//! the world by `present`.

mod event;
mod lease;
mod member;
mod pool_row;

pub use event::EventRow;
pub use lease::{Bond, Lease, Start, WaitsFor};
pub use member::{Destination, Member, Observed, Recycling, Sighting, Wanted};
pub use pool_row::{BackOff, Health, PoolRow};
