//! The pure core of a pool.
