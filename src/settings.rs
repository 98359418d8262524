//! The daemon's settings: `daemon.toml`, its defaults, and what the command line overrides.
//!
//! Every key stands in `config/daemon.toml` with its default and unit; a test keeps the two equal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::object::Span;

/// Where a daemon started by root looks when no `--config` is given.
pub const DEFAULT_FILE: &str = "/etc/ringleader/daemon.toml";

/// The image made of the host's own packages.
const HOST_IMAGE: &str = "host";

/// All the daemon's settings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Everything the daemon keeps: the store, the machines, the images.
    pub data_dir: PathBuf,
    /// The unix socket that `rl` speaks to.
    pub socket: PathBuf,
    /// Providers in the order they are tried for a workstation that pins none.
    pub providers: Vec<String>,
    /// Machines being built at the same time, over all pools.
    pub builds_at_once_max: usize,
    /// Requests being answered at the same time, watches apart; more wait.
    pub requests_at_once_max: usize,
    /// How long a stopping daemon lets requests under way finish.
    pub drain_timeout: Span,
    pub log: Log,
    pub store: Store,
    pub images: Images,
    pub sandbox: Sandbox,
}

/// Where the daemon's log goes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// A tracing filter: `info`, or `info,ringleader::store=debug`.
    pub level: String,
    pub format: LogFormat,
    /// Absent: stderr (which systemd takes to the journal).
    pub directory: Option<PathBuf>,
    /// Files kept in `directory`, one a day.
    pub files_max: usize,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// The embedded store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    pub cache_mib: u64,
    /// Set aside at start and freed when the disk is full, so that releases and deletes still go through.
    pub ballast_mib: u64,
    /// Below this share of free disk nothing is built.
    pub builds_free_percent_min: u8,
    /// Below this share of free disk only releases and deletes are taken.
    pub writes_free_percent_min: u8,
    /// Watch events kept for clients that resume.
    pub watch_events_max: usize,
}

/// What machines boot from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Images {
    /// Absent: `images` in the data directory. On the same file system as the host's /usr, the
    /// host image is made of hard links; elsewhere it is copied.
    pub directory: Option<PathBuf>,
    /// The image of a workstation that names none.
    pub default: Option<String>,
    /// Directories of the host that the `host` image takes in beside what packages own.
    pub host_includes: Vec<PathBuf>,
    /// More images: a name, and a directory or tar archive of a root file system.
    pub named: BTreeMap<String, PathBuf>,
}

/// The embedded provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// The first host user id that members use; each member has 65 536 of its own.
    pub first_id: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let places = Places::of_this_user();
        Self {
            data_dir: places.data_dir,
            socket: places.socket,
            providers: vec!["sandbox".into()],
            builds_at_once_max: 8,
            requests_at_once_max: 256,
            drain_timeout: Span::from_secs(10),
            log: Log::default(),
            store: Store::default(),
            images: Images::default(),
            sandbox: Sandbox::default(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Text, directory: None, files_max: 7 }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            cache_mib: 32,
            ballast_mib: 64,
            builds_free_percent_min: 5,
            writes_free_percent_min: 2,
            watch_events_max: 10_000,
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { first_id: 0x1000_0000 }
    }
}

impl Images {
    /// Where generations are kept.
    #[must_use]
    pub fn directory_in(&self, data_dir: &Path) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| data_dir.join("images"))
    }
}

/// What the command line says over the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub socket: Option<PathBuf>,
}

