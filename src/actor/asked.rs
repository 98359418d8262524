//! A write on its way to the disk: what must hold, and who waits for the answer.

use std::sync::{Arc, Mutex, PoisonError};

use super::core::Reading;
use super::doors::{Refusal, Verb, Write, Written};
use super::owner::Reply;
use crate::store::{Effect, Precondition};
use crate::view::{Key, View};

/// A write under way: what must hold, and who waits for the answer.
pub(super) struct Asked {
    key: Key,
    pub preconditions: Vec<Precondition>,
    deletes: bool,
    warnings: Vec<String>,
    pub reply: SharedReply,
}

/// The answer travels with the submission; when that is refused, the shell answers instead.
#[derive(Clone)]
pub(super) struct SharedReply(Arc<Mutex<Option<Reply>>>);

impl SharedReply {
    /// Answers, once: whoever comes second is silent.
    pub fn send(&self, answer: Result<Written, Refusal>) {
        let reply = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reply) = reply {
            let _ = reply.send(answer);
        }
    }
}

impl Asked {
    /// A write with its answer's way.
    pub fn new<C>(reading: &Reading<C>, write: &Write, reply: Reply) -> Self {
        let absent = reading.creates.then(|| Precondition::Absent(reading.key.clone()));
        let version =
            reading.expected_version.map(|version| Precondition::Version(reading.key.clone(), version));
        Self {
            key: reading.key.clone(),
            preconditions: absent.into_iter().chain(version).collect(),
            deletes: matches!(write.verb, Verb::Delete { .. }),
            warnings: reading.warnings.clone(),
            reply: SharedReply(Arc::new(Mutex::new(Some(reply)))),
        }
    }

    /// Answers once the write is durable and visible.
    pub fn effect(self, more_warnings: Vec<String>, view: View) -> Effect {
        Box::new(move |committed| {
            let mut warnings = self.warnings;
            warnings.extend(more_warnings);
            let written = committed.resource(&self.key).map(|resource| Written {
                gone: self.deletes && view.get(&self.key).is_none_or(|now| now.uid != resource.uid),
                resource,
                warnings,
            });
            self.reply.send(written.ok_or(Refusal::NotFound));
        })
    }
}
