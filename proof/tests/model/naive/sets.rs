//! Who there is, and in which order they are taken.

use std::cmp::Reverse;

use ringleader_proof::object::MemberState;
use ulid::Ulid;

use super::{Member, Naive};

impl Naive {
    /// Idle running members that leases, floors and timers may take (C2).
    pub fn running(&self) -> Vec<&Member> {
        self.idle(&[MemberState::IdleRunning])
    }

    /// Idle stopped ones, those on their way to it included.
    pub fn stopped(&self) -> Vec<&Member> {
        self.idle(&[MemberState::IdleStopped, MemberState::Stopping])
    }

    /// Unbound ones being built or started (W6).
    pub fn coming(&self) -> Vec<&Member> {
        let mut coming = self.idle(&[MemberState::Building, MemberState::Starting]);
        coming.retain(|member| member.lease.is_none());
        coming
    }

    pub fn idle(&self, states: &[MemberState]) -> Vec<&Member> {
        self.live().filter(|member| !member.cordoned && states.contains(&member.state)).collect()
    }

    /// Why members of the present template cannot be placed.
    pub fn stuck(&self) -> Vec<String> {
        let of_template = self.live().filter(|member| !self.is_stale(member));
        of_template.filter_map(|member| member.unplaceable.clone()).collect()
    }

    /// L5.
    pub fn best(&self) -> Option<Ulid> {
        let running = self.running();
        let mut coming = self.coming();
        coming.retain(|member| member.unplaceable.is_none());
        let begun_first =
            coming.iter().min_by_key(|member| (self.is_stale(member), member.since, member.uid));
        let stopped = self.stopped();
        self.most_useful(&running)
            .or(begun_first.map(|member| member.uid))
            .or_else(|| self.most_useful(&stopped).filter(|_| self.stuck().is_empty()))
    }

    /// Of the present template before stale ones, then the most recently used, ties by uid.
    pub fn most_useful(&self, idle: &[&Member]) -> Option<Ulid> {
        let first =
            idle.iter().min_by_key(|member| (self.is_stale(member), Reverse(member.last_used), member.uid));
        first.map(|member| member.uid)
    }

    /// W5: the most recycled, then the oldest; worn-out ones before all others.
    pub fn by_life<'a>(&self, idle: &[&'a Member]) -> Vec<&'a Member> {
        let mut idle = idle.to_vec();
        idle.sort_by_key(|member| (self.is_fresh(member), Reverse(member.reuses), member.born, member.uid));
        idle
    }

    pub fn least_life<'a>(&self, idle: &[&'a Member]) -> Option<&'a Member> {
        self.by_life(idle).first().copied()
    }

    /// All but those with the most life that the floor keeps.
    pub fn surplus<'a>(&self, idle: &[&'a Member], floor: usize) -> Vec<&'a Member> {
        let mut by_life = self.by_life(idle);
        by_life.truncate(by_life.len().saturating_sub(floor));
        by_life
    }

    pub fn is_stale(&self, member: &Member) -> bool {
        member.template != self.template
    }

    pub fn is_fresh(&self, member: &Member) -> bool {
        !self.is_stale(member) && !member.aged
    }

    pub fn fresh(&self, idle: &[&Member]) -> usize {
        idle.iter().filter(|member| self.is_fresh(member)).count()
    }

    pub fn current(&self, coming: &[&Member]) -> usize {
        coming.iter().filter(|member| !self.is_stale(member)).count()
    }
}
