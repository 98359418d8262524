//! Every want that was ever made durable, and what no history of them may show. Written apart from
//! the model, so that an error of the model's cannot hide here.

use std::collections::{BTreeMap, BTreeSet};

use ringleader_proof::machine::{Power, RecycleOrder, Want};
use ringleader_proof::object::{LeasePhase, LeaseState};
use ringleader_proof::pool::{Change, Decision, Lease};
use ulid::Ulid;

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The newest want of every member there ever was.
    pub newest: BTreeMap<Ulid, Want>,
    /// Every recycle ever ordered, and whether it is over.
    recycles: BTreeMap<Ulid, (RecycleOrder, Recycle)>,
    /// Keys that were one lease's alone, once it has ended.
    ended_keys: BTreeSet<String>,
    own_keys: BTreeMap<Ulid, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recycle {
    Wanted,
    Over,
}

impl Ledger {
    /// A decision has become durable.
    pub fn durable(&mut self, decision: &Decision) {
        for change in &decision.changes {
            match change {
                Change::PutLease(lease) => {
                    let own = lease.spec.authorized_keys[0].clone();
                    if has_ended(lease) {
                        self.ended_keys.insert(own.clone());
                    }
                    self.own_keys.insert(lease.uid(), own);
                }
                Change::RemoveLease(uid) => self.ended_keys.extend(self.own_keys.get(uid).cloned()),
                _ => {}
            }
        }
        for want in &decision.wants {
            self.wanted(want);
        }
    }

    fn wanted(&mut self, want: &Want) {
        self.check_alone(want);
        let last = self.newest.insert(want.member_uid, want.clone());
        if let Some(last) = &last {
            assert!(want.revision > last.revision, "a want's revision did not rise: {want:?} after {last:?}");
            assert!(!last.gone, "something is wanted of a machine that was ordered gone: {want:?}");
            assert_eq!(
                (&last.machine, &last.setup),
                (&want.machine, &want.setup),
                "another machine is wanted"
            );
        }
        let was = last.and_then(|last| last.recycle);
        if let Some(was) = was
            && want.recycle.is_none_or(|order| order.id != was.id)
        {
            assert!(want.recycle.is_none(), "two nonces for one recycle: {want:?} after {was:?}");
            self.recycles.insert(was.id, (was, Recycle::Over));
        }
        if let Some(order) = want.recycle {
            let known = self.recycles.insert(order.id, (order, Recycle::Wanted));
            let (before, stage) = known.unwrap_or((order, Recycle::Wanted));
            assert_eq!(before, order, "a recycle was ordered twice, differently");
            assert_eq!(stage, Recycle::Wanted, "a recycle that is over is wanted again: {want:?}");
            assert!(known.is_none() || was.is_some(), "a recycle's nonce was used for another: {want:?}");
        }
    }

    /// What may stand in no want, whatever came before.
    fn check_alone(&self, want: &Want) {
        assert!(
            !want.gone || (want.power == Power::Stopped && want.keys.is_empty() && want.recycle.is_none()),
            "a machine that is to go is wanted for something: {want:?}"
        );
        // Case 25.
        let ended = want.keys.iter().find(|key| self.ended_keys.contains(*key));
        assert!(ended.is_none(), "the keys of a lease that has ended are wanted: {want:?}");
    }

    /// After a restart a want is said again. It is the newest that was durable, or it is wrong.
    pub fn again(&self, want: &Want) {
        self.check_alone(want);
        assert_eq!(Some(want), self.newest.get(&want.member_uid), "a restart wants something else");
    }
}

fn has_ended(lease: &Lease) -> bool {
    let released = lease.spec.state != LeaseState::Needed || lease.metadata.deletion_timestamp.is_some();
    released || !matches!(lease.phase, LeasePhase::Pending | LeasePhase::Starting | LeasePhase::Ready)
}