/// Why the settings cannot be used. The daemon exits with 64.
#[derive(Debug, thiserror::Error)]
pub enum BadSettings {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {message}")]
    Parse { path: PathBuf, message: String },
    #[error("{key}: {message}")]
    Value { key: &'static str, message: String },
}

/// Reads the settings: the file that `overrides` names, else the default file where it exists,
/// else the defaults; then what the command line overrides.
///
/// # Errors
/// When the file cannot be read, has an unknown key or a wrong value.
pub fn load(overrides: &Overrides) -> Result<Settings, BadSettings> {
    let file = match &overrides.config {
        Some(path) => Some(path.clone()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let mut settings = match file {
        Some(path) => {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| BadSettings::Read { path: path.clone(), source })?;
            parse(&text).map_err(|error| BadSettings::Parse {
                path,
                message: error.to_string().trim_end().to_owned(),
            })?
        }
        None => Settings::default(),
    };
    if let Some(data_dir) = &overrides.data_dir {
        settings.data_dir.clone_from(data_dir);
    }
    if let Some(socket) = &overrides.socket {
        settings.socket.clone_from(socket);
    }
    check(&settings)?;
    Ok(settings)
}

/// Reads one settings file's text.
///
/// # Errors
/// When it is not TOML or has a key or value that is not known here.
pub fn parse(text: &str) -> Result<Settings, toml::de::Error> {
    toml::from_str(text)
}

fn check(settings: &Settings) -> Result<(), BadSettings> {
    let value = |key, message: &str| Err(BadSettings::Value { key, message: message.into() });
    if settings.builds_at_once_max == 0 {
        return value("builds_at_once_max", "0 would never build; write at least 1");
    }
    if settings.requests_at_once_max == 0 {
        return value("requests_at_once_max", "0 would never answer; write at least 1");
    }
    if let Some(unknown) = settings.providers.iter().find(|name| *name != "sandbox") {
        let message = format!("{unknown:?} is not a provider; this version has: sandbox");
        return Err(BadSettings::Value { key: "providers", message });
    }
    if settings.store.writes_free_percent_min > settings.store.builds_free_percent_min {
        return value("store.writes_free_percent_min", "must not exceed store.builds_free_percent_min");
    }
    let loud = settings.log.level.split(',').map(str::trim).find(|part| !is_directive(part));
    if let Some(part) = loud {
        let message =
            format!("{part:?} is no level: write off, error, warn, info, debug or trace, or target=level");
        return Err(BadSettings::Value { key: "log.level", message });
    }
    let default = settings.images.default.as_deref().unwrap_or(HOST_IMAGE);
    if default != HOST_IMAGE && !settings.images.named.contains_key(default) {
        let known: Vec<&str> =
            std::iter::once(HOST_IMAGE).chain(settings.images.named.keys().map(String::as_str)).collect();
        let message = format!("there is no image {default:?}: there are {}", known.join(", "));
        return Err(BadSettings::Value { key: "images.default", message });
    }
    if let Some((name, path)) = settings.images.named.iter().find(|(_, path)| !path.exists()) {
        let message = format!("{name}: {} is not there", path.display());
        return Err(BadSettings::Value { key: "images.named", message });
    }
    if settings.sandbox.first_id < 65_536 {
        return value("sandbox.first_id", "must be at least 65536, beyond the host's own ids");
    }
    Ok(())
}

/// Whether a part of a tracing filter says what it means: a lone word that is no level would be
/// taken for the name of a module, and silence everything else.
fn is_directive(part: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    part.contains('=') || LEVELS.contains(&part.to_ascii_lowercase().as_str())
}

/// Where a user's daemon keeps its things by default.
struct Places {
    data_dir: PathBuf,
    socket: PathBuf,
}

impl Places {
    fn of_this_user() -> Self {
        if rustix::process::geteuid().is_root() {
            return Self { data_dir: "/var/lib/ringleader".into(), socket: "/run/ringleader/rl.sock".into() };
        }
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let state =
            std::env::var_os("XDG_STATE_HOME").map_or_else(|| home.join(".local/state"), PathBuf::from);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| state.clone(), PathBuf::from);
        Self { data_dir: state.join("ringleader"), socket: runtime.join("ringleader/rl.sock") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_defaults() {
        assert_eq!(parse("").expect("parses"), Settings::default());
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let error = parse("[store]\ncashe_mib = 3\n").expect_err("refused").to_string();
        assert!(error.contains("cashe_mib"), "{error}");
        assert!(error.contains("cache_mib"), "names the known ones: {error}");
    }

    #[test]
    fn values_that_could_never_work_are_refused_with_the_key() {
        for (text, key) in [
            ("builds_at_once_max = 0", "builds_at_once_max"),
            ("providers = [\"cloud\"]", "providers"),
            ("[store]\nwrites_free_percent_min = 9", "store.writes_free_percent_min"),
            ("[sandbox]\nfirst_id = 0", "sandbox.first_id"),
            ("[log]\nlevel = \"loud\"", "log.level"),
            ("[images]\ndefault = \"ubuntu\"", "images.default"),
            ("[images.named]\nmine = \"/nonexistent\"", "images.named"),
        ] {
            let error = check(&parse(text).expect("parses")).expect_err(text).to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
