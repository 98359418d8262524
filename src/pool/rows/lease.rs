//! A lease: a request for one member.

use std::fmt;

use ulid::Ulid;

use crate::object::{
    Condition, FailedReason, LeasePhase, LeaseSpec, LeaseState, LeaseStatus, Metadata, RELEASE_FINALIZER,
    Release, SshAccess, Subject, Time, Truth, WorkstationPoolLease,
};

/// A lease as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub metadata: Metadata,
    pub spec: LeaseSpec,
    pub pool_uid: Ulid,
    /// Who created it. Never changes.
    pub holder: Subject,
    pub phase: LeasePhase,
    /// The generation whose keys are on the member (rule L18).
    pub observed_generation: i64,
    /// The member, while one is bound.
    pub member: Option<Bond>,
    /// While Pending, once the pool has looked.
    pub waits_for: Option<WaitsFor>,
    /// In any other phase: what a person should know, if anything.
    pub message: String,
    /// What the member it is bound to still had to do when it was bound.
    pub start: Option<Start>,
    /// On the steady clock, like what it waited from there until it was first Ready.
    pub asked_at: Time,
    pub waited_millis: Option<i64>,
    pub bound_at: Option<Time>,
    pub ready_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Only while Ready.
    pub ssh: Option<SshAccess>,
    pub release: Option<Release>,
    /// Only when Failed.
    pub reason: Option<FailedReason>,
    /// On the steady clock: one maxTerm after the last renewal, so that a wall clock stepped back
    /// extends nothing (rule L21).
    pub term_ends: Time,
    /// When the condition `Bound` last changed.
    pub bound_changed: Time,
    /// When the condition `Ready` last changed.
    pub ready_changed: Time,
}

/// How a bound lease comes to its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Start {
    /// It was idle and running.
    Warm,
    /// It was stopped, or being started.
    Resumed,
    /// It was being built.
    Cold,
}

/// The other side of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    pub uid: Ulid,
    pub name: String,
}

/// What every waiting lease of a pool waits for (rule L6). Ordered only so that leases can be
/// found by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// The pool is at its size.
    Release,
    /// The template failed too often in a row.
    BackOff { until: Time, failures: u32 },
    /// The back-off is over, and one build tries whether the template is mended.
    Probe { failures: u32 },
    /// The namespace or the provider has no room.
    Room { why: String },
    /// The provider cannot serve now.
    Provider { why: String },
    /// Nothing but a change of the template will help.
    TemplateFix { why: String },
    /// The daemon builds as many members as it may at once.
    Turn,
    /// `spec.paused`.
    Paused,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release => f.write_str("waits for a member to be released: the pool is at its size.max"),
            Self::BackOff { until, failures } => {
                write!(
                    f,
                    "waits for the next build at {until}: the template failed {failures} times in a row"
                )
            }
            Self::Probe { failures } => write!(
                f,
                "waits for a build that tries the template again after {failures} failures in a row"
            ),
            Self::Room { why } => write!(f, "waits for room: {why}"),
            Self::Provider { why } => write!(f, "waits for the provider: {why}"),
            Self::TemplateFix { why } => write!(f, "waits for the template to be fixed: {why}"),
            Self::Turn => {
                f.write_str("waits for its turn: the daemon builds as many members as it may at once")
            }
            Self::Paused => f.write_str("waits for the pool to be resumed: it is paused"),
        }
    }
}

impl Lease {
    /// The lease's uid.
    ///
    /// # Panics
    /// If admission let an object without a uid through.
    pub fn uid(&self) -> Ulid {
        self.metadata.uid.expect("an admitted lease has a uid")
    }

    /// When it was created: its place in the queue, together with the uid.
    pub fn created(&self) -> Time {
        self.metadata.creation_timestamp.unwrap_or_default()
    }

    /// What its holder wants of it now. A delete is a release (rule L12).
    pub const fn asked(&self) -> LeaseState {
        match self.spec.state {
            LeaseState::Needed if self.metadata.deletion_timestamp.is_some() => LeaseState::Done,
            state => state,
        }
    }

    /// Its release is carried out; only foreign finalizers may keep the object.
    pub fn is_over(&self) -> bool {
        !self.metadata.finalizers.iter().any(|finalizer| finalizer == RELEASE_FINALIZER)
    }

    /// When it ends if nobody releases it. Admission and the pool always fill it in.
    pub fn expires_at(&self) -> Time {
        self.spec.expires_at.unwrap_or_default()
    }

    /// The object as the API shows it; `queuePosition` is added when it is read.
    pub fn present(&self) -> WorkstationPoolLease {
        let message = match (&self.waits_for, self.phase) {
            (Some(waits_for), LeasePhase::Pending) => waits_for.to_string(),
            _ => self.message.clone(),
        };
        WorkstationPoolLease {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: LeaseStatus {
                phase: self.phase,
                observed_generation: self.observed_generation,
                pool_uid: Some(self.pool_uid),
                holder: Some(self.holder.clone()),
                workstation_name: self.member.as_ref().map(|member| member.name.clone()),
                workstation_uid: self.member.as_ref().map(|member| member.uid),
                queue_position: None,
                bound_at: self.bound_at,
                ready_at: self.ready_at,
                ended_at: self.ended_at,
                wait_seconds: self.waited_millis.map(|millis| millis / 1000),
                ssh: self.ssh.clone(),
                release: self.release.clone(),
                reason: self.reason,
                conditions: self.conditions(&message),
                message,
            },
        }
    }

    /// `Bound` and `Ready`.
    fn conditions(&self, message: &str) -> Vec<Condition> {
        let condition = |r#type: &str, holds: bool, since: Time, reason: &str| Condition {
            r#type: r#type.into(),
            status: if holds { Truth::True } else { Truth::False },
            observed_generation: self.observed_generation,
            last_transition_time: since,
            reason: reason.into(),
            message: if holds { String::new() } else { message.to_owned() },
        };
        let bound = self.member.is_some();
        let phase = format!("{:?}", self.phase);
        vec![
            condition("Bound", bound, self.bound_changed, if bound { "Bound" } else { &phase }),
            condition("Ready", self.phase == LeasePhase::Ready, self.ready_changed, &phase),
        ]
    }
}
