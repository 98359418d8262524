//! From every state there is a good end: when machines do as they are told, everything that was seen
//! is heard, and the owner is there, then all comes to rest, and at rest nobody waits in vain.
//!
//! `stateright`'s own `eventually` is not used: it looks at acyclic paths only. Here the one fair
//! continuation of every state is followed instead, as far as states already known to be good.

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

use crate::machine::Place;
use crate::model::{Action, Event, Late, Lending};
use crate::state::State;
use ringleader_proof::object::{LeasePhase, MemberState};
use ringleader_proof::pool::{Member, WaitsFor};

/// More steps than this, and it does not come to rest.
const STEPS_MAX: usize = 200;

impl Lending {
    /// Whether the fair continuation ends well.
    pub fn goes_well_from(&self, state: &State) -> bool {
        if state.broken.is_some() || self.scope.late == Late::AnyOrder {
            // Another property tells; or a word out of order has left a wrong belief.
            return true;
        }
        let mut way = Vec::new();
        let mut state = state.clone();
        for _ in 0..STEPS_MAX {
            let print = fingerprint(&state);
            if self.good.lock().is_ok_and(|good| good.contains(&print)) {
                break;
            }
            way.push(print);
            match self.fair_step(&state) {
                Some(next) => state = next,
                None if is_well(&state) => break,
                None => return false,
            }
            if way.len() == STEPS_MAX {
                return false;
            }
        }
        if let Ok(mut good) = self.good.lock() {
            good.extend(way);
        }
        true
    }

    /// Where the fair continuation leads, for whoever reads what went wrong.
    pub fn fair_end(&self, mut state: State) -> State {
        for _ in 0..STEPS_MAX {
            match self.fair_step(&state) {
                Some(next) => state = next,
                None => break,
            }
        }
        state
    }

    /// The next thing that happens of itself.
    fn fair_step(&self, state: &State) -> Option<State> {
        if state.ended || state.broken.is_some() {
            return None;
        }
        if !state.up {
            return self.next_state(state, Action::Restart { everything_is_due: false });
        }
        if state.late.is_some() {
            return self.turn(state, &Event::HearLate { again: false }, None);
        }
        let news = |state: &State| {
            let turns = state.machines.keys().map(|uid| self.turn(state, &Event::Hear(*uid), None));
            turns.flatten().find(|next| next != state)
        };
        let moves = || state.machines.keys().find_map(|uid| self.next_state(state, Action::Machine(*uid)));
        moves().or_else(|| news(state))
    }
}

/// At rest, everyone has what can be had.
pub fn is_well(state: &State) -> bool {
    if state.ended {
        return true;
    }
    if state.broken.is_some() {
        return false;
    }
    let row = &state.row.row;
    let members: Vec<&Member> = state.members.iter().map(|member| &*member.row).collect();
    let going = |member: &&&Member| {
        !matches!(member.state, MemberState::IdleRunning | MemberState::IdleStopped | MemberState::Leased)
    };
    let held = |told: &WaitsFor| match told {
        WaitsFor::Release => {
            let taken = |member: &&Member| member.lease.is_some() || member.cordoned;
            members.len() >= row.spec.size.max as usize && members.iter().all(taken)
        }
        WaitsFor::BackOff { .. } => true,
        WaitsFor::Probe { .. }
        | WaitsFor::Room { .. }
        | WaitsFor::Provider { .. }
        | WaitsFor::TemplateFix { .. }
        | WaitsFor::Turn
        | WaitsFor::Paused => false,
    };
    let leases_are_well = state.leases.iter().all(|lease| match lease.row.phase {
        LeasePhase::Pending => lease.row.waits_for.as_ref().is_some_and(held),
        LeasePhase::Ready | LeasePhase::Failed => true,
        LeasePhase::Starting | LeasePhase::Recycling | LeasePhase::Releasing => false,
    });
    let idle = members.iter().filter(|member| member.lease.is_none() && !member.cordoned).count();
    let floors = (row.spec.warm.running + row.spec.warm.stopped) as usize;
    let room = (row.spec.size.max as usize).saturating_sub(members.len());
    let held_back = row.health.back_off.is_some_and(|back_off| back_off.until > crate::NOW);
    let filled = row.is_deleting() || held_back || idle >= floors || room == 0;
    let machines_are_well = members.iter().all(|member| {
        let place = state.machines.get(&member.uid()).map(|machine| machine.place);
        match member.state {
            MemberState::IdleStopped => place == Some(Place::Stopped),
            _ => place == Some(Place::Running),
        }
    });
    leases_are_well && filled && machines_are_well && members.iter().find(going).is_none()
}

fn fingerprint(state: &State) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
