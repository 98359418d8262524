//! What machines report, and what it means.

use ringleader_proof::machine::{Fact, Machine, RecycleStage};
use ringleader_proof::object::{FailedReason, MemberState, Time};
use ringleader_proof::pool::Sighting;
use ulid::Ulid;

use super::{Member, Naive, Now, Seen};

/// F1.
pub const BUILD_MILLIS: i64 = 30 * 60_000;
/// L17.
pub const BACK_MILLIS: i64 = 5 * 60_000;

impl Naive {
    pub fn hear(&mut self, fact: &Fact, now: Now<'_>) {
        let known = self.members.iter().any(|member| member.uid == fact.member_uid && !member.over);
        if !known {
            return;
        }
        let template = self.template.clone();
        let member = self.member(fact.member_uid);
        if is_late(member, fact) {
            return;
        }
        // A member moves on only by a sight that had its newest wish.
        let abreast = fact.observed_revision == member.wish.revision;
        look(member, fact);
        let (uid, state, current) = (member.uid, member.state, member.template == template);
        // One line for each state and what is seen in it.
        #[expect(clippy::match_same_arms, clippy::collapsible_match, reason = "it is read as a table")]
        match (state, &fact.machine) {
            (MemberState::Recycling, _) => self.hear_of_recycle(fact, now),
            (MemberState::Deleting, Machine::Absent) if abreast && member.is_gone() => {
                member.over = true;
                self.members.retain(|member| !member.over || member.foreign);
            }
            (MemberState::Deleting, _) => {}

            (MemberState::Building, Machine::Running(running)) if abreast && running.configured => {
                arrive(member, now.steady);
                member.last_used = now.steady;
                self.ever_ready = true;
                if current {
                    self.failures = 0;
                    self.back_off = None;
                }
            }
            (MemberState::Building, Machine::Running(_) | Machine::Booting) => {
                if member.unplaceable.take().is_some() {
                    member.build_by = Some(now.steady.plus_millis(BUILD_MILLIS));
                }
            }
            (MemberState::Building, Machine::Failed(_)) => self.fail_build(uid, now),
            (MemberState::Building | MemberState::Starting, Machine::Unplaceable { why }) => {
                member.unplaceable = Some(why.clone());
                member.build_by = None;
                member.down_since = None;
                self.send_back(uid);
            }
            (MemberState::Building, _) => {}

            (_, Machine::Absent | Machine::Failed(_)) => self.lose(uid, now),
            (MemberState::Starting, Machine::Running(_)) if abreast && member.seen.configured => {
                arrive(member, now.steady);
            }
            (MemberState::Starting, Machine::Running(_) | Machine::Booting) => {
                if member.unplaceable.take().is_some() {
                    member.down_since = Some(now.steady);
                }
            }
            (MemberState::Leased, Machine::Running(_) | Machine::Booting) => {
                // L17: one that started anew by itself is not back before it is configured.
                if member.seen.configured {
                    member.down_since = None;
                } else {
                    member.down_since = member.down_since.or(Some(now.steady));
                }
            }
            (MemberState::Leased, Machine::Stopped) => {
                member.down_since = member.down_since.or(Some(now.steady));
            }
            (MemberState::IdleRunning, Machine::Stopped) => {
                member.enter(MemberState::IdleStopped, now.steady);
            }
            (MemberState::Stopping, Machine::Stopped) if abreast => {
                member.enter(MemberState::IdleStopped, now.steady);
            }
            _ => {}
        }
    }

    /// R3, R4, L17: whatever makes it doubtful ends it.
    fn hear_of_recycle(&mut self, fact: &Fact, now: Now<'_>) {
        let member = self.member(fact.member_uid);
        let order = member.recycle.expect("a recycling member has an order");
        let stage = fact.recycle.as_ref().filter(|report| report.id == order.id).map(|report| &report.stage);
        let first_boot = member.recycle_boot;
        let doubtful = match &fact.machine {
            Machine::Absent | Machine::Failed(_) => true,
            Machine::Stopped => first_boot.is_some() && !order.reboot,
            Machine::Running(running) => {
                !order.reboot && first_boot.is_some_and(|boot| boot != running.boot_id)
            }
            _ => false,
        };
        if doubtful || matches!(stage, Some(RecycleStage::Failed(_))) {
            self.fail_recycle(fact.member_uid, FailedReason::RecycleFailed, now);
            return;
        }
        match &fact.machine {
            Machine::Stopped => member.down_since = member.down_since.or(Some(now.steady)),
            Machine::Running(running) => {
                member.recycle_boot = first_boot.or(Some(running.boot_id));
                if !member.seen.configured {
                    return;
                }
                member.down_since = None;
                if stage == Some(&RecycleStage::Succeeded) && member.has_its_keys() {
                    self.end_recycle(fact.member_uid, now);
                }
            }
            _ => {}
        }
    }

