//! What every client command works with.

use std::path::PathBuf;

use super::console::Console;
use super::grammar::Globals;
use super::settings::{self, Environment, Settings};
use crate::client::{Client, Target};
use crate::object::{Kind, Registry, registry};

/// A client of one daemon, in one namespace, with the person's streams.
pub struct Session {
    pub client: Client,
    pub registry: Registry,
    pub console: Console,
    pub environment: Environment,
    pub globals: Globals,
    /// Where commands work that say no other: the end of the ladder.
    pub namespace: String,
}

impl Session {
    /// Reads flags, variables and settings. Connects to nothing yet.
    pub fn new(globals: Globals, environment: Environment, console: Console) -> anyhow::Result<Self> {
        let settings = Settings::read(&environment)?;
        let address = settings::address(&globals, &environment, &settings)?;
        let namespace = settings::namespace(&globals, &environment, &settings);
        let client = Client::new(address, console.warner());
        Ok(Self { client, registry: registry(), console, environment, globals, namespace })
    }

    /// The object `name` of a kind, in the session's namespace.
    pub fn target(&self, kind: &'static Kind, name: &str) -> Target {
        Target::new(kind, &self.namespace, name)
    }

    /// All objects of a kind in the session's namespace.
    pub fn all(&self, kind: &'static Kind) -> Target {
        Target::all(kind, Some(&self.namespace))
    }

    /// This device's key file.
    pub fn identity(&self) -> anyhow::Result<PathBuf> {
        settings::identity(&self.globals, &self.environment)
    }

    /// ` -n NAMESPACE`, where a suggested command needs it to mean the same.
    pub fn namespace_flag(&self) -> String {
        let globals = Globals { namespace: None, ..self.globals.clone() };
        let settings = Settings::read(&self.environment).unwrap_or_default();
        let without = settings::namespace(&globals, &self.environment, &settings);
        if without == self.namespace { String::new() } else { format!(" -n {}", self.namespace) }
    }
}
