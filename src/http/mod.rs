//! The API: Kubernetes-shaped HTTP, and hyper nowhere else in the daemon.
//!
//! ```text
//!  socket ──► serve ── who? peer ──► answer ── what? route ──► discovery, health, metrics, images
//!             (limits, drain)          │                   ──► read    (get, list: the view)
//!                                      │                   ──► watch   (the view's ring)
//!                                      │                   ──► write   (an object's owner)
//!                                      │                   ──► ssh     (bytes, both ways)
//!                                      └── how? negotiate, body, query; in every refusal: status
//! ```
//!
//! One request is one call of [`answer`](answer::answer), and each of its steps is one small file
//! here. The room knows kinds only through the registry and decides nothing about them: it turns
//! requests into the words of `actor::doors`, and what comes back into the shapes that every
//! Kubernetes client expects.

mod answer;
mod body;
mod discovery;
mod health;
mod images;
mod metrics;
mod negotiate;
mod peer;
mod query;
mod read;
mod reply;
mod route;
mod serve;
mod ssh;
mod status;
mod watch;
mod write;

pub use peer::{Peer, SocketGroup};
pub use serve::{Options, serve};

#[cfg(test)]
mod tests;
