//! What a path means: one place that knows every address the API has.

use crate::object::{Kind, Registry};
use crate::view::Key;

use super::query::decode;
use super::status::{Asked, Target};

/// The subresource through which a workstation's SSH server is reached.
pub const SSH: &str = "ssh";
/// The resource that has it.
const SSH_PLURAL: &str = "workstations";

/// What a path addresses.
#[derive(Clone, Debug)]
pub enum Route {
    /// `/api`: Kubernetes' own kinds, of which there are none.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/apis/<group>/<version>`.
    Resources {
        group: String,
        version: String,
    },
    /// Every object of a kind, in one namespace or (`None`) in all of them.
    Collection {
        kind: &'static Kind,
        namespace: Option<String>,
    },
    Object {
        place: Place,
        subresource: Subresource,
    },
    /// The old form of a watch, `/apis/<group>/<version>/watch/…`, of all or of one by name.
    Watch {
        kind: &'static Kind,
        namespace: Option<String>,
        name: Option<String>,
    },
    Version,
    Live,
    Ready,
    /// `/metrics`: what a scraper reads.
    Metrics,
    /// `/ringleader/v1/status`: what `rl status` shows.
    Health,
    /// `/ringleader/v1/images`: what `rl image list` shows.
    Images,
    /// `/ringleader/v1/images/<name>/refresh`.
    RefreshImage(String),
    Nowhere,
}

/// Where an object stands.
#[derive(Clone, Debug)]
pub struct Place {
    pub kind: &'static Kind,
    /// Absent for cluster-wide kinds.
    pub namespace: Option<String>,
    pub name: String,
}

/// Which side of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    None,
    Status,
    Ssh,
}

impl Place {
    /// What messages about it need to know.
    pub fn target(&self, asked: Asked) -> Target<'_> {
        Target { kind: self.kind, name: &self.name, asked }
    }

    /// Its address in the view.
    pub fn key(&self) -> Key {
        Key::new(self.kind, self.namespace.as_deref(), &self.name)
    }
}

impl Route {
    /// Reads a path. Slashes at the end and doubled ones do not matter.
    pub fn of(path: &str, registry: &Registry) -> Self {
        let segments: Vec<String> = path.split('/').filter(|s| !s.is_empty()).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match *segments.as_slice() {
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group(group.to_owned()),
            ["apis", group, version] => {
                Self::Resources { group: group.to_owned(), version: version.to_owned() }
            }
            ["apis", group, version, "watch", ref rest @ ..] => {
                Address { registry, group, version }.of(rest).into_watch()
            }
            ["apis", group, version, ref rest @ ..] => Address { registry, group, version }.of(rest),
            ["version"] => Self::Version,
            ["healthz" | "livez"] => Self::Live,
            ["readyz"] => Self::Ready,
            ["metrics"] => Self::Metrics,
            ["ringleader", "v1", "status"] => Self::Health,
            ["ringleader", "v1", "images"] => Self::Images,
            ["ringleader", "v1", "images", name, "refresh"] => Self::RefreshImage(name.to_owned()),
            _ => Self::Nowhere,
        }
    }

    fn into_watch(self) -> Self {
        match self {
            Self::Collection { kind, namespace } => Self::Watch { kind, namespace, name: None },
            Self::Object { place, subresource: Subresource::None } => {
                Self::Watch { kind: place.kind, namespace: place.namespace, name: Some(place.name) }
            }
            _ => Self::Nowhere,
        }
    }
}

/// Whether `kind` has an SSH door.
pub fn has_ssh(kind: &Kind) -> bool {
    kind.plural == SSH_PLURAL
}

/// Resolves what stands behind `/apis/<group>/<version>/`.
struct Address<'a> {
    registry: &'a Registry,
    group: &'a str,
    version: &'a str,
}

impl Address<'_> {
    fn of(&self, rest: &[&str]) -> Route {
        // `namespaces` is also a resource: a third segment that names a namespaced one decides.
        if let ["namespaces", namespace, plural, rest @ ..] = rest
            && let Some(kind) = self.kind(plural).filter(|kind| kind.namespaced)
        {
            return Self::within(kind, Some((*namespace).to_owned()), rest);
        }
        let [plural, rest @ ..] = rest else { return Route::Nowhere };
        match self.kind(plural) {
            Some(kind) if !kind.namespaced || rest.is_empty() => Self::within(kind, None, rest),
            _ => Route::Nowhere,
        }
    }

    fn kind(&self, plural: &str) -> Option<&'static Kind> {
        self.registry.by_plural(self.group, self.version, plural)
    }

    fn within(kind: &'static Kind, namespace: Option<String>, rest: &[&str]) -> Route {
        let (name, subresource) = match *rest {
            [] => return Route::Collection { kind, namespace },
            [name] => (name, Subresource::None),
            [name, "status"] if kind.has_status => (name, Subresource::Status),
            [name, SSH] if has_ssh(kind) => (name, Subresource::Ssh),
            _ => return Route::Nowhere,
        };
        Route::Object { place: Place { kind, namespace, name: name.to_owned() }, subresource }
    }
}
