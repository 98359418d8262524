//! Shells over the pure rooms: actix, nowhere else.

pub mod doors;
