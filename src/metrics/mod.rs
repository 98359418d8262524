//! What the daemon counts, and how a scraper reads it: Prometheus' text format, or OpenMetrics.
//!
//! ```text
//!  committer, owners, supervisor, http ──► meters ──┐
//!                                 view ──► census ──┴──► registry ──► GET /metrics
//! ```
//!
//! Meters are counted on the way and cost an atomic or two: no lock, no allocation. What stands
//! rather than happens (members by state, leases by phase) is counted in the view when it is
//! scraped, which wakes no owner.
//!
//! No value of a label comes from outside: every label is a closed enum ([`label`]), so that a
//! scrape has as many lines with a hundred thousand leases as with none. Counts begin at zero with
//! each start of the daemon.

mod census;
mod histogram;
mod label;
mod meters;
mod table;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use label::{CodeClass, Verb};
pub use meters::{CommitMeter, HttpMeter, OwnerMeter, PoolMeter};

use crate::view::View;
use census::Census;

/// Every meter of one daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub commits: CommitMeter,
    pub http: HttpMeter,
    pub owners: OwnerMeter,
    pub pools: PoolMeter,
    registry: Arc<Registry>,
}

/// In which of its two forms a scrape is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Form {
    /// The `Content-Type` that scrapers know it by.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// Everything at zero, over the objects of `view`.
    #[must_use]
    pub fn new(view: View) -> Self {
        let mut registry = Registry::with_prefix("ringleader");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the daemon", version);
        registry.register_collector(Box::new(Census::new(view)));
        Self {
            pools: PoolMeter::registered(&mut registry),
            commits: CommitMeter::registered(&mut registry),
            owners: OwnerMeter::registered(&mut registry),
            http: HttpMeter::registered(&mut registry),
            registry: Arc::new(registry),
        }
    }

    /// Everything as it stands now.
    ///
    /// # Errors
    /// Never: what is written to goes to memory.
    pub fn scrape(&self, form: Form) -> Result<String, fmt::Error> {
        let mut scraped = String::new();
        match form {
            Form::Prometheus => prometheus_text::encode(&mut scraped, &self.registry)?,
            Form::OpenMetrics => text::encode(&mut scraped, &self.registry)?,
        }
        Ok(scraped)
    }
}
