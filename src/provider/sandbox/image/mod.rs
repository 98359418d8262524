//! Image generations: immutable root file systems that members are made from.
//!
//! A generation is built aside, synced and renamed, and never changed again. A member names the
//! generation its disk was made over, and keeps it for life: a live host directory under an
//! overlay breaks when the host upgrades. The newest generation of a name is the current one.
//!
//! `shelf` keeps generations; `host` and `named` fill them, through `tree`.

mod alternatives;
mod apt;
mod defaults;
mod etc;
mod host;
mod named;
mod release;
mod shelf;
mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::object::{Image, Time};
use release::Release;
use shelf::Shelf;

/// The image made of this host's own packages.
pub const HOST: &str = "host";
/// Where the host's root is.
const HOST_ROOT: &str = "/";
/// Why there is no image of this host.
const NO_PACKAGES: &str = "this host has no packages of dpkg (Debian, Ubuntu) to take it from: name a directory \
                           or tar of a root file system under [images.named] in daemon.toml, and make it the \
                           default there";

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
    /// What archives say they are, while they stay the same: reading through one takes a while.
    archives: Arc<Mutex<HashMap<PathBuf, (ArchiveStamp, Release)>>>,
}

/// Changes when an archive does: its number, length in bytes, and time of change.
type ArchiveStamp = (u64, u64, i64, i64);

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
    /// Makes the directory, and removes what an interrupted build or removal left.
    ///
    /// # Errors
    /// When the directory cannot be made, or the name of an image cannot be that of a directory.
    pub fn open(options: ImageOptions) -> Result<Self, ImageError> {
        if let Some(name) = options.named.keys().find(|name| !is_name(name)) {
            let why = "its name must begin with a letter or digit, and go on with those, '-', '_' and '.'";
            return Err(ImageError::Unusable { name: name.clone(), why: why.into() });
        }
        if !options.dir.is_dir() {
            shelf::private_directory(&options.dir)?;
        }
        let images = Self { options: Arc::new(options), archives: Arc::default() };
        for name in images.kept() {
            images.shelf(&name).clear_unfinished();
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
        self.known(name)?;
        let shelf = self.shelf(name);
        if let Some(current) = shelf.current() {
            return Ok(Arc::new(current));
        }
        let _building = shelf.lock()?;
        // Somebody else may have finished it meanwhile.
        shelf.current().map_or_else(|| self.take(name), |current| Ok(Arc::new(current)))
    }

    /// Takes a new generation, which machines are made from from now on.
    ///
    /// # Errors
    /// When it cannot be taken; the present one stays current.
    pub fn refresh(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        self.known(name)?;
        let _building = self.shelf(name).lock()?;
        self.take(name)
    }

    /// The generation a member recorded, while it is there, whether its image is still carried or
    /// not.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<Arc<Generation>> {
        let (name, ulid) = id.split_once('/').filter(|(name, _)| is_name(name))?;
        self.shelf(name).generation(ulid).map(Arc::new)
    }

    /// Every image, in order of name.
    #[must_use]
    pub fn list(&self) -> Vec<ImageInfo> {
        self.names().into_iter().filter_map(|name| self.describe(&name)).collect()
    }

    /// Removes generations that no member uses, but never the current one of an image that is
    /// carried.
    pub fn remove_unused(&self, in_use: &BTreeSet<String>) {
        let carried = self.names();
        for name in self.kept() {
            let shelf = self.shelf(&name);
            let mut old = shelf.generations();
            if carried.contains(&name) {
                old.pop();
            }
            for GenerationInfo { id, .. } in old.iter().filter(|old| !in_use.contains(&old.id)) {
                match shelf.remove(id) {
                    Ok(()) => tracing::info!(generation = id, "removed an image generation nobody uses"),
                    Err(error) => tracing::warn!(generation = id, %error, "an unused image generation stays"),
                }
            }
        }
    }

    /// To be called with the shelf locked.
    fn take(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        let fill = |root: &Path| match self.options.named.get(name) {
            Some(source) => named::take(name, source, &self.options.dir, root),
            None => host::take(Path::new(HOST_ROOT), &self.options.host_includes, root),
        };
        self.shelf(name).build(fill).map(Arc::new)
    }

    fn shelf(&self, name: &str) -> Shelf {
        Shelf::new(&self.options.dir, name)
    }

    /// Every name there is a directory for, carried or not.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.options.dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_name(name))
            .collect()
    }

    fn describe(&self, name: &str) -> Option<ImageInfo> {
        let source = self.source(name)?;
        let generations = self.shelf(name).generations();
        let release = match generations.last() {
            Some(current) => {
                Release { distribution: current.distribution.clone(), version: current.version.clone() }
            }
            None => self.release_of(&source),
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

    /// Of an image that no generation was taken of yet.
    fn release_of(&self, source: &Path) -> Release {
        let Some(archive) = fs::metadata(source).ok().filter(fs::Metadata::is_file) else {
            return Release::of(source);
        };
        let stamp = (archive.ino(), archive.len(), archive.mtime(), archive.mtime_nsec());
        let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, release)) = archives.get(source).filter(|(known, _)| *known == stamp) {
            return release.clone();
        }
        let release = Release::of(source);
        archives.insert(source.to_owned(), (stamp, release.clone()));
        release
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
        if self.source(name).is_some() {
            return Ok(name.to_owned());
        }
        if name == HOST {
            return Err(ImageError::Unusable { name: HOST.into(), why: NO_PACKAGES.into() });
        }
        Err(self.not_carried(name))
    }

    fn not_carried(&self, asked: &str) -> ImageError {
        let carried: Vec<String> = self.list().iter().map(ImageInfo::describe).collect();
        let carried = if carried.is_empty() { "none".to_owned() } else { carried.join(", ") };
        ImageError::NotCarried { asked: asked.to_owned(), carried }
    }
}

impl ImageInfo {
    /// In a few words: `host (debian 12)`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} ({} {})", self.name, self.distribution, self.version)
    }
}

/// Whether `name` can be that of a directory of ours.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|each| each.is_ascii_alphanumeric() || "-_.".contains(each))
}

/// Words why the files of an image could not be put at `root`. A full disk is nobody's mistake.
fn not_taken(name: &str, root: &Path, error: io::Error) -> ImageError {
    if error.kind() == io::ErrorKind::StorageFull {
        return ImageError::Files { doing: "fill", path: root.to_owned(), source: error };
    }
    ImageError::Unusable { name: name.to_owned(), why: error.to_string() }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_host;
