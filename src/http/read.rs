//! Gets and lists: straight from the view, which shows only what is durable.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::object::{FieldError, FieldReason, FieldSelector, Kind, LabelSelector};
use crate::view::{Listing, Resource, View};

use super::negotiate::Encoding;
use super::query::{Query, unsupported};
use super::reply::Reply;
use super::route::Place;
use super::status::{Asked, Status};

/// Which objects of a kind a list, a watch or a delete of many is about.
#[derive(Clone, Debug)]
pub struct Selection {
    pub kind: &'static Kind,
    pub namespace: Option<String>,
    name: Option<String>,
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

/// A list as it is sent; the metadata come last, as in Kubernetes, and cost no second pass.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListBody<'a> {
    api_version: String,
    items: Vec<Cow<'a, Value>>,
    kind: String,
    metadata: ListMetadata,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    /// Always empty: every list is whole.
    r#continue: &'static str,
    resource_version: String,
}

impl Selection {
    /// Reads the selectors of a request.
    pub fn read(kind: &'static Kind, namespace: Option<String>, query: &Query) -> Result<Self, Status> {
        let labels = query.get("labelSelector").map(LabelSelector::parse);
        let fields = query.get("fieldSelector").map(FieldSelector::parse);
        Ok(Self {
            kind,
            namespace,
            name: None,
            labels: labels.transpose().map_err(Status::bad_request)?,
            fields: fields.transpose().map_err(Status::bad_request)?,
        })
    }

    /// Of these, the one with this name; with none given, all.
    pub fn only(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// Whether an object of the kind and namespace is one of them.
    pub fn matches(&self, value: &Value) -> bool {
        self.name.as_ref().is_none_or(|name| value["metadata"]["name"] == name.as_str())
            && self.labels.as_ref().is_none_or(|labels| labels.matches(value))
            && self.fields.as_ref().is_none_or(|fields| fields.matches(value))
    }

    /// All of them, in one consistent look.
    pub fn list(&self, view: &View) -> Listing {
        let mut listing = view.list(self.kind.group, self.kind.plural, self.namespace.as_deref());
        listing.items.retain(|resource| self.matches(&resource.value));
        listing
    }
}

/// One object.
pub fn get(view: &View, place: &Place, query: &Query, encoding: Encoding) -> Result<Reply, Status> {
    if let Some(asked) = query.resource_version()? {
        not_ahead(asked, view.version())?;
    }
    let resource = view.get(&place.key()).ok_or_else(|| place.target(Asked::Read).not_found())?;
    Ok(object(StatusCode::OK, view, &resource, encoding))
}

/// Every object of a selection. `limit` is a wish that a server may leave unfulfilled: lists are
/// whole, so there is no way to go on, and none that could be stale.
pub fn list(view: &View, selection: &Selection, query: &Query, encoding: Encoding) -> Result<Reply, Status> {
    if query.get("continue").is_some() {
        return Err(Status::bad_request(
            "invalid continue token: lists of this server are whole and give none",
        ));
    }
    let wanted = WantedVersion::read(query)?;
    let listing = selection.list(view);
    wanted.check(listing.version)?;
    Ok(list_of(&listing, selection.kind, encoding))
}

/// The answer that is one object, with what is computed as it is read.
pub fn object(code: StatusCode, view: &View, resource: &Arc<Resource>, encoding: Encoding) -> Reply {
    encoding.reply(code, &*view.read(resource))
}

/// The answer that is a list.
pub fn list_of(listing: &Listing, kind: &Kind, encoding: Encoding) -> Reply {
    let body = ListBody {
        api_version: kind.api_version(),
        items: listing.items.iter().map(|resource| listing.read(resource)).collect(),
        kind: format!("{}List", kind.kind),
        metadata: ListMetadata { r#continue: "", resource_version: listing.version.to_string() },
    };
    encoding.reply(StatusCode::OK, &body)
}

/// How fresh a list has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantedVersion {
    Any,
    NotOlderThan(u64),
    Exactly(u64),
}

impl WantedVersion {
    fn read(query: &Query) -> Result<Self, Status> {
        let forbidden = |message: &str| {
            let message = format!("Forbidden: {message}");
            let error = FieldError::new("resourceVersionMatch", FieldReason::Forbidden, message);
            Status::invalid_option("ListOptions", &error)
        };
        match (query.get("resourceVersionMatch"), query.resource_version()?) {
            (None, None) => Ok(Self::Any),
            (None | Some("NotOlderThan"), Some(version)) => Ok(Self::NotOlderThan(version)),
            (Some("Exact"), Some(0)) => {
                Err(forbidden("resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\""))
            }
            (Some("Exact"), Some(version)) => Ok(Self::Exactly(version)),
            (Some(_), None) => {
                Err(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
            }
            (Some(other), Some(_)) => {
                let message = format!(
                    "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                );
                Err(unsupported("ListOptions", "resourceVersionMatch", message))
            }
        }
    }

    fn check(self, current: u64) -> Result<(), Status> {
        match self {
            Self::Any => Ok(()),
            Self::Exactly(asked) if asked < current => {
                Err(Status::expired(format!("too old resource version: {asked} ({current})")))
            }
            Self::Exactly(asked) | Self::NotOlderThan(asked) => not_ahead(asked, current),
        }
    }
}

fn not_ahead(asked: u64, current: u64) -> Result<(), Status> {
    if asked > current { Err(Status::version_too_large(asked, current)) } else { Ok(()) }
}
