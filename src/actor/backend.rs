//! The doors of the daemon: routes what comes in over HTTP to the object's owner, or to its machine.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use ulid::Ulid;

use super::core::Sources;
use super::directory::Directory;
use super::doors::{Backend, Call, Health, NoImage, ProviderHealth, Refusal, Verb, Write, Written};
use super::owner::Ask;
use super::reading::judge;
use super::supervisor::{GivenUp, Start, Supervisor};
use crate::clock;
use crate::metrics::Metrics;
use crate::object::{
    CORE_GROUP, FieldError, FieldReason, POOL_LABEL, Registry, Subject, VERSION, WORKSTATIONS_GROUP,
};
use crate::provider::{Availability, CarriedImage, Door};
use crate::store::{OwnerId, Space};
use crate::view::{Key, Resource, View};

/// How long a write may take to be durable before its client is told to read it back.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The rest of the daemon, as the front end sees it.
pub struct Doors {
    pub sources: Sources,
    pub directory: Directory,
    pub supervisor: Addr<Supervisor>,
    pub given_up: GivenUp,
    pub instance: Ulid,
    pub data_dir: String,
}

impl Backend for Doors {
    fn registry(&self) -> &Registry {
        &self.sources.registry
    }

    fn view(&self) -> &View {
        &self.sources.view
    }

