//! The verbs of the API over any kind.

use std::fmt;
use std::sync::Arc;

use hyper::Method;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::transport::{Ask, json as read_json, send, upgraded, warnings};
use super::{Address, ClientError, Health, Server, Watch};
use crate::object::{Kind, WORKSTATIONS_GROUP};

/// An image of many gigabytes may have to be copied.
const IMAGE_WITHIN_SECS: u64 = 3600;

/// Where an object is, or where a kind's objects are (an empty name).
#[derive(Clone)]
pub struct Target {
    pub kind: &'static Kind,
    /// Absent for cluster-wide kinds, and for a look at all namespaces.
    pub namespace: Option<String>,
    pub name: String,
}

impl Target {
    /// The object `name`; the namespace is left out where the kind has none.
    #[must_use]
    pub fn new(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: kind.namespaced.then(|| namespace.to_owned()), name: name.to_owned() }
    }

    /// All objects of the kind in one namespace, or in all.
    #[must_use]
    pub fn all(kind: &'static Kind, namespace: Option<&str>) -> Self {
        let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
        Self { kind, namespace, name: String::new() }
    }

    /// ` in namespace x`, where it is in one.
    #[must_use]
    pub fn in_namespace(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
    }

    /// The path of all the kind's objects there.
    pub(super) fn collection(&self) -> String {
        let Kind { group, version, plural, .. } = self.kind;
        match &self.namespace {
            Some(namespace) => {
                format!("/apis/{group}/{version}/namespaces/{}/{plural}", escaped(namespace))
            }
            None => format!("/apis/{group}/{version}/{plural}"),
        }
    }

    fn object(&self) -> String {
        format!("{}/{}", self.collection(), escaped(&self.name))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.singular, self.name)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.in_namespace())
    }
}

/// Whether a write is done or only judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Judged as if it were done; nothing is written.
    DryRun,
    Write,
}

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl ListOptions {
    /// The one object of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), labels: None }
    }

    /// The objects that carry these labels.
    #[must_use]
    pub fn labelled(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), fields: None }
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let labels = self.labels.clone().map(|selector| ("labelSelector", selector));
        let fields = self.fields.clone().map(|selector| ("fieldSelector", selector));
        labels.into_iter().chain(fields).collect()
    }
}

/// Objects as of one version.
#[derive(Clone, Debug, Default)]
pub struct ObjectList {
    /// From here a watch goes on.
    pub resource_version: String,
    pub items: Vec<Value>,
}

/// What a delete left behind.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    Gone,
    /// It stays until its finalizers are gone; this is how it stands.
    Terminating(Value),
}

/// A daemon's API.
#[derive(Clone)]
pub struct Client {
    address: Address,
    on_warning: OnWarning,
}

/// What is told the texts of the server's `Warning` headers.
pub type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

impl Client {
    /// A client of the daemon at `address`. Connects with the first request, not before.
    #[must_use]
    pub fn new(address: Address, on_warning: OnWarning) -> Self {
        Self { address, on_warning }
    }

    /// The server that answers now.
    pub async fn server(&self) -> Result<Server, ClientError> {
        Ok(self.address.connect().await?.0)
    }

    /// One object.
    pub async fn get(&self, target: &Target) -> Result<Value, ClientError> {
        self.value(Ask::get(target.object()).about(target)).await
    }

