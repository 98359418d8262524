//! Pure: who may do what.
