//! Actors that fail: real actors over a real store. Doubles stand only for what does not fail on
//! request: a core that panics, a provider that hangs.

mod flawed;
mod home;
mod owners;
mod pools;
mod room;
mod toy;
mod turns;
