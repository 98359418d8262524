//! hyper, nowhere else.
