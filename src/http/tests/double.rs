//! The daemon behind the door, small: one owner of every kind, writing straight to the view.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::actor::doors::{Backend, Call, Health, NoImage, Refusal, Verb, Write, Written};
use crate::clock;
use crate::metrics::Metrics;
use crate::object::{
    Admitted, FieldValidation, Kind, MODIFIED, Mutation, Part, Registry, Rejected, Subject, admit_create,
    admit_update, registry,
};
use crate::provider::CarriedImage;
use crate::view::{self, Applied, Key, Resource, View, ViewWriter};

/// The double.
pub struct House {
    registry: Registry,
    view: View,
    writer: Mutex<ViewWriter>,
    version: AtomicU64,
    /// While true, writes get no answer.
    pub stuck: AtomicBool,
    /// Instead of the next answer.
    pub refusal: Mutex<Option<Refusal>>,
    pub health: Mutex<Health>,
    metrics: Metrics,
    pub images: Mutex<Vec<CarriedImage>>,
    /// What the next SSH client is connected with, and who came.
    pub inside: Mutex<Option<UnixStream>>,
    pub visitors: Mutex<Vec<(String, String, Subject)>>,
}

impl House {
    /// With the namespace `local` in it, on a store that has seen a thousand writes.
    pub fn new() -> Self {
        let (view, mut writer) = view::new(64);
        writer.begin(1000, Vec::new());
        let house = Self {
            registry: registry(),
            metrics: Metrics::new(view.clone()),
            view,
            writer: Mutex::new(writer),
            version: AtomicU64::new(1000),
            stuck: AtomicBool::new(false),
            refusal: Mutex::new(None),
            health: Mutex::new(Health::default()),
            images: Mutex::default(),
            inside: Mutex::new(None),
            visitors: Mutex::new(Vec::new()),
        };
        let kind = house.kind("namespaces");
        let body = json!({"metadata": {"name": "local"}});
        let made = admit_create(kind, body, None, &clock::tick(), FieldValidation::Warn).unwrap();
        house.put(Key::new(kind, None, "local"), made.value);
        house
    }

    /// Writes behind the API's back, as a controller does.
    pub fn put(&self, key: Key, value: Value) -> std::sync::Arc<Resource> {
        let mut writer = self.writer.lock().unwrap();
        let resource = stamped(key, value, self.version.fetch_add(1, Ordering::SeqCst) + 1);
        writer.apply(vec![Applied::Put(resource)]).pop().unwrap()
    }

