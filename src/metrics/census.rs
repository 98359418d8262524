//! What stands rather than happens, counted in the view when it is scraped: what is durable, over
//! all pools, in one look a kind.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use serde_json::Value;

use super::label::{Label, LabelSet};
use crate::object::{LeasePhase, MemberState, PoolPhase, SERVER_PREFIX, WORKSTATIONS_GROUP};
use crate::view::{Resource, View};

/// Members by state, leases and pools by phase.
#[derive(Debug)]
pub struct Census {
    view: View,
}

impl Census {
    pub const fn new(view: View) -> Self {
        Self { view }
    }

    /// How many objects of a kind there are with each value; those without any are not counted.
    fn tally<L: Label>(&self, plural: &'static str, word: fn(&Resource) -> Option<&str>) -> Vec<u64> {
        let mut counts = vec![0; L::ALL.len()];
        for resource in self.view.list(WORKSTATIONS_GROUP, plural, None).items {
            let word = word(&resource);
            if let Some(place) = L::ALL.iter().position(|value| Some(value.word()) == word) {
                counts[place] += 1;
            }
        }
        counts
    }
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let members = self.tally::<MemberState>("workstations", state);
        write::<MemberState>(&mut encoder, "members", "Members of pools", &members)?;
        let leases = self.tally::<LeasePhase>("workstationpoolleases", phase);
        write::<LeasePhase>(&mut encoder, "leases", "Leases", &leases)?;
        let pools = self.tally::<PoolPhase>("workstationpools", phase);
        write::<PoolPhase>(&mut encoder, "pools", "Pools", &pools)
    }
}

/// A standalone workstation has none.
fn state(resource: &Resource) -> Option<&str> {
    let annotations = resource.value.get("metadata")?.get("annotations")?.as_object()?;
    let of_server = |(key, _): &(&String, &Value)| key.strip_prefix(SERVER_PREFIX) == Some("state");
    annotations.iter().find(of_server)?.1.as_str()
}

fn phase(resource: &Resource) -> Option<&str> {
    resource.value.get("status")?.get("phase")?.as_str()
}

fn write<L: Label>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    what: &str,
    counts: &[u64],
) -> fmt::Result {
    let help = format!("{what} that there are, by {}.", L::NAME);
    let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
    for (labels, count) in L::all().iter().zip(counts) {
        family.encode_family(labels)?.encode_gauge(count)?;
    }
    Ok(())
}
