//! Image generations: immutable root file systems that members are made from.
//!
//! ```text
//! <dir>/<name>/<ulid>/root             what machines see
//!                     generation.json  what it is, and when it was taken
//!             /.building-<ulid>        unfinished; removed at the next start
//! ```
//!
//! A generation is built aside, synced and renamed, and never changed again. A member names the
//! generation its disk was made over, and keeps it for life: a live host directory under an
//! overlay breaks when the host upgrades. The newest generation of a name is the current one.

mod alternatives;
mod etc;
mod host;
mod named;
mod release;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::clock;
use crate::object::{Image, Time};
use release::Release;

/// The image made of this host's own packages.
pub const HOST: &str = "host";
/// Where the host's root is.
const HOST_ROOT: &str = "/";

/// What there is to make machines from.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    /// Where generations are kept; made with mode 0700.
    pub dir: PathBuf,
    /// A name, and a directory or tar archive of a root file system.
    pub named: BTreeMap<String, PathBuf>,
    /// The image of a machine that names none.
    pub default: String,
    /// Directories of the host that its own image takes in beside what packages own.
    pub host_includes: Vec<PathBuf>,
}

/// The images of one daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Images {
    options: Arc<ImageOptions>,
}

/// One immutable root file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    pub name: String,
    /// What members record: `host/01J…`.
    pub id: String,
    pub root: PathBuf,
}

/// One image, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageInfo {
    pub name: String,
    pub distribution: String,
    pub version: String,
    pub os: String,
    /// Where generations are taken from.
    pub source: PathBuf,
    /// Whether machines that name no image get this one.
    pub is_default: bool,
    /// Oldest first; the last one is current.
    pub generations: Vec<GenerationInfo>,
}

