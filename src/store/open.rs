//! Start-up: from a directory to a running store, or a sentence that says why not.

use std::fs::{DirBuilder, File, Permissions, set_permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ulid::Ulid;

use super::ballast::Ballast;
use super::committer::Committer;
use super::disk::{Batch, Disk};
use super::index::{Index, Slot};
use super::lock::DirectoryLock;
use super::meta::{self, FORMAT, Head};
use super::queue::Queue;
use super::record::{Record, RecordId};
use super::submission::OwnerId;
use super::witness::Witness;
use super::{Handle, Store, StoreError, StoreOptions, envelope, key};
use crate::object::UsageRow;
use crate::view::{Applied, Resource, ViewWriter};

/// As `Store::open`.
pub(super) fn open(dir: &Path, options: StoreOptions, view: ViewWriter) -> Result<Store, StoreError> {
    open_there(dir, options, view).map_err(|error| error.of(dir))
}

fn open_there(dir: &Path, options: StoreOptions, mut view: ViewWriter) -> Result<Store, StoreError> {
    make_directory(dir)?;
    let lock = DirectoryLock::take(dir)?;
    let ballast = Arc::new(Ballast::of(dir, &options));
    let failed = |source| StoreError::Directory { doing: "keep room in", path: dir.into(), source };
    ballast.tend().and_then(|()| ballast.prove_room()).map_err(failed)?;
    let disk = Disk::open(&dir.join("sled"), options.cache_bytes)?;
    sync_directory(dir)?;
    let failed = |source| StoreError::Disk { doing: "opening the store", source };
    let witness = Witness::open(dir).map_err(failed)?;
    let acknowledged = witness.version().map_err(failed)?;
    let instance = identify(&disk, dir, acknowledged)?;
    carry_on(&disk)?;
    let Found { index, resources, usage } = read_all(&disk, dir)?;
    refuse_less_than(acknowledged, index.head().version, dir)?;
    view.begin(index.head().version, resources);
    view.apply(usage.into_iter().map(Applied::Usage).collect());
    let queue = Arc::new(Queue::new(index, options.meter));
    let committer =
        Committer::new(Arc::clone(&queue), disk, witness, view, Arc::clone(&ballast), options.on_fatal, lock);
    let thread = committer
        .spawn()
        .map_err(|source| StoreError::Disk { doing: "starting the committer's thread", source })?;
    let handle = Handle { queue, ballast, instance, committer: Mutex::new(Some(thread)) };
    Ok(Store { handle: Arc::new(handle) })
}

/// Reads one record from its pair.
pub(super) fn read_record(key: &[u8], value: &[u8]) -> Result<Stored, StoreError> {
    let unreadable = |why: String| StoreError::Unreadable { what: key::describe(key), why };
    let (owner, id) = key::parse_record(key)
        .ok_or_else(|| unreadable("its key is none that this version writes".to_owned()))?;
    let opened = envelope::open(key, value).map_err(|damage| unreadable(damage.to_string()))?;
    let record =
        id.kind.decode(opened.type_version, opened.payload).map_err(|error| unreadable(error.to_string()))?;
    if record.id() != id {
        return Err(unreadable(format!("it holds {}", record.id())));
    }
    Ok(Stored { owner, id, version: opened.resource_version, record })
}

/// A record as found on disk.
pub(super) struct Stored {
    owner: OwnerId,
    id: RecordId,
    version: u64,
    pub record: Record,
}

/// All there is on disk.
struct Found {
    index: Index,
    resources: Vec<Resource>,
    usage: Vec<Arc<UsageRow>>,
}

/// Makes what is missing of the path, so that a power cut does not take it away again.
fn make_directory(dir: &Path) -> Result<(), StoreError> {
    let failed = |doing| move |source| StoreError::Directory { doing, path: dir.to_owned(), source };
    let missing: Vec<&Path> = dir.ancestors().take_while(|place| !place.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make the directory"))?;
    for parent in missing.iter().filter_map(|place| place.parent()) {
        // Of a relative path, the last parent is the empty one.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        sync_directory(parent)?;
    }
    set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed("keep others out of"))
}

fn sync_directory(dir: &Path) -> Result<(), StoreError> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|source| StoreError::Disk { doing: "opening the store", source })
}

