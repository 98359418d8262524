//! Image generations: immutable root file systems that members are made from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::object::Image;

/// Where images are kept and what they are made from.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    pub dir: PathBuf,
    /// `images.NAME = "/path"`.
    pub named: BTreeMap<String, PathBuf>,
    /// The image of members that ask for none.
    pub default: String,
    /// What the image `host` takes along although no package owns it.
    pub host_includes: Vec<PathBuf>,
}

/// The images of one daemon.
#[derive(Debug)]
pub struct Images {
    options: ImageOptions,
    building: Mutex<()>,
}

/// One root file system, never changed once it has its name.
#[derive(Clone, Debug)]
pub struct Generation {
    pub name: String,
    /// What members record, such as `host/01J…`.
    pub id: String,
    pub root: PathBuf,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("this daemon carries no such image; it carries: {}", carried.join(", "))]
    NotCarried { carried: Vec<String> },
    #[error("cannot prepare {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Images {
    pub fn open(options: ImageOptions) -> Result<Self, ImageError> {
        let at = |source| ImageError::Io { path: options.dir.clone(), source };
        super::own_directory(&options.dir).map_err(at)?;
        Ok(Self { options, building: Mutex::new(()) })
    }

    pub fn resolve(&self, image: Option<&Image>) -> Result<String, ImageError> {
        let name = image.map_or(&self.options.default, |image| &image.distribution);
        if self.options.named.contains_key(name) {
            return Ok(name.clone());
        }
        Err(ImageError::NotCarried { carried: self.options.named.keys().cloned().collect() })
    }

    pub fn generation(&self, name: &str) -> Result<Arc<Generation>, ImageError> {
        let _one_at_a_time = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("{name}/1");
        if let Some(generation) = self.by_id(&id) {
            return Ok(generation);
        }
        let from = &self.options.named[name];
        let to = self.options.dir.join(&id).join("root");
        copy(from, &to).map_err(|source| ImageError::Io { path: to.clone(), source })?;
        Ok(Arc::new(Generation { name: name.into(), id, root: to }))
    }

    pub fn by_id(&self, id: &str) -> Option<Arc<Generation>> {
        let (name, _) = id.split_once('/')?;
        let root = self.options.dir.join(id).join("root");
        root.is_dir().then(|| Arc::new(Generation { name: name.into(), id: id.into(), root }))
    }

    pub fn remove_unused(&self, _used: &BTreeSet<String>) -> Result<(), ImageError> {
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let meta = entry.metadata()?;
        if meta.is_dir() {
            copy(&source, &target)?;
        } else if meta.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if meta.is_file() {
            fs::copy(&source, &target)?;
        }
        lchown(&target, Some(meta.uid()), Some(meta.gid()))?;
        if !meta.is_symlink() {
            fs::set_permissions(&target, fs::Permissions::from_mode(meta.mode()))?;
        }
    }
    Ok(())
}
