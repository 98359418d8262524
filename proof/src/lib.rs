//! The rooms that decide, compiled apart from everything that acts: no actors, no store, no
//! network. That this compiles at all shows that they are pure; and being small it is compiled
//! with optimisation and with every check on, so that its tests take a million steps in the time
//! the whole crate's debug build would take for a tenth of them.

// The rooms' own tests are compiled and run where the rooms live.
#![cfg(not(test))]

#[path = "../../src/machine/mod.rs"]
pub mod machine;
#[path = "../../src/object/mod.rs"]
pub mod object;
#[path = "../../src/pool/mod.rs"]
pub mod pool;