    /// One object, or nothing where there is none.
    pub async fn find(&self, target: &Target) -> Result<Option<Value>, ClientError> {
        match self.get(target).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind that match.
    pub async fn list(&self, target: &Target, options: &ListOptions) -> Result<ObjectList, ClientError> {
        #[derive(Deserialize)]
        struct Listed {
            #[serde(default)]
            metadata: Version,
            #[serde(default)]
            items: Vec<Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Version {
            resource_version: String,
        }
        let path = with_query(target.collection(), &options.query());
        let listed: Listed = read_json(self.send(Ask::get(path).about(target)).await?).await?;
        Ok(ObjectList { resource_version: listed.metadata.resource_version, items: listed.items })
    }

    /// Creates `object` at `target`'s kind and namespace; unknown fields are refused.
    pub async fn create(
        &self,
        target: &Target,
        object: &Value,
        commit: Commit,
    ) -> Result<Value, ClientError> {
        let path = with_query(target.collection(), &write_query(commit));
        self.value(Ask::with(Method::POST, path, object).about(target)).await
    }

    /// Changes an object by RFC 7396; unknown fields are refused.
    pub async fn merge_patch(
        &self,
        target: &Target,
        patch: &Value,
        commit: Commit,
    ) -> Result<Value, ClientError> {
        let path = with_query(target.object(), &write_query(commit));
        let ask = Ask {
            content_type: "application/merge-patch+json",
            ..Ask::with(Method::PATCH, path, patch).about(target)
        };
        self.value(ask).await
    }

    /// Asks for deletion.
    pub async fn delete(&self, target: &Target) -> Result<Deleted, ClientError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        let answer = self.value(Ask::with(Method::DELETE, target.object(), &options).about(target)).await?;
        // An object without a deletionTimestamp is the last state of one that is gone.
        let terminating = answer.pointer("/metadata/deletionTimestamp").is_some()
            && answer.pointer("/metadata/finalizers/0").is_some();
        Ok(if terminating { Deleted::Terminating(answer) } else { Deleted::Gone })
    }

    /// Every change since `resource_version`, in order.
    pub async fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        resource_version: &str,
    ) -> Result<Watch, ClientError> {
        let mut query = options.query();
        query.push(("watch", "true".into()));
        query.push(("allowWatchBookmarks", "true".into()));
        query.push(("resourceVersion", resource_version.to_owned()));
        let path = with_query(target.collection(), &query);
        let response = self.send(Ask::get(path).about(target)).await?;
        Ok(Watch::new(response.into_body()))
    }

    /// A stream to the SSH server inside a workstation, and what it has said already.
    pub async fn ssh(&self, workstation: &Target) -> Result<(UnixStream, Bytes), ClientError> {
        debug_assert_eq!(workstation.kind.group, WORKSTATIONS_GROUP);
        let ask = Ask {
            method: Method::POST,
            upgrade: Some("ringleader-ssh"),
            ..Ask::get(format!("{}/ssh", workstation.object())).about(workstation)
        };
        upgraded(self.send(ask).await?).await
    }

    /// What a pool has counted, as a `WorkstationPoolUsage`. Not found where nobody counts, too.
    pub async fn usage(&self, pool: &Target) -> Result<Value, ClientError> {
        self.value(Ask::get(format!("{}/usage", pool.object())).about(pool)).await
    }

    /// How the daemon is.
    pub async fn health(&self) -> Result<Health, ClientError> {
        read_json(self.send(Ask::get("/ringleader/v1/status".into())).await?).await
    }

    /// The daemon's images: a list of `items`.
    pub async fn images(&self) -> Result<Value, ClientError> {
        self.value(Ask::get("/ringleader/v1/images".into())).await
    }

    /// Takes an image anew; answers how it stands then.
    pub async fn refresh_image(&self, name: &str) -> Result<Value, ClientError> {
        let path = format!("/ringleader/v1/images/{}/refresh", escaped(name));
        let ask = Ask { method: Method::POST, answer_within_secs: IMAGE_WITHIN_SECS, ..Ask::get(path) };
        self.value(ask).await
    }

    async fn value(&self, ask: Ask<'_>) -> Result<Value, ClientError> {
        read_json(self.send(ask).await?).await
    }

    async fn send(&self, ask: Ask<'_>) -> Result<hyper::Response<hyper::body::Incoming>, ClientError> {
        let response = send(&self.address, ask).await?;
        for warning in warnings(&response) {
            (self.on_warning)(&warning);
        }
        Ok(response)
    }
}

fn write_query(commit: Commit) -> Vec<(&'static str, String)> {
    let mut query = vec![("fieldValidation", "Strict".to_owned()), ("fieldManager", "rl".to_owned())];
    if commit == Commit::DryRun {
        query.push(("dryRun", "All".to_owned()));
    }
    query
}

fn with_query(path: String, query: &[(&str, String)]) -> String {
    let pairs: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
    if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_travels_percent_encoded() {
        let query = ListOptions::labelled("pools.ringleader.dev/pool=agents-linux,a!=b").query();
        assert_eq!(
            with_query("/x".into(), &query),
            "/x?labelSelector=pools.ringleader.dev%2Fpool%3Dagents-linux%2Ca%21%3Db"
        );
    }
}
