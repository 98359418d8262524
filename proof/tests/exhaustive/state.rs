//! One state of the whole: the rows on disk, the machines as they truly are, and what is on its way.
//! The pool in memory is always what the rows say, so it is not kept; each turn loads it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ulid::Ulid;

use crate::machine::Box_;
use ringleader_proof::pool::{Lease, Member, Pool, PoolRow};
use sha2::{Digest, Sha256};

/// What the checker tells apart. Two equal states have the same future.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub row: Kept<PoolRow>,
    pub leases: Vec<Kept<Lease>>,
    pub members: Vec<Kept<Member>>,
    /// The true state of each member's machine.
    pub machines: BTreeMap<Ulid, Box_>,
    /// What one machine was seen to be once, still on its way to the pool.
    pub late: Option<Word>,
    /// Whether the pool's owner is there. While it is not, machines go on and nobody hears of it.
    pub up: bool,
    pub faults_left: u8,
    pub crashes_left: u8,
    /// The pool's last row is gone.
    pub ended: bool,
    pub broken: Option<Broken>,
}

/// A machine as it was observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    pub member: Ulid,
    pub seen: Box_,
}

/// A rule that a step broke. Nothing follows from such a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broken {
    pub rule: &'static str,
    pub what: String,
}

impl State {
    /// The pool as a restart would find it.
    pub fn load(&self) -> Pool {
        let leases = self.leases.iter().map(|lease| Lease::clone(&lease.row));
        let members = self.members.iter().map(|member| Member::clone(&member.row));
        Pool::load(PoolRow::clone(&self.row.row), leases, members, [])
    }

    /// In a few lines, for whoever reads how a rule was broken.
    pub fn told(&self) -> String {
        let short = |uid: Ulid| uid.random();
        let leases = self.leases.iter().map(|lease| {
            let bond = lease.row.member.as_ref().map(|bond| short(bond.uid));
            format!(
                "lease {} {:?} {:?} on {bond:?}",
                short(lease.row.uid()),
                lease.row.phase,
                lease.row.asked()
            )
        });
        let members = self.members.iter().map(|member| {
            let row = &member.row;
            let bond = row.lease.as_ref().map(|bond| short(bond.uid));
            let machine = self.machines.get(&row.uid());
            let told = format!("member {} {:?} of {bond:?} {:?}", short(row.uid()), row.state, row.wanted);
            format!("{told} {:?} {machine:?}", row.observed.sighting)
        });
        let lines: Vec<String> = leases.chain(members).collect();
        let (up, ended) = (self.up, self.ended);
        format!(
            "{}\nup {up}, ended {ended}, late {:?}, broken {:?}",
            lines.join("\n"),
            self.late,
            self.broken
        )
    }

    pub fn broke(&self, rule: &str) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.rule == rule)
    }
}

/// A row and its digest, by which it is compared: rows are many, and few of them differ.
#[derive(Debug)]
pub struct Kept<T> {
    pub row: Arc<T>,
    digest: u128,
}

impl<T: std::fmt::Debug + PartialEq> Kept<T> {
    /// The same as one of `known`, if it is one of them: that is cheaper to see.
    pub fn again(row: T, known: &[Self]) -> Self {
        known.iter().find(|kept| *kept.row == row).cloned().unwrap_or_else(|| Self::new(row))
    }

    /// Every field tells rows apart, because every field is printed.
    pub fn new(row: T) -> Self {
        let digest = Sha256::digest(format!("{row:?}").as_bytes());
        let (first, _) = digest.split_first_chunk().expect("SHA-256 has 32 bytes");
        Self { row: Arc::new(row), digest: u128::from_be_bytes(*first) }
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self { row: Arc::clone(&self.row), digest: self.digest }
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Kept<T> {}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}