    /// A kind of the registry.
    pub fn kind(&self, word: &str) -> &'static Kind {
        self.registry.by_word(word).expect("a kind of ours")
    }

    fn decide(&self, write: &Write) -> Result<Written, Refusal> {
        match &write.verb {
            Verb::Create { body } => self.create(write, body.clone()),
            Verb::Update { name, mutation, part } => self.update(write, name, mutation, *part),
            Verb::Delete { name, uid, resource_version } => {
                let key = Key::new(write.kind, write.namespace.as_deref(), name);
                let old = self.view.get(&key).ok_or(Refusal::NotFound)?;
                if uid.is_some_and(|uid| uid != old.uid) {
                    return Err(Refusal::Conflict("the UID in the precondition does not match".into()));
                }
                if resource_version.is_some_and(|version| version != old.version) {
                    return Err(Refusal::Conflict(
                        "the ResourceVersion in the precondition is another".into(),
                    ));
                }
                Ok(self.delete(key, &old, write.dry_run))
            }
        }
    }

    fn create(&self, write: &Write, body: Value) -> Result<Written, Refusal> {
        let namespace = write.namespace.as_deref();
        if let Some(namespace) = namespace {
            let namespaces = self.kind("namespaces");
            let found = self.view.get(&Key::new(namespaces, None, namespace));
            found.ok_or_else(|| Refusal::NoNamespace(namespace.to_owned()))?;
        }
        let made = admit_create(write.kind, body, namespace, &clock::tick(), write.field_validation)
            .map_err(refusal)?;
        let key = Key::new(write.kind, namespace, made.value["metadata"]["name"].as_str().unwrap());
        if self.view.get(&key).is_some() {
            return Err(Refusal::AlreadyExists);
        }
        Ok(self.keep(key, made, write.dry_run))
    }

    fn update(&self, write: &Write, name: &str, mutation: &Mutation, part: Part) -> Result<Written, Refusal> {
        let key = Key::new(write.kind, write.namespace.as_deref(), name);
        let old = self.view.get(&key).ok_or(Refusal::NotFound)?;
        let new =
            admit_update(write.kind, &old.value, mutation, part, write.field_validation).map_err(refusal)?;
        if new.expected_version.is_some_and(|version| version != old.version) {
            return Err(Refusal::Conflict(MODIFIED.into()));
        }
        if !new.changed {
            return Ok(Written { resource: old, gone: false, warnings: new.warnings });
        }
        let leaves = old.value["metadata"].get("deletionTimestamp").is_some()
            && new.value["metadata"].get("finalizers").is_none();
        if leaves {
            return Ok(self.remove(key, &old, write.dry_run));
        }
        Ok(self.keep(key, new, write.dry_run))
    }

    fn delete(&self, key: Key, old: &std::sync::Arc<Resource>, dry_run: bool) -> Written {
        if old.value["metadata"].get("finalizers").is_none() {
            return self.remove(key, old, dry_run);
        }
        let mut value = old.value.clone();
        if value["metadata"].get("deletionTimestamp").is_some() {
            return Written { resource: old.clone(), gone: false, warnings: Vec::new() };
        }
        value["metadata"]["deletionTimestamp"] = json!(clock::now().whole_seconds());
        value["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        Written { resource: self.put(key, value), gone: false, warnings: Vec::new() }
    }

    fn remove(&self, key: Key, old: &std::sync::Arc<Resource>, dry_run: bool) -> Written {
        if dry_run {
            return Written { resource: old.clone(), gone: true, warnings: Vec::new() };
        }
        let mut writer = self.writer.lock().unwrap();
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        let resource = writer.apply(vec![Applied::Removed { key, version }]).pop().unwrap();
        Written { resource, gone: true, warnings: Vec::new() }
    }

    fn keep(&self, key: Key, admitted: Admitted, dry_run: bool) -> Written {
        let Admitted { value, warnings, .. } = admitted;
        let resource = if dry_run {
            std::sync::Arc::new(Resource { key, uid: uid_of(&value), version: 0, value })
        } else {
            self.put(key, value)
        };
        Written { resource, gone: false, warnings }
    }
}

impl Backend for House {
    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn write(&self, write: Write) -> Call<'_, Result<Written, Refusal>> {
        Box::pin(async move {
            assert_eq!(write.by, Subject::user("local"));
            if self.stuck.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let refusal = self.refusal.lock().unwrap().take();
            refusal.map_or_else(|| self.decide(&write), Err)
        })
    }

    fn ssh(&self, namespace: String, name: String, by: Subject) -> Call<'_, Result<UnixStream, Refusal>> {
        Box::pin(async move {
            self.visitors.lock().unwrap().push((namespace, name, by));
            self.inside.lock().unwrap().take().ok_or(Refusal::NotFound)
        })
    }

    fn images(&self) -> Vec<CarriedImage> {
        self.images.lock().unwrap().clone()
    }

    fn refresh_image(&self, name: String, by: Subject) -> Call<'_, Result<CarriedImage, NoImage>> {
        assert_eq!(by, Subject::user("local"));
        Box::pin(async move {
            let mut images = self.images.lock().unwrap();
            let image = images.iter_mut().find(|image| image.name == name);
            let image = image.ok_or(NoImage::NotCarried { name, carried: "host (debian 12)".into() })?;
            image.generation = Some("host/2".into());
            Ok(image.clone())
        })
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn health(&self) -> Health {
        self.health.lock().unwrap().clone()
    }
}

fn stamped(key: Key, mut value: Value, version: u64) -> Resource {
    value["metadata"]["resourceVersion"] = json!(version.to_string());
    Resource { key, uid: uid_of(&value), version, value }
}

fn uid_of(value: &Value) -> ulid::Ulid {
    value["metadata"]["uid"].as_str().unwrap().parse().unwrap()
}

fn refusal(rejected: Rejected) -> Refusal {
    match rejected {
        Rejected::Invalid(errors) => Refusal::Invalid(errors),
        Rejected::BadRequest(why) => Refusal::BadRequest(why),
        Rejected::Conflict(why) => Refusal::Conflict(why),
    }
}
