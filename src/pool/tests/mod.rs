//! The pool's rules, each as sentences. A test that covers a rule says so above it; the cases from
//! the field cite where they were reported.

mod cases;
mod change;
mod delete;
mod failure;
mod happening;
mod lease;
mod order;
mod recycle;
mod release;
mod shown;
mod usage;
mod warm;
mod world;