/// One generation, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationInfo {
    pub id: String,
    pub distribution: String,
    pub version: String,
    pub taken_at: Time,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("no image here is {asked}; this daemon carries: {carried}")]
    NotCarried { asked: String, carried: String },
    #[error("the image {name} cannot be taken: {why}")]
    Unusable { name: String, why: String },
    #[error("cannot {doing} {path}: {source}", path = .path.display())]
    Files { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Images {
    /// Makes the directory, and removes what an interrupted build left.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(options: ImageOptions) -> Result<Self, ImageError> {
        private_directory(&options.dir)?;
        let images = Self { options: Arc::new(options) };
        for name in images.names() {
            images.remove_unfinished(&name);
        }
        Ok(images)
    }

    /// The name of the image that a workstation asks for: the one of its distribution and version,
    /// or the default. Never another one.
    ///
    /// # Errors
    /// When no image here is what is asked for; names those there are.
    pub fn resolve(&self, asked: Option<&Image>) -> Result<String, ImageError> {
        let Some(asked) = asked.filter(|image| **image != Image::default()) else {
            return self.known(&self.options.default);
        };
        let fits = |image: &ImageInfo| {
            let same = |asked: &str, has: &str| asked.is_empty() || asked == has;
            same(&asked.distribution, &image.distribution)
                && same(&asked.version, &image.version)
                && same(&asked.os, &image.os)
        };
        // The default one first, where several fit.
        let mut carried = self.list();
        carried.sort_by_key(|image| !image.is_default);
        carried.iter().find(|image| fits(image)).map(|image| image.name.clone()).ok_or_else(|| {
            let asked = format!("{} {} {}", asked.distribution, asked.version, asked.os);
            self.not_carried(asked.trim())
        })
    }

    /// The current generation, taken now if there is none yet: that can take seconds. Callers in
    /// several threads and processes share one build.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn generation(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        if let Some(current) = self.current(name) {
            return Ok(current);
        }
        let _building = self.lock(name)?;
        // Somebody else may have finished it meanwhile.
        self.current(name).map_or_else(|| self.take(name), Ok)
    }

    /// Takes a new generation, which machines are made from from now on.
    ///
    /// # Errors
    /// When it cannot be taken; the present one stays current.
    pub fn refresh(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        self.known(name)?;
        let _building = self.lock(name)?;
        self.take(name)
    }

    /// The generation a member recorded, while it is there.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<Arc<Generation>> {
        let (name, generation) = id.split_once('/')?;
        let directory = self.options.dir.join(name).join(generation);
        info(&directory).map(|_| Arc::new(generation_in(name, &directory)))
    }

    /// Every image, in order of name.
    #[must_use]
    pub fn list(&self) -> Vec<ImageInfo> {
        self.names().into_iter().filter_map(|name| self.describe(&name)).collect()
    }

    /// Removes generations that no member uses, but never a current one.
    pub fn remove_unused(&self, in_use: &BTreeSet<String>) {
        for image in self.list() {
            let old = image.generations.iter().rev().skip(1);
            for generation in old.filter(|generation| !in_use.contains(&generation.id)) {
                let directory = self.options.dir.join(&generation.id);
                match fs::remove_dir_all(&directory) {
                    Ok(()) => {
                        tracing::info!(generation = generation.id, "removed an image generation nobody uses");
                    }
                    Err(error) => {
                        tracing::warn!(generation = generation.id, %error, "an unused image generation stays");
                    }
                }
            }
        }
    }

    fn take(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        let source = self.source(name).ok_or_else(|| self.not_carried(name))?;
        let home = self.options.dir.join(name);
        let tick = clock::tick();
        let ulid = Ulid::from_parts(u64::try_from(tick.wall.millis()).unwrap_or(0), tick.entropy);
        let building = home.join(format!(".building-{ulid}"));
        let root = building.join("root");
        private_directory(&building)?;
        tracing::info!(image = name, "taking an image generation; this is done once");
        if name == HOST && !self.options.named.contains_key(HOST) {
            host::take(Path::new(HOST_ROOT), &self.options.host_includes, &root)?;
        } else {
            named::take(name, &source, &root)?;
        }
        let release = Release::of(&root);
        let info = GenerationInfo {
            id: format!("{name}/{ulid}"),
            distribution: release.distribution,
            version: release.version,
            taken_at: tick.wall,
        };
        let directory = home.join(ulid.to_string());
        finish(&building, &info, &directory)?;
        let took_ms = clock::monotonic_ms().saturating_sub(tick.monotonic_ms);
        tracing::info!(image = name, generation = info.id, took_ms, "took an image generation");
        Ok(Arc::new(generation_in(name, &directory)))
    }

    fn current(&self, name: &str) -> Option<Arc<Generation>> {
        let newest = self.generations(name).pop()?;
        self.by_id(&newest.id)
    }

    /// Oldest first: ULIDs sort by time.
    fn generations(&self, name: &str) -> Vec<GenerationInfo> {
        let entries = fs::read_dir(self.options.dir.join(name)).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.filter_map(|entry| info(&entry.path())).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found
    }

    fn describe(&self, name: &str) -> Option<ImageInfo> {
        let source = self.source(name)?;
        let generations = self.generations(name);
        let release = match generations.last() {
            Some(current) => {
                Release { distribution: current.distribution.clone(), version: current.version.clone() }
            }
            None => Release::of(&source),
        };
        Some(ImageInfo {
            name: name.to_owned(),
            distribution: release.distribution,
            version: release.version,
            os: "linux".into(),
            source,
            is_default: name == self.options.default,
            generations,
        })
    }

    /// `host` where this host has packages, and the named ones.
    fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.options.named.keys().cloned().collect();
        if host::can_be_taken(Path::new(HOST_ROOT)) {
            names.insert(HOST.to_owned());
        }
        names
    }

    fn source(&self, name: &str) -> Option<PathBuf> {
        let named = self.options.named.get(name).cloned();
        named.or_else(|| (name == HOST && host::can_be_taken(Path::new(HOST_ROOT))).then(|| HOST_ROOT.into()))
    }

    fn known(&self, name: &str) -> Result<String, ImageError> {
        self.source(name).map(|_| name.to_owned()).ok_or_else(|| self.not_carried(name))
    }

    fn not_carried(&self, asked: &str) -> ImageError {
        let carried: Vec<String> = self.list().iter().map(ImageInfo::describe).collect();
        let carried = if carried.is_empty() { "none".to_owned() } else { carried.join(", ") };
        ImageError::NotCarried { asked: asked.to_owned(), carried }
    }

    fn lock(&self, name: &str) -> Result<File, ImageError> {
        let home = self.options.dir.join(name);
        private_directory(&home)?;
        let path = home.join(".lock");
        let locked = File::create(&path).and_then(|file| {
            rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
            Ok(file)
        });
        locked.map_err(|source| ImageError::Files { doing: "lock", path, source })
    }

    fn remove_unfinished(&self, name: &str) {
        // A build under way, of another daemon on the same directory, holds the lock.
        let path = self.options.dir.join(name).join(".lock");
        let Ok(lock) = File::open(path) else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let entries = fs::read_dir(self.options.dir.join(name)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".building-")) {
            // What stays costs only space, and is tried again at the next start.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl ImageInfo {
    /// In a few words: `host (debian 12)`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} ({} {})", self.name, self.distribution, self.version)
    }
}

/// Makes a built generation durable and gives it its name.
fn finish(building: &Path, info: &GenerationInfo, directory: &Path) -> Result<(), ImageError> {
    let files = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| ImageError::Files { doing, path, source }
    };
    let description = building.join("generation.json");
    let text = serde_json::to_vec_pretty(info).expect("a generation's description is plain data");
    fs::write(&description, text).map_err(files("write", &description))?;
    // All of it at once: a sync for each of a hundred thousand links would take minutes.
    File::open(building).and_then(|file| Ok(rustix::fs::syncfs(&file)?)).map_err(files("sync", building))?;
    fs::rename(building, directory).map_err(files("name", directory))?;
    let home = directory.parent().unwrap_or(directory);
    File::open(home).and_then(|home| home.sync_all()).map_err(files("sync", home))
}

fn generation_in(name: &str, directory: &Path) -> Generation {
    let ulid = directory.file_name().unwrap_or_default().to_string_lossy();
    Generation { name: name.to_owned(), id: format!("{name}/{ulid}"), root: directory.join("root") }
}

fn info(directory: &Path) -> Option<GenerationInfo> {
    serde_json::from_slice(&fs::read(directory.join("generation.json")).ok()?).ok()
}

fn private_directory(path: &Path) -> Result<(), ImageError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| ImageError::Files { doing: "make", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
