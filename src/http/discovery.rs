//! What the API serves, for clients that ask before they act: in the plain form of one document a
//! group version, and aggregated into one. Both are made from the registry once, at the start.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::object::{Kind, Registry};

use super::negotiate::{MediaType, first_accepted};
use super::reply::{self, JSON, Reply};
use super::route::{SSH, USAGE, has_ssh, has_usage};
use super::status::Status;

/// Every discovery document.
#[derive(Debug)]
pub struct Discovery {
    core: Document,
    groups: Document,
    /// `APIGroup` by group.
    group: BTreeMap<&'static str, Value>,
    /// `APIResourceList` by group and version.
    resources: BTreeMap<(&'static str, &'static str), Value>,
}

/// One thing to discover, in every form it is asked for.
#[derive(Debug)]
struct Document {
    plain: Tagged,
    v2: Tagged,
    v2beta1: Tagged,
}

/// A body and the tag that tells clients whether theirs is still the same.
#[derive(Debug)]
struct Tagged {
    media_type: &'static str,
    body: Bytes,
    etag: HeaderValue,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Plain,
    V2,
    V2Beta1,
}

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// In the order Kubernetes gives them for custom resources.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];
const SSH_VERBS: [&str; 2] = ["create", "get"];
const USAGE_VERBS: [&str; 1] = ["get"];

impl Discovery {
    /// Of these kinds.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let versions = by_version(registry);
        let mut group: BTreeMap<&'static str, Value> = BTreeMap::new();
        for (name, version) in versions.keys() {
            group.entry(*name).or_insert_with(|| api_group(name, version));
        }
        let groups: Vec<&Value> = versions.keys().map(|(name, _)| &group[name]).collect();
        let plain = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.iter().map(|g| {
            json!({"name": g["name"], "versions": g["versions"], "preferredVersion": g["preferredVersion"]})
        }).collect::<Vec<_>>()});
        let aggregated: Vec<Value> = versions
            .iter()
            .map(|((group, version), kinds)| aggregated_group(group, version, kinds))
            .collect();
        let core = json!({"kind": "APIVersions", "versions": [], "serverAddressByClientCIDRs": []});
        Self {
            core: Document::new(&core, &[]),
            groups: Document::new(&plain, &aggregated),
            resources: versions.iter().map(|(gv, kinds)| (*gv, resource_list(*gv, kinds))).collect(),
            group,
        }
    }

    /// `/api`: the kinds of Kubernetes' own core, of which there are none yet.
    pub fn core(&self, headers: &HeaderMap) -> Result<Reply, Status> {
        self.core.reply(headers)
    }

    /// `/apis`.
    pub fn groups(&self, headers: &HeaderMap) -> Result<Reply, Status> {
        self.groups.reply(headers)
    }

    /// `/apis/<group>`.
    pub fn group(&self, group: &str) -> Reply {
        self.group.get(group).map_or_else(reply::nowhere, |body| reply::json(StatusCode::OK, body))
    }

    /// `/apis/<group>/<version>`.
    pub fn resources(&self, group: &str, version: &str) -> Reply {
        let list = self.resources.get(&(group, version));
        list.map_or_else(reply::nowhere, |body| reply::json(StatusCode::OK, body))
    }
}

impl Document {
    fn new(plain: &Value, groups: &[Value]) -> Self {
        let aggregated = |version: &str| {
            json!({
                "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
                "metadata": {}, "items": groups,
            })
        };
        Self {
            plain: Tagged::new(JSON, plain),
            v2: Tagged::new(V2, &aggregated("v2")),
            v2beta1: Tagged::new(V2BETA1, &aggregated("v2beta1")),
        }
    }

    fn reply(&self, headers: &HeaderMap) -> Result<Reply, Status> {
        let form = first_accepted(headers, Form::of).ok_or_else(|| Status::not_acceptable(JSON))?;
        let tagged = match form {
            Form::Plain => &self.plain,
            Form::V2 => &self.v2,
            Form::V2Beta1 => &self.v2beta1,
        };
        Ok(tagged.reply(headers))
    }
}

