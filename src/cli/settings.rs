//! Where things are: flags, variables and the client's own settings file, in that order.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Map, Value};

use super::failure::usage;
use super::grammar::Globals;
use crate::client::{Address, Server};

/// The namespace when nothing says another; it always exists.
const LAST_NAMESPACE: &str = "local";

/// The variables of the process that ours depends on.
#[derive(Clone, Debug, Default)]
pub struct Environment(HashMap<String, OsString>);

impl Environment {
    /// The process's own.
    #[must_use]
    pub fn of_process() -> Self {
        const READ: [&str; 8] = [
            "HOME",
            "RL_CONFIG",
            "RL_IDENTITY",
            "RL_NAMESPACE",
            "RL_SERVER",
            "USER",
            "XDG_CONFIG_HOME",
            "XDG_RUNTIME_DIR",
        ];
        let set = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
        Self(READ.into_iter().filter_map(set).collect())
    }

    /// These variables alone.
    #[cfg(test)]
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect())
    }

    /// A variable that is set to something.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// `~/.config/ringleader`.
    pub fn config_dir(&self) -> anyhow::Result<PathBuf> {
        let base = self.path("XDG_CONFIG_HOME").or_else(|| Some(self.path("HOME")?.join(".config")));
        Ok(base
            .context("neither HOME nor XDG_CONFIG_HOME is set: set one, or pass --identity")?
            .join("ringleader"))
    }

    fn settings_file(&self) -> anyhow::Result<PathBuf> {
        match self.path("RL_CONFIG") {
            Some(file) => Ok(file),
            None => Ok(self.config_dir()?.join("client.yaml")),
        }
    }
}

/// The client's settings file, `client.yaml`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: Map<String, Value>,
}

impl Settings {
    /// Reads the file; an absent one is empty.
    pub fn read(environment: &Environment) -> anyhow::Result<Self> {
        let Ok(file) = environment.settings_file() else { return Ok(Self::default()) };
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let values = serde_saphyr::from_str(&text)
            .map_err(|error| usage(format!("{} is not a map of settings: {error}", file.display())))?;
        Ok(Self { values })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Writes one setting into the file, and keeps the others.
    pub fn set(environment: &Environment, name: &str, value: &str) -> anyhow::Result<PathBuf> {
        let mut settings = Self::read(environment)?;
        settings.values.insert(name.to_owned(), value.into());
        let file = environment.settings_file()?;
        write_whole(&file, &serde_saphyr::to_string(&settings.values)?)?;
        Ok(file)
    }
}

/// The namespace to work in: the ladder of flag, variable and settings file.
pub fn namespace(globals: &Globals, environment: &Environment, settings: &Settings) -> String {
    globals
        .namespace
        .as_deref()
        .or_else(|| environment.get("RL_NAMESPACE"))
        .or_else(|| settings.get("namespace"))
        .unwrap_or(LAST_NAMESPACE)
        .to_owned()
}

/// The server to speak to: the same ladder, ending at the places a daemon listens by default.
pub fn address(globals: &Globals, environment: &Environment, settings: &Settings) -> anyhow::Result<Address> {
    let named =
        globals.server.as_deref().or_else(|| environment.get("RL_SERVER")).or_else(|| settings.get("server"));
    if let Some(text) = named {
        return Ok(Address::Named(
            text.parse().map_err(|error: String| usage(format!("--server: {error}")))?,
        ));
    }
    let private = environment.path("XDG_RUNTIME_DIR").map(|dir| dir.join("ringleader/rl.sock"));
    let places = private.into_iter().chain([PathBuf::from("/run/ringleader/rl.sock")]);
    Ok(Address::FirstOf(places.map(Server::Unix).collect()))
}

/// This device's key file: flag, variable, or the one `rl` makes.
pub fn identity(globals: &Globals, environment: &Environment) -> anyhow::Result<PathBuf> {
    match globals.identity.clone().or_else(|| environment.path("RL_IDENTITY")) {
        Some(file) => Ok(file),
        None => Ok(environment.config_dir()?.join("device_ed25519")),
    }
}

/// Replaces a file by rename, so that nobody ever reads half of it. Does nothing where the file
/// already says so.
pub fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    if fs::read_to_string(file).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let write = || -> std::io::Result<()> {
        let dir = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let draft = dir.join(name);
        fs::File::create(&draft)?.write_all(text.as_bytes())?;
        fs::rename(&draft, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globals(namespace: Option<&str>) -> Globals {
        Globals { namespace: namespace.map(str::to_owned), ..Globals::default() }
    }

    #[test]
    fn the_namespace_is_the_flags_then_the_variables_then_the_files_then_local() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().to_str().expect("an UTF-8 path");
        let bare = Environment::from_pairs(&[("HOME", home)]);
        let set = Environment::from_pairs(&[("HOME", home), ("RL_NAMESPACE", "variable")]);
        let read = || Settings::read(&bare).expect("readable settings");

        assert_eq!(namespace(&globals(None), &bare, &read()), "local");
        Settings::set(&bare, "namespace", "file").expect("written");
        Settings::set(&bare, "server", "unix:///a").expect("written");
        assert_eq!(namespace(&globals(None), &bare, &read()), "file");
        assert_eq!(namespace(&globals(None), &set, &read()), "variable");
        assert_eq!(namespace(&globals(Some("flag")), &set, &read()), "flag");
        assert_eq!(
            address(&globals(None), &bare, &read()).expect("an address"),
            Address::Named(Server::Unix("/a".into()))
        );
    }

    #[test]
    fn without_a_name_the_private_socket_is_tried_before_the_machines() {
        let environment = Environment::from_pairs(&[("XDG_RUNTIME_DIR", "/run/user/7")]);
        assert_eq!(
            address(&globals(None), &environment, &Settings::default()).expect("an address"),
            Address::FirstOf(vec![
                Server::Unix("/run/user/7/ringleader/rl.sock".into()),
                Server::Unix("/run/ringleader/rl.sock".into())
            ])
        );
    }
}