/// Refuses a store that ends before what was acknowledged.
fn refuse_less_than(acknowledged: u64, found: u64, dir: &Path) -> Result<(), StoreError> {
    if found < acknowledged {
        return Err(StoreError::CutShort { dir: dir.to_owned(), found, acknowledged });
    }
    Ok(())
}

/// Checks whose store this is, and in which format; a new one gets both. An empty one of which
/// something was acknowledged is not new.
fn identify(disk: &Disk, dir: &Path, acknowledged: u64) -> Result<Ulid, StoreError> {
    let foreign = |why: &str| StoreError::Foreign { dir: dir.to_owned(), why: why.to_owned() };
    let unreadable = |what: &str| {
        let what = what.to_owned();
        move |why| StoreError::Unreadable { what, why }
    };
    let Some(format) = disk.get(meta::FORMAT_KEY)? else {
        if disk.is_empty() {
            refuse_less_than(acknowledged, 0, dir)?;
            return found(disk);
        }
        return Err(foreign("it has no format number"));
    };
    let format = meta::open_format(&format).map_err(unreadable("the store's format number"))?;
    if format > FORMAT {
        return Err(StoreError::Newer { dir: dir.to_owned(), found: format, known: FORMAT });
    }
    let instance = disk.get(meta::INSTANCE_KEY)?.ok_or_else(|| foreign("it has no instance id"))?;
    meta::open_instance(&instance).map_err(unreadable("the store's instance id"))
}

/// Waits that were begun under an earlier daemon go on where they were, whatever became of the wall
/// clock.
fn carry_on(disk: &Disk) -> Result<(), StoreError> {
    if let Some(value) = disk.get(meta::STEADY_KEY)? {
        let what = "the store's clock".to_owned();
        crate::clock::carry_on_from(
            meta::open_steady(&value).map_err(|why| StoreError::Unreadable { what, why })?,
        );
    }
    Ok(())
}

/// The first batch of a new store.
fn found(disk: &Disk) -> Result<Ulid, StoreError> {
    let tick = crate::clock::tick();
    let instance = Ulid::from_parts(u64::try_from(tick.wall.millis()).unwrap_or(0), tick.entropy);
    let mut batch = Batch::default();
    batch.put(meta::FORMAT_KEY.to_vec(), meta::seal_format(FORMAT));
    batch.put(meta::INSTANCE_KEY.to_vec(), meta::seal_instance(instance));
    batch.put(meta::HEAD_KEY.to_vec(), meta::seal_head(&Head::default()));
    disk.commit(batch)?;
    Ok(instance)
}

/// Reads every record. One that cannot be read, or that is missing, stops the start.
fn read_all(disk: &Disk, dir: &Path) -> Result<Found, StoreError> {
    let what = "the store's head";
    let head = disk.get(meta::HEAD_KEY)?.ok_or_else(|| "it is missing".to_owned());
    let head = match head {
        Ok(value) => meta::open_head(&value),
        Err(missing) => Err(missing),
    };
    let head = head.map_err(|why| StoreError::Unreadable { what: what.to_owned(), why })?;
    let mut index = Index::new(head.version);
    let (mut resources, mut usage) = (Vec::new(), Vec::new());
    for pair in disk.scan(key::RECORDS) {
        let (key, value) = pair?;
        let Stored { owner, id, version, record } = read_record(&key, &value)?;
        let resource = record.present(version);
        let slot = Slot { owner, key: resource.as_ref().map(|resource| resource.key.clone()), version };
        index.put(id, slot).map_err(|conflict| StoreError::Unreadable {
            what: key::describe(&key),
            why: conflict.to_string(),
        })?;
        resources.extend(resource);
        if let Record::Usage(row) = record {
            usage.push(row);
        }
    }
    if index.head() != head {
        let (dir, found, expected) = (dir.to_owned(), index.head().records, head.records);
        return Err(StoreError::Incomplete { dir, found, expected });
    }
    Ok(Found { index, resources, usage })
}
