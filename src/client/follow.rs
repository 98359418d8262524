//! A watch that does not end: it goes on over the server's time limits, a lost history and a
//! restart of the daemon, and tells each change that is still true.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::{Change, Client, ClientError, ListOptions, ObjectList, Target, Watch, WatchEvent};

/// How long a restarting daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// The changes to some objects, from a known state on.
pub struct Follow<'a> {
    client: &'a Client,
    target: Target,
    options: ListOptions,
    version: String,
    /// The objects as last told, by namespace and name: what a new list is compared with.
    known: BTreeMap<(String, String), Value>,
    /// Changes found by a new list and not yet told.
    found: VecDeque<WatchEvent>,
    watch: Option<Watch>,
}

impl<'a> Follow<'a> {
    /// Follows the objects of `list`, which were read with the same target and options.
    #[must_use]
    pub fn new(client: &'a Client, target: Target, options: ListOptions, list: &ObjectList) -> Self {
        let known = list.items.iter().map(|object| (key(object), object.clone())).collect();
        Self {
            client,
            target,
            options,
            version: list.resource_version.clone(),
            known,
            found: VecDeque::new(),
            watch: None,
        }
    }

    /// Follows one object as it was last seen.
    #[must_use]
    pub fn object(client: &'a Client, target: &Target, seen: Value) -> Self {
        let list =
            ObjectList { resource_version: text(&seen, "/metadata/resourceVersion"), items: vec![seen] };
        Self::new(client, target.clone(), ListOptions::named(&target.name), &list)
    }

    /// The next change. Only Added, Modified and Deleted are told.
    pub async fn next(&mut self) -> Result<WatchEvent, ClientError> {
        loop {
            if let Some(event) = self.found.pop_front() {
                return Ok(event);
            }
            match self.read().await {
                Ok(Some(event)) => self.take(event),
                Ok(None) => self.watch = None,
                Err(ClientError::TooOld) => self.compare().await?,
                Err(ClientError::Broken(_)) if self.watch.is_some() => self.watch = None,
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        if self.watch.is_none() {
            let client = self.client;
            let (target, options, version) = (&self.target, &self.options, &self.version);
            self.watch = Some(patiently(|| client.watch(target, options, version)).await?);
        }
        let watch = self.watch.as_mut().expect("a watch was opened above");
        watch.next().await
    }

    fn take(&mut self, event: WatchEvent) {
        self.version = text(&event.object, "/metadata/resourceVersion");
        match event.change {
            Change::Bookmark | Change::Error => return,
            Change::Added | Change::Modified => {
                self.known.insert(key(&event.object), event.object.clone());
            }
            Change::Deleted => {
                self.known.remove(&key(&event.object));
            }
        }
        self.found.push_back(event);
    }

    /// Lists anew after the history was lost, and tells what differs.
    async fn compare(&mut self) -> Result<(), ClientError> {
        self.watch = None;
        let (client, target, options) = (self.client, &self.target, &self.options);
        let list = patiently(|| client.list(target, options)).await?;
        let mut gone = std::mem::take(&mut self.known);
        for object in list.items {
            let change = match gone.remove(&key(&object)) {
                Some(before) if before == object => None,
                Some(_) => Some(Change::Modified),
                None => Some(Change::Added),
            };
            self.known.insert(key(&object), object.clone());
            self.found.extend(change.map(|change| WatchEvent { change, object }));
        }
        let deleted = gone.into_values().map(|object| WatchEvent { change: Change::Deleted, object });
        self.found.extend(deleted);
        self.version = list.resource_version;
        Ok(())
    }
}

/// Repeats a request while nobody answers, for as long as a restart may take.
async fn patiently<T, F>(request: impl Fn() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(patience);
    loop {
        let failure = match request().await {
            Err(error @ (ClientError::NoDaemon { .. } | ClientError::Broken(_))) => error,
            answer => return answer,
        };
        tokio::select! {
            () = &mut patience => return Err(failure),
            () = tokio::time::sleep(RETRY_EVERY) => {}
        }
    }
}

fn key(object: &Value) -> (String, String) {
    (text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