impl Tagged {
    fn new(media_type: &'static str, value: &Value) -> Self {
        let body = Bytes::from(value.to_string());
        let hash = STANDARD.encode(Sha256::digest(&body));
        let etag = HeaderValue::from_str(&format!("\"{hash}\"")).expect("base64 is header text");
        Self { media_type, body, etag }
    }

    fn reply(&self, headers: &HeaderMap) -> Reply {
        let fresh = headers.get_all(IF_NONE_MATCH).iter().any(|theirs| theirs == self.etag);
        let mut reply = if fresh {
            let mut reply = Response::new(Either::Left(Full::default()));
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
            reply
        } else {
            reply::bytes(StatusCode::OK, self.media_type, self.body.clone())
        };
        reply.headers_mut().insert(ETAG, self.etag.clone());
        reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        if fresh {
            reply.headers_mut().remove(CONTENT_TYPE);
        }
        reply
    }
}

impl Form {
    fn of(media_type: MediaType<'_>) -> Option<Self> {
        match (media_type.name(), media_type.parameter("as"), media_type.parameter("v")) {
            (JSON | "*/*" | "application/*", None, _) => Some(Self::Plain),
            (JSON, Some("APIGroupDiscoveryList"), Some("v2")) => Some(Self::V2),
            (JSON, Some("APIGroupDiscoveryList"), Some("v2beta1")) => Some(Self::V2Beta1),
            _ => None,
        }
    }
}

type GroupVersion = (&'static str, &'static str);

fn by_version(registry: &Registry) -> BTreeMap<GroupVersion, Vec<&'static Kind>> {
    let mut versions: BTreeMap<GroupVersion, Vec<&'static Kind>> = BTreeMap::new();
    for kind in registry.kinds() {
        versions.entry((kind.group, kind.version)).or_default().push(kind);
    }
    versions
}

fn api_group(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name,
        "versions": [version], "preferredVersion": version,
    })
}

fn resource_list((group, version): GroupVersion, kinds: &[&Kind]) -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"),
        "resources": kinds.iter().flat_map(|kind| resources(kind)).collect::<Vec<_>>(),
    })
}

/// A kind's resource and its subresources, in the plain form.
fn resources(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": VERBS,
    });
    add_names(&mut main, kind);
    main["storageVersionHash"] = json!(storage_version_hash(kind));
    let subresource = |(name, verbs): (&str, &[&str])| {
        json!({
            "name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": verbs,
        })
    };
    std::iter::once(main).chain(subresources(kind).into_iter().map(subresource)).collect()
}

fn aggregated_group(group: &str, version: &str, kinds: &[&Kind]) -> Value {
    json!({
        "metadata": {"name": group, "creationTimestamp": null},
        "versions": [{
            "version": version,
            "resources": kinds.iter().map(|kind| aggregated_resource(kind)).collect::<Vec<_>>(),
            "freshness": "Current",
        }],
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response_kind = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural, "responseKind": response_kind,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": sorted(&VERBS),
    });
    add_names(&mut resource, kind);
    let subresource = |(name, verbs): (&str, &[&str])| json!({"subresource": name, "responseKind": response_kind, "verbs": sorted(verbs)});
    let subresources: Vec<Value> = subresources(kind).into_iter().map(subresource).collect();
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}

fn add_names(resource: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
}

fn subresources(kind: &Kind) -> Vec<(&'static str, &'static [&'static str])> {
    let status = kind.has_status.then_some(("status", STATUS_VERBS.as_slice()));
    let ssh = has_ssh(kind).then_some((SSH, SSH_VERBS.as_slice()));
    let usage = has_usage(kind).then_some((USAGE, USAGE_VERBS.as_slice()));
    status.into_iter().chain(ssh).chain(usage).collect()
}

fn sorted<'a>(verbs: &[&'a str]) -> Vec<&'a str> {
    let mut verbs = verbs.to_vec();
    verbs.sort_unstable();
    verbs
}

/// Changes when the stored form's group, version or kind does, as in Kubernetes.
fn storage_version_hash(kind: &Kind) -> String {
    let hash = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
    STANDARD.encode(&hash[..8])
}
