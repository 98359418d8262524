//! Where everybody is: owners by id, member actors by uid.
//!
//! Addresses change when an actor is rebuilt, so nobody keeps one: what is sent goes through here
//! and reaches the present incarnation, or nobody. Both losses are mended by the next pass.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use actix::{Actor, Addr, ArbiterHandle, Recipient};
use ulid::Ulid;

use super::member::{MemberActor, Surroundings, Wanted};
use super::owner::{Ask, Heard, InputsChanged, Orphaned};
use crate::machine::{Fact, Want};
use crate::provider::Providers;
use crate::store::OwnerId;

/// The ways to reach one owner, whatever its core.
#[derive(Clone)]
pub struct OwnerDoor {
    pub ask: Recipient<Ask>,
    pub heard: Recipient<Heard>,
    pub inputs: Recipient<InputsChanged>,
    pub orphaned: Recipient<Orphaned>,
}

/// A clonable handle to the one directory of a daemon.
#[derive(Clone)]
pub struct Directory(Arc<Inner>);

struct Inner {
    owners: Mutex<HashMap<OwnerId, OwnerDoor>>,
    members: Mutex<HashMap<Ulid, Addr<MemberActor>>>,
    arbiters: Vec<ArbiterHandle>,
    next_arbiter: AtomicUsize,
    providers: Providers,
    around: OnceLock<Surroundings>,
}

impl Directory {
    /// Over `arbiters`, on which owners and members are spread.
    #[must_use]
    pub fn new(arbiters: Vec<ArbiterHandle>, providers: Providers) -> Self {
        Self(Arc::new(Inner {
            owners: Mutex::default(),
            members: Mutex::default(),
            arbiters,
            next_arbiter: AtomicUsize::new(0),
            providers,
            around: OnceLock::new(),
        }))
    }

    /// Gives member actors their surroundings; once, before the first want.
    pub fn furnish(&self, around: Surroundings) {
        let _ = self.0.around.set(around);
    }

    /// The providers, in the order they are tried.
    #[must_use]
    pub fn providers(&self) -> &Providers {
        &self.0.providers
    }

    /// The arbiter whose turn it is.
    ///
    /// # Panics
    /// If the daemon was started with no arbiter.
    #[must_use]
    pub fn arbiter(&self) -> &ArbiterHandle {
        let turn = self.0.next_arbiter.fetch_add(1, Ordering::Relaxed);
        &self.0.arbiters[turn % self.0.arbiters.len()]
    }

    /// From now on `owner` is reached here.
    pub fn enter_owner(&self, owner: OwnerId, door: OwnerDoor) {
        lock(&self.0.owners).insert(owner, door);
    }

    /// `owner` has stopped, for now or for good.
    pub fn forget_owner(&self, owner: &OwnerId) {
        lock(&self.0.owners).remove(owner);
    }

    /// The way to `owner`, while it is up.
    #[must_use]
    pub fn owner(&self, owner: &OwnerId) -> Option<OwnerDoor> {
        lock(&self.0.owners).get(owner).cloned()
    }

    /// Tells every owner to look at its inputs again.
    pub fn inputs_changed(&self) {
        for door in lock(&self.0.owners).values() {
            door.inputs.do_send(InputsChanged);
        }
    }

    /// Tells these owners to look again, in this order.
    pub fn call(&self, owners: &[OwnerId]) {
        for owner in owners {
            if let Some(door) = self.owner(owner) {
                door.inputs.do_send(InputsChanged);
            }
        }
    }

    /// Passes a member's fact to its owner; dropped while the owner is being rebuilt, which then
    /// asks all its members again.
    pub fn tell_owner(&self, owner: &OwnerId, fact: Fact) {
        if let Some(door) = self.owner(owner) {
            door.heard.do_send(Heard(fact));
        }
    }

    /// Passes a want to its member's actor, starting one where there is none yet.
    pub fn deliver(&self, owner: &OwnerId, want: Want) {
        let mut members = lock(&self.0.members);
        let known = members.get(&want.member_uid).filter(|addr| addr.connected()).cloned();
        let addr = known.or_else(|| {
            let provider =
                self.0.providers.iter().find(|provider| provider.name() == want.machine.provider)?;
            let (uid, owner) = (want.member_uid, owner.clone());
            let (provider, around) = (provider.clone(), self.0.around.get()?.clone());
            let addr = MemberActor::start_in_arbiter(self.arbiter(), move |_| {
                MemberActor::new(uid, owner, provider, around)
            });
            members.insert(uid, addr.clone());
            Some(addr)
        });
        drop(members);
        match addr {
            Some(addr) => addr.do_send(Wanted(want)),
            None => {
                tracing::error!(provider = want.machine.provider, member = %want.member_uid, "no such provider");
            }
        }
    }

    /// A member actor whose machine is gone has ended.
    pub fn forget_member(&self, member_uid: Ulid) {
        lock(&self.0.members).remove(&member_uid);
    }

    /// A member actor died in the middle: its owner sends its want again, to a fresh one.
    pub fn member_died(&self, owner: &OwnerId, member_uid: Ulid) {
        self.forget_member(member_uid);
        if let Some(door) = self.owner(owner) {
            door.orphaned.do_send(Orphaned(member_uid));
        }
    }
}

/// The maps stay whole whatever panicked beside them: every change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
