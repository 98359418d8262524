//! Counters by label: one atomic for each combination of values there can be, all of them shown
//! from the first scrape on, so that a rate begins where the counting does.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::label::LabelSet;

/// Counters by the labels `S`. Cheap to clone; clones count together.
pub struct Counters<S> {
    cells: Arc<[AtomicU64]>,
    labels: PhantomData<fn(S)>,
}

impl<S: LabelSet> Counters<S> {
    /// One more.
    pub fn count(&self, labels: S) {
        self.cells[labels.index()].fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: LabelSet> Default for Counters<S> {
    fn default() -> Self {
        Self { cells: S::all().iter().map(|_| AtomicU64::new(0)).collect(), labels: PhantomData }
    }
}

impl<S> Clone for Counters<S> {
    fn clone(&self) -> Self {
        Self { cells: Arc::clone(&self.cells), labels: PhantomData }
    }
}

impl<S> fmt::Debug for Counters<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cells.iter()).finish()
    }
}

impl<S: LabelSet> EncodeMetric for Counters<S> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, cell) in S::all().iter().zip(self.cells.iter()) {
            let count = cell.load(Ordering::Relaxed);
            encoder.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
