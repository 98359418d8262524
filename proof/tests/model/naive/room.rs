//! Whether a new member may be built, and whether one is lacking.

use ringleader_proof::object::MemberState;
use ringleader_proof::pool::{ProviderState, Room, Stopping, WaitsFor};

use super::{Member, Naive, Now};

impl Naive {
    /// Everything that keeps a new member from being built. The core says the first it finds.
    pub fn obstacles(&self, now: Now<'_>) -> Vec<WaitsFor> {
        let mut found = Vec::new();
        if self.spec.paused {
            found.push(WaitsFor::Paused);
        }
        if self.deleting || self.live().count() >= self.spec.size.max as usize {
            found.push(WaitsFor::Release);
        }
        found.extend(self.stuck().into_iter().map(|why| WaitsFor::Room { why }));
        match self.provider(now) {
            Err(none) => found.push(none),
            Ok(provider) => {
                let down = provider.unavailable.as_ref();
                let why = down.map(|why| format!("{}: {why}", provider.name));
                found.extend(why.map(|why| WaitsFor::Provider { why }));
            }
        }
        if let Room::Limited { more: 0, why } = &now.inputs.room {
            found.push(WaitsFor::Room { why: why.clone() });
        }
        if let Some((_, until)) = self.back_off {
            let failures = self.failures;
            let probes = |member: &Member| {
                member.state == MemberState::Building
                    && member.template == self.template
                    && member.since >= until
            };
            if now.steady < until {
                found.push(WaitsFor::BackOff { until, failures });
            } else if self.live().any(probes) {
                found.push(WaitsFor::Probe { failures });
            }
        }
        if now.inputs.builds_allowed == 0 {
            found.push(WaitsFor::Turn);
        }
        found
    }

    pub fn provider<'a>(&self, now: Now<'a>) -> Result<&'a ProviderState, WaitsFor> {
        let providers = &now.inputs.providers;
        let requirements = &self.spec.template.spec.requirements;
        if let Some(name) = requirements.iter().find_map(|word| word.strip_prefix("provider:")) {
            return providers
                .iter()
                .find(|provider| provider.name == name)
                .ok_or_else(|| WaitsFor::TemplateFix { why: format!("this daemon has no provider {name}") });
        }
        let serving = providers.iter().find(|provider| provider.unavailable.is_none());
        serving
            .or(providers.first())
            .ok_or_else(|| WaitsFor::Provider { why: "this daemon has no provider at all".into() })
    }

    pub fn can_stop(&self, now: Now<'_>) -> bool {
        self.provider(now).map_or(true, |provider| provider.stopping == Stopping::Possible)
    }

    /// Running and stopped, where there can be stopped ones.
    pub fn floors(&self, now: Now<'_>) -> (usize, usize) {
        let warm = &self.spec.warm;
        (warm.running as usize, if self.can_stop(now) { warm.stopped as usize } else { 0 })
    }

    /// Fewer members of the present template are there or coming than the floors ask for.
    pub fn is_lacking(&self, now: Now<'_>) -> bool {
        let (run, stop) = self.floors(now);
        let supply = self.fresh(&self.running()) + self.fresh(&self.stopped()) + self.current(&self.coming());
        !self.deleting && supply < run + stop
    }
}
