//! What the pool's status has to say when nothing is due.

use ringleader_proof::object::{LeasePhase, MemberState, PoolPhase, PoolStatus, Truth};
use ringleader_proof::pool::{Room, WaitsFor};

use super::{Naive, Now};

impl Naive {
    /// What of a status is not true.
    pub fn untrue(&self, status: &PoolStatus, now: Now<'_>) -> Vec<&'static str> {
        let members = |state| count(self.live().filter(|member| member.state == state));
        let phase = |phase| count(self.leases.iter().filter(|lease| !lease.over && lease.phase == phase));
        let live = count(self.live());
        let of_size = self.spec.size.max.saturating_sub(live);
        let room = match &now.inputs.room {
            Room::Unlimited => of_size,
            Room::Limited { more, .. } => of_size.min(*more),
        };
        let bound = phase(LeasePhase::Starting)
            + phase(LeasePhase::Recycling)
            + phase(LeasePhase::Releasing)
            + phase(LeasePhase::Ready);
        let (said, leases) = (&status.members, &status.leases);
        let retry_at = self.back_off.map(|(_, until)| until);
        let facts = [
            ("phase", status.phase == self.phase()),
            ("observedGeneration", status.observed_generation == self.generation),
            ("owner", status.owner.as_ref() == Some(&self.owner)),
            ("capacity.max", status.capacity.max == self.spec.size.max),
            ("capacity.members", status.capacity.members == live),
            ("capacity.room", status.capacity.room == room),
            ("members.building", said.building == members(MemberState::Building)),
            ("members.starting", said.starting == members(MemberState::Starting)),
            ("members.idleRunning", said.idle_running == members(MemberState::IdleRunning)),
            ("members.idleStopped", said.idle_stopped == members(MemberState::IdleStopped)),
            ("members.leased", said.leased == members(MemberState::Leased)),
            ("members.recycling", said.recycling == members(MemberState::Recycling)),
            ("members.stopping", said.stopping == members(MemberState::Stopping)),
            ("members.deleting", said.deleting == members(MemberState::Deleting)),
            ("members.cordoned", said.cordoned == count(self.live().filter(|member| member.cordoned))),
            ("leases.pending", leases.pending == phase(LeasePhase::Pending)),
            ("leases.bound", leases.bound == bound),
            ("leases.ready", leases.ready == phase(LeasePhase::Ready)),
            ("leases.failed", leases.failed == phase(LeasePhase::Failed)),
            ("template.consecutiveFailures", status.template.consecutive_failures == self.failures),
            ("template.retryAt", status.template.retry_at == retry_at),
            ("Ready", holds(status, "Ready") == (self.phase() == PoolPhase::Ready)),
            ("TemplateHealthy", holds(status, "TemplateHealthy") == (self.failures < 3)),
            ("RoomAvailable", self.may_say_of_room(holds(status, "RoomAvailable"), now)),
            ("WarmFloorsFilled", holds(status, "WarmFloorsFilled") == self.has_its_floors(now)),
        ];
        facts.iter().filter(|(_, true_)| !true_).map(|(what, _)| *what).collect()
    }

    fn phase(&self) -> PoolPhase {
        if self.deleting {
            PoolPhase::Terminating
        } else if self.failures >= 3 {
            PoolPhase::Degraded
        } else if self.ever_ready {
            PoolPhase::Ready
        } else {
            PoolPhase::Pending
        }
    }

    /// S2: False only while the pool wants to build and cannot be placed, and then always, unless
    /// something else keeps it too.
    fn may_say_of_room(&self, said: bool, now: Now<'_>) -> bool {
        // A member that cannot be placed is nothing but a wish.
        let wants = !self.queue().is_empty() || self.is_lacking(now) || !self.stuck().is_empty();
        let of_place =
            |obstacle: &WaitsFor| matches!(obstacle, WaitsFor::Room { .. } | WaitsFor::Provider { .. });
        let obstacles = self.obstacles(now);
        let unplaced = wants && obstacles.iter().any(of_place);
        let by_that_alone = unplaced && obstacles.iter().all(of_place);
        if said { !by_that_alone } else { unplaced }
    }

    fn has_its_floors(&self, now: Now<'_>) -> bool {
        let (run, stop) = self.floors(now);
        let (running, stopped) = (self.running().len(), self.stopped().len());
        running >= run && running + stopped >= run + stop
    }
}

fn holds(status: &PoolStatus, condition: &str) -> bool {
    let found = status.conditions.iter().find(|found| found.r#type == condition);
    found.is_some_and(|found| found.status == Truth::True)
}

fn count<T>(of: impl Iterator<Item = T>) -> u32 {
    u32::try_from(of.count()).expect("a handful")
}
