//! Real machines of the provider `sandbox`. Needs root, and says so.

mod house;
mod isolation;
mod life;
