//! Histograms of atomics: prometheus-client's own take a lock for each observation, which a scrape
//! might hold while the committer waits.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::label::LabelSet;

/// The upper bounds of a histogram's buckets, and in what they are counted.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// Ascending, in the small unit that is observed.
    bounds: &'static [u64],
    /// How many of these make one of the unit that is shown.
    per_shown: f64,
}

impl Buckets {
    /// Observed in microseconds, shown in seconds.
    pub const fn micros(bounds: &'static [u64]) -> Self {
        Self { bounds, per_shown: 1e6 }
    }

    /// Observed in milliseconds, shown in seconds.
    pub const fn millis(bounds: &'static [u64]) -> Self {
        Self { bounds, per_shown: 1e3 }
    }

    /// Shown as they are observed.
    pub const fn plain(bounds: &'static [u64]) -> Self {
        Self { bounds, per_shown: 1.0 }
    }

    #[expect(clippy::cast_precision_loss, reason = "a scrape is in floats, and exact up to 2^53")]
    fn shown(self, observed: u64) -> f64 {
        observed as f64 / self.per_shown
    }
}

/// Histograms by the labels `S`. Cheap to clone; clones observe together.
pub struct Histograms<S> {
    buckets: Buckets,
    of: Arc<[Cells]>,
    labels: PhantomData<fn(S)>,
}

/// One histogram. A scrape in the middle of an observation may see its bucket and not yet its sum;
/// the count is that of the buckets, so that these always agree.
#[derive(Debug)]
struct Cells {
    /// One more than there are bounds: the last is what lies above all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl<S: LabelSet> Histograms<S> {
    /// Nothing observed yet.
    pub fn new(buckets: Buckets) -> Self {
        let cells = || Cells {
            counts: (0..=buckets.bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        };
        Self { buckets, of: S::all().iter().map(|_| cells()).collect(), labels: PhantomData }
    }

    /// One more, of this size in the unit of the buckets.
    pub fn observe(&self, labels: S, observed: u64) {
        let cells = &self.of[labels.index()];
        let bucket = self.buckets.bounds.partition_point(|bound| *bound < observed);
        cells.counts[bucket].fetch_add(1, Ordering::Relaxed);
        cells.sum.fetch_add(observed, Ordering::Relaxed);
    }
}

impl<S> Clone for Histograms<S> {
    fn clone(&self) -> Self {
        Self { buckets: self.buckets, of: Arc::clone(&self.of), labels: PhantomData }
    }
}

impl<S> fmt::Debug for Histograms<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.of.iter()).finish()
    }
}

impl<S: LabelSet> EncodeMetric for Histograms<S> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = self.buckets.bounds.iter().map(|bound| self.buckets.shown(*bound));
        let bounds: Vec<f64> = bounds.chain([f64::INFINITY]).collect();
        for (labels, cells) in S::all().iter().zip(self.of.iter()) {
            let counts = cells.counts.iter().map(|count| count.load(Ordering::Relaxed));
            let buckets: Vec<(f64, u64)> = bounds.iter().copied().zip(counts).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = self.buckets.shown(cells.sum.load(Ordering::Relaxed));
            encoder.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