    fn write(&self, write: Write) -> Call<'_, Result<Written, Refusal>> {
        Box::pin(async move {
            let owner = self.owner_of(&write)?;
            if self.given_up.has(&owner) {
                return Err(Refusal::Unavailable(format!(
                    "the {owner} was given up after repeated failures: restart the daemon"
                )));
            }
            let (reply, answer) = oneshot::channel();
            let ask = Ask { write, reply };
            match self.directory.owner(&owner) {
                Some(door) => door.ask.do_send(ask),
                None => self.supervisor.do_send(Start { owner, ask: Some(ask) }),
            }
            match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
                Ok(Ok(answer)) => answer,
                // Dropped unanswered: its owner died. What it had submitted may still land.
                Ok(Err(_)) | Err(_) => Err(Refusal::Timeout),
            }
        })
    }

    fn ssh(&self, namespace: String, name: String, _by: Subject) -> Call<'_, Result<UnixStream, Refusal>> {
        Box::pin(async move {
            let workstation = self.workstation(&namespace, &name).ok_or(Refusal::NotFound)?;
            let text = |pointer| {
                workstation.value.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default()
            };
            let (wanted, phase) = (text("/status/provider"), text("/status/phase"));
            let provider = self.directory.providers().iter().find(|provider| provider.name() == wanted);
            let provider = provider.ok_or_else(|| not_running(&workstation.key.name, phase))?;
            provider.link(workstation.uid, Door::Ssh).await.map_err(|error| {
                tracing::debug!(%error, workstation = workstation.key.name, "no way in");
                not_running(&workstation.key.name, phase)
            })
        })
    }

    fn images(&self) -> Vec<CarriedImage> {
        self.sources.providers.iter().flat_map(|provider| provider.images()).collect()
    }

    fn refresh_image(&self, name: String, by: Subject) -> Call<'_, Result<CarriedImage, NoImage>> {
        Box::pin(async move {
            if !crate::access::is_administrator(&by) {
                let why = "only an administrator of this daemon takes images anew";
                return Err(NoImage::Forbidden(why.into()));
            }
            let providers = &self.sources.providers;
            let carries = |image: &CarriedImage| image.name == name;
            if let Some(provider) = providers.iter().find(|provider| provider.images().iter().any(carries)) {
                let taken = provider.refresh_image(name).await;
                return taken.map_err(|error| NoImage::Failed(error.to_string()));
            }
            let words: Vec<String> = self.images().iter().map(CarriedImage::words).collect();
            let carried = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
            Err(NoImage::NotCarried { name, carried })
        })
    }

    fn metrics(&self) -> &Metrics {
        &self.sources.metrics
    }

    fn health(&self) -> Health {
        let mut not_ready = self.given_up.sentences();
        if (self.sources.space)() == Space::ReleasesOnly {
            not_ready
                .push("the disk of the data directory is full: only releases and deletes are taken".into());
        }
        let providers = self.directory.providers().iter().map(|provider| {
            let (state, message) = match provider.availability() {
                Availability::Available => ("available", String::new()),
                Availability::Unavailable(why) => ("unavailable", why),
                Availability::Unknown => ("unknown", String::new()),
            };
            ProviderHealth { name: provider.name().into(), state: state.into(), message }
        });
        Health {
            not_ready,
            providers: providers.collect(),
            instance: self.instance.to_string(),
            data_dir: self.data_dir.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl Doors {
    /// Who alone writes the object that `write` is about.
    fn owner_of(&self, write: &Write) -> Result<OwnerId, Refusal> {
        if let Some(namespace) = &write.namespace {
            self.check_namespace(namespace)?;
        }
        self.check_disk(write)?;
        let creates = matches!(write.verb, Verb::Create { .. });
        match (write.kind.kind, creates) {
            ("Namespace" | "User" | "Device", _) => Ok(OwnerId::Catalog),
            ("WorkstationPool", true) => Ok(OwnerId::Pool(new_uid())),
            ("WorkstationPool", false) => Ok(OwnerId::Pool(self.found(write)?.uid)),
            ("WorkstationPoolLease", true) => self.pool_of_new_lease(write),
            ("WorkstationPoolLease", false) => {
                let lease = self.found(write)?;
                let uid = lease.value.pointer("/status/poolUID").and_then(|uid| uid.as_str());
                uid.and_then(|uid| uid.parse().ok()).map(OwnerId::Pool).ok_or(Refusal::NotFound)
            }
            ("Workstation", true) => Ok(OwnerId::Fleet(write.namespace.clone().unwrap_or_default())),
            ("Workstation", false) => Ok(self.owner_of_workstation(&*self.found(write)?)),
            ("Event", _) => {
                Err(Refusal::Forbidden("events are written by the server and expire by themselves".into()))
            }
            (_, true | false) => Err(Refusal::NotFound),
        }
    }

    fn check_namespace(&self, namespace: &str) -> Result<(), Refusal> {
        let key = self.key(CORE_GROUP, "namespaces", None, namespace).ok_or(Refusal::NotFound)?;
        if self.sources.view.get(&key).is_some() {
            return Ok(());
        }
        Err(Refusal::NoNamespace(namespace.to_owned()))
    }

    /// On a disk that is nearly full only what ends things is taken.
    fn check_disk(&self, write: &Write) -> Result<(), Refusal> {
        let ends = match &write.verb {
            Verb::Delete { .. } => true,
            Verb::Update { .. } => write.kind.kind == "WorkstationPoolLease",
            Verb::Create { .. } => false,
        };
        if !ends && (self.sources.space)() == Space::ReleasesOnly {
            let why = "the disk of the data directory is full: only releases and deletes are taken; free some space";
            return Err(Refusal::Unavailable(why.into()));
        }
        Ok(())
    }

    /// The pool a new lease names, of its own namespace (rule L1).
    fn pool_of_new_lease(&self, write: &Write) -> Result<OwnerId, Refusal> {
        let Verb::Create { body } = &write.verb else { return Err(Refusal::NotFound) };
        let name =
            body.pointer("/spec/workstationPoolRef/name").and_then(|name| name.as_str()).unwrap_or_default();
        let path = "spec.workstationPoolRef.name";
        let namespace = write.namespace.as_deref();
        let pool = self.key(WORKSTATIONS_GROUP, "workstationpools", namespace, name);
        if let Some(pool) = pool.and_then(|key| self.sources.view.get(&key)) {
            return Ok(OwnerId::Pool(pool.uid));
        }
        // Nobody owns it, so that whatever else is wrong with it is told here.
        let mut wrong = match judge(write, None, &clock::tick()) {
            Ok(_) => Vec::new(),
            Err(Refusal::Invalid(wrong)) => wrong,
            Err(other) => return Err(other),
        };
        if !wrong.iter().any(|error| path.starts_with(&error.path)) {
            let place = namespace.unwrap_or_default();
            let message = format!("Not found: there is no pool {name:?} in namespace {place}");
            wrong.push(FieldError::new(path, FieldReason::NotFound, message));
        }
        Err(Refusal::Invalid(wrong))
    }

    fn owner_of_workstation(&self, workstation: &Resource) -> OwnerId {
        let namespace = workstation.key.namespace.clone();
        let pool = workstation.value.pointer("/metadata/labels").and_then(|labels| labels.get(POOL_LABEL));
        let key = pool
            .and_then(|name| name.as_str())
            .and_then(|name| self.key(WORKSTATIONS_GROUP, "workstationpools", Some(&namespace), name));
        // The label is the server's own: a workstation that carries it belongs to that pool.
        key.and_then(|key| self.sources.view.get(&key))
            .map_or(OwnerId::Fleet(namespace), |pool| OwnerId::Pool(pool.uid))
    }

    /// A workstation by its own name, or by that of the lease that holds it.
    fn workstation(&self, namespace: &str, name: &str) -> Option<Arc<Resource>> {
        let by_name = |plural, name: &str| {
            self.key(WORKSTATIONS_GROUP, plural, Some(namespace), name)
                .and_then(|key| self.sources.view.get(&key))
        };
        by_name("workstations", name).or_else(|| {
            let lease = by_name("workstationpoolleases", name)?;
            let member = lease.value.pointer("/status/workstationName")?.as_str()?;
            by_name("workstations", member)
        })
    }

    fn found(&self, write: &Write) -> Result<Arc<Resource>, Refusal> {
        let key = Key::new(write.kind, write.namespace.as_deref(), write.verb.name());
        self.sources.view.get(&key).ok_or(Refusal::NotFound)
    }

    fn key(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Option<Key> {
        let kind = self.sources.registry.by_plural(group, VERSION, plural)?;
        Some(Key::new(kind, namespace, name))
    }
}

fn new_uid() -> Ulid {
    let tick = clock::tick();
    Ulid::from_parts(tick.wall.millis().try_into().unwrap_or(0), tick.entropy)
}

fn not_running(name: &str, phase: &str) -> Refusal {
    Refusal::Unavailable(match phase {
        "Stopped" | "Failed" | "Deleting" => format!("workstation/{name} is {phase}: there is no way in"),
        _ => format!(
            "workstation/{name} is {phase} and has no SSH server up yet: wait with `rl wait workstation {name}`"
        ),
    })
}