    /// F1 to F3. A build of an older template, or one without room, says nothing of this one.
    pub fn fail_build(&mut self, uid: Ulid, now: Now<'_>) {
        let member = self.get_member(uid).expect("a member").clone();
        if member.template == self.template && member.unplaceable.is_none() {
            self.warned.push("TemplateFailed".into());
            self.failures += 1;
            let minute = 60_000;
            match self.back_off {
                None if self.failures >= 3 => {
                    self.back_off = Some((now.steady, now.steady.plus_millis(minute)));
                }
                Some((began, until)) if member.since >= until => {
                    let wait = (2 * until.millis_since(began)).min(60 * minute);
                    self.back_off = Some((now.steady, now.steady.plus_millis(wait)));
                }
                _ => {}
            }
        }
        self.lose(uid, now);
    }
}

/// It is up and configured: it serves its lease, or waits for one.
fn arrive(member: &mut Member, steady: Time) {
    if member.lease.is_some() {
        member.enter(MemberState::Leased, steady);
        member.for_stopped = false;
    } else {
        member.enter(MemberState::IdleRunning, steady);
    }
}

/// Of an older wish than one already taken in, of one that was never made, or of a boot that has
/// ended.
fn is_late(member: &Member, fact: &Fact) -> bool {
    let seen = &member.seen;
    if fact.observed_revision < seen.revision || fact.observed_revision > member.wish.revision {
        return true;
    }
    let (Machine::Running(running), Some(last)) = (&fact.machine, seen.boot) else { return false };
    let has_ended = matches!(seen.sighting, Sighting::Stopped | Sighting::Absent);
    running.boot_id < last || (has_ended && running.boot_id == last)
}

/// Takes in what is seen. What is as it was is not written down, its newer revision neither.
fn look(member: &mut Member, fact: &Fact) {
    let mut seen = Seen { revision: fact.observed_revision, ..member.seen.clone() };
    let was_up = seen.sighting == Sighting::Running;
    let mut down = |sighting: Sighting, message: &str| {
        seen.sighting = sighting;
        message.clone_into(&mut seen.message);
        seen.configured = false;
        seen.keys = 0;
        seen.sessions = 0;
    };
    match &fact.machine {
        // What was up stays so until something says otherwise.
        Machine::Unknown { .. } | Machine::Booting if was_up => return,
        Machine::Unknown { why } | Machine::Unplaceable { why } => seen.message.clone_from(why),
        Machine::Booting => down(Sighting::Booting, ""),
        Machine::Stopped => down(Sighting::Stopped, ""),
        Machine::Stopping => down(Sighting::Stopping, ""),
        Machine::Absent => down(Sighting::Absent, ""),
        Machine::Failed(failure) => down(Sighting::Failed, &failure.message),
        Machine::Running(running) => {
            if !was_up || member.seen.boot != Some(running.boot_id) {
                down(Sighting::Running, "");
            }
            seen.boot = Some(running.boot_id);
            seen.started_at = Some(running.started_at);
            seen.configured |= running.configured;
            if running.keys_confirmed && fact.observed_revision >= member.wish.keys_since {
                seen.keys = member.wish.keys_since;
            }
            seen.capabilities.clone_from(&running.agent.capabilities);
            seen.introduced = !running.agent.login_user.is_empty();
            seen.sessions = running.sessions;
            seen.message = String::new();
        }
    }
    if (Seen { revision: 0, ..seen.clone() }) != (Seen { revision: 0, ..member.seen.clone() }) {
        member.seen = seen;
    }
}
