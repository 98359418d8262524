//! What the daemon's settings say about sandboxes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ulid::Ulid;

use super::image::ImageOptions;

/// Where sandboxes live and what they are made from.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// The store's instance id: machines of another instance are never touched.
    pub instance: Ulid,
    /// The daemon's data directory; `machines/` and `trash/` are kept below it.
    pub data_dir: PathBuf,
    /// Where image generations are kept; best on the file system that holds `/usr`.
    pub images_dir: PathBuf,
    /// `images.NAME = "/path"`: a directory or a tar of a root file system.
    pub images: BTreeMap<String, PathBuf>,
    /// The image of members that ask for none.
    pub default_image: String,
    /// Directories of the host that the host image takes in beside what packages own.
    pub host_includes: Vec<PathBuf>,
    /// First host uid of the ranges that members get, each 65 536 ids long.
    pub id_base: u32,
    /// Where members' cgroups go, relative to the cgroup mount; none: below the daemon's own.
    pub cgroup_parent: Option<PathBuf>,
    /// How long the processes of a stopping member have before they are killed.
    pub stop_grace: Duration,
}

impl SandboxOptions {
    /// The defaults for a daemon with this instance id and data directory.
    #[must_use]
    pub fn new(instance: Ulid, data_dir: PathBuf) -> Self {
        Self {
            instance,
            images_dir: data_dir.join("images"),
            data_dir,
            images: BTreeMap::new(),
            default_image: "host".into(),
            host_includes: Vec::new(),
            id_base: 0x1000_0000,
            cgroup_parent: None,
            stop_grace: Duration::from_secs(5),
        }
    }

    pub(super) fn image_options(&self) -> ImageOptions {
        ImageOptions {
            dir: self.images_dir.clone(),
            named: self.images.clone(),
            default: self.default_image.clone(),
            host_includes: self.host_includes.clone(),
        }
    }
}
