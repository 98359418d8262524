//! The generations of one image on disk.
//!
//! ```text
//! <dir>/<name>/<ulid>/root             what machines see
//!                     generation.json  what it is, and when it was taken
//!             /.building-<ulid>        unfinished \  removed at the next start
//!             /.removing-<ulid>        going      /
//!             /.lock                   held by whoever builds
//! ```
//!
//! A generation has its name exactly while it is whole: it gets it last, and loses it first.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use ulid::Ulid;

use super::release::Release;
use super::{Generation, GenerationInfo, ImageError};
use crate::clock;

const BUILDING: &str = ".building-";
const REMOVING: &str = ".removing-";

/// Where the generations of one image are kept.
#[derive(Clone, Debug)]
pub struct Shelf {
    name: String,
    home: PathBuf,
}

impl Shelf {
    /// Of the image `name`, whose directory may not be there yet.
    pub fn new(images: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), home: images.join(name) }
    }

    /// Oldest first: ULIDs sort by time.
    pub fn generations(&self) -> Vec<GenerationInfo> {
        let mut found: Vec<_> = self.ulids().into_iter().filter_map(|ulid| self.info(ulid)).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found
    }

    /// The newest generation.
    pub fn current(&self) -> Option<Generation> {
        let newest = self.generations().pop()?;
        self.generation(newest.id.strip_prefix(&self.name)?.strip_prefix('/')?)
    }

    /// The generation with this ULID.
    pub fn generation(&self, ulid: &str) -> Option<Generation> {
        // Also keeps out `..` and what is unfinished.
        let ulid = Ulid::from_string(ulid).ok()?;
        self.info(ulid).map(|_| self.generation_of(ulid))
    }

    /// Keeps other builders out, of this process and of others, until it is dropped.
    pub fn lock(&self) -> Result<File, ImageError> {
        private_directory(&self.home)?;
        let path = self.home.join(".lock");
        let locked = File::create(&path).and_then(|file| {
            rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
            Ok(file)
        });
        locked.map_err(files("lock", &path))
    }

    /// Makes a generation of what `fill` puts into a new root. To be called with the lock held.
    pub fn build(
        &self,
        fill: impl FnOnce(&Path) -> Result<(), ImageError>,
    ) -> Result<Generation, ImageError> {
        let tick = clock::tick();
        // Newer than every other also where the clock was set back.
        let newest_ms = self.ulids().iter().map(Ulid::timestamp_ms).max().unwrap_or(0);
        let now_ms = u64::try_from(tick.wall.millis()).unwrap_or(0);
        let ulid = Ulid::from_parts(now_ms.max(newest_ms + 1), tick.entropy);
        let building = self.home.join(format!("{BUILDING}{ulid}"));
        private_directory(&building)?;
        tracing::info!(image = self.name, "taking an image generation; this is done once");
        let root = building.join("root");
        let built = fill(&root).and_then(|()| {
            let Release { distribution, version } = Release::of(&root);
            let info = GenerationInfo {
                id: format!("{}/{ulid}", self.name),
                distribution,
                version,
                taken_at: tick.wall,
            };
            self.finish(&building, &info, &self.home.join(ulid.to_string()))
        });
        if let Err(error) = built {
            // Else every further try would leave a hundred thousand files.
            let _ = fs::remove_dir_all(&building);
            return Err(error);
        }
        let took_ms = clock::steady().millis_since(tick.steady);
        tracing::info!(image = self.name, generation = %ulid, took_ms, "took an image generation");
        Ok(self.generation_of(ulid))
    }

    /// Removes a generation, which nothing may use any more.
    pub fn remove(&self, id: &str) -> Result<(), ImageError> {
        let Some(generation) = id.split_once('/').and_then(|(_, ulid)| self.generation(ulid)) else {
            return Ok(());
        };
        let directory = generation.root.parent().unwrap_or(&self.home);
        let ulid = directory.file_name().unwrap_or_default().to_string_lossy();
        let going = self.home.join(format!("{REMOVING}{ulid}"));
        fs::rename(directory, &going).map_err(files("remove", directory))?;
        fs::remove_dir_all(&going).map_err(files("remove", &going))
    }

    /// Removes what an interrupted build or removal left.
    pub fn clear_unfinished(&self) {
        // A build under way, of another daemon on the same directory, holds the lock.
        let Ok(lock) = File::open(self.home.join(".lock")) else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        for entry in fs::read_dir(&self.home).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(BUILDING) || name.starts_with(REMOVING) {
                // What stays costs only space, and is tried again at the next start.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Makes a built generation durable and gives it its name.
    fn finish(&self, building: &Path, info: &GenerationInfo, directory: &Path) -> Result<(), ImageError> {
        let description = building.join("generation.json");
        let text = serde_json::to_vec_pretty(info).expect("a generation's description is plain data");
        fs::write(&description, text).map_err(files("write", &description))?;
        // All of it at once: a sync for each of a hundred thousand links would take minutes.
        File::open(building)
            .and_then(|file| Ok(rustix::fs::syncfs(&file)?))
            .map_err(files("sync", building))?;
        fs::rename(building, directory).map_err(files("name", directory))?;
        File::open(&self.home).and_then(|home| home.sync_all()).map_err(files("sync", &self.home))
    }

    fn ulids(&self) -> Vec<Ulid> {
        let entries = fs::read_dir(&self.home).into_iter().flatten().flatten();
        entries.filter_map(|entry| Ulid::from_string(entry.file_name().to_str()?).ok()).collect()
    }

    fn info(&self, ulid: Ulid) -> Option<GenerationInfo> {
        let description = self.home.join(ulid.to_string()).join("generation.json");
        serde_json::from_slice(&fs::read(description).ok()?).ok()
    }

    fn generation_of(&self, ulid: Ulid) -> Generation {
        Generation {
            name: self.name.clone(),
            id: format!("{}/{ulid}", self.name),
            root: self.home.join(ulid.to_string()).join("root"),
        }
    }
}

/// A directory of ours that nobody else on the host may enter: old set-uid programs are below it.
pub fn private_directory(path: &Path) -> Result<(), ImageError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700))).map_err(files("make", path))
}

fn files(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::Files { doing, path, source }
}
