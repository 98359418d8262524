//! One shared object of any kind, and its address.

use std::fmt;

use crate::object::{Device, Metadata, Namespace, User};

/// A shared object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Namespace(Namespace),
    User(User),
    Device(Device),
}

/// Which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    Namespace,
    User,
    Device,
}

/// The address of a shared object. All of these kinds are cluster-wide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    pub kind: ItemKind,
    pub name: String,
}

impl ItemKey {
    /// The address of `name`.
    #[must_use]
    pub fn new(kind: ItemKind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ItemKind::Namespace => "namespace",
            ItemKind::User => "user",
            ItemKind::Device => "device",
        };
        write!(f, "{kind} {}", self.name)
    }
}

impl Item {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> ItemKind {
        match self {
            Self::Namespace(_) => ItemKind::Namespace,
            Self::User(_) => ItemKind::User,
            Self::Device(_) => ItemKind::Device,
        }
    }

    /// Its address.
    #[must_use]
    pub fn key(&self) -> ItemKey {
        ItemKey::new(self.kind(), &self.metadata().name)
    }

    /// Its metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        match self {
            Self::Namespace(namespace) => &namespace.metadata,
            Self::User(user) => &user.metadata,
            Self::Device(device) => &device.metadata,
        }
    }

    /// Its metadata, to change.
    pub const fn metadata_mut(&mut self) -> &mut Metadata {
        match self {
            Self::Namespace(namespace) => &mut namespace.metadata,
            Self::User(user) => &mut user.metadata,
            Self::Device(device) => &mut device.metadata,
        }
    }
}
