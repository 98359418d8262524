//! Which of sled's files is damaged: sled itself names none.
//!
//! Asked only after sled has refused. What sled makes anew from the log (its settings, its snapshot)
//! can be moved away by whoever runs the daemon; it is not done here, in silence.

use std::fs;
use std::path::{Path, PathBuf};

const MADE_ANEW: &str = "move that file away and start again: it is made anew";
const LOST: &str = "restore a backup, or ask for help with this message";

/// The damaged file of the store in `dir`, and what to do about it. If none of the small ones is
/// damaged, it is the log.
pub(super) fn find(dir: &Path) -> (PathBuf, &'static str) {
    let sled = dir.join("sled");
    let conf = sled.join("conf");
    if is_damaged(&conf, settings_are_sound) {
        return (conf, MADE_ANEW);
    }
    let snapshot = files_in(&sled).find(|file| is_snapshot(file) && is_damaged(file, snapshot_is_sound));
    if let Some(snapshot) = snapshot {
        return (snapshot, MADE_ANEW);
    }
    let blob = files_in(&sled.join("blobs")).find(|file| is_damaged(file, blob_is_sound));
    (blob.unwrap_or_else(|| sled.join("db")), LOST)
}

fn is_damaged(file: &Path, is_sound: fn(&[u8]) -> Option<bool>) -> bool {
    fs::read(file).is_ok_and(|bytes| is_sound(&bytes) != Some(true))
}

/// The settings, then their checksum.
fn settings_are_sound(bytes: &[u8]) -> Option<bool> {
    let (settings, crc) = bytes.split_last_chunk::<4>()?;
    Some(crc32fast::hash(settings) == u32::from_le_bytes(*crc))
}

/// The snapshot, its length, then its checksum.
fn snapshot_is_sound(bytes: &[u8]) -> Option<bool> {
    let (rest, crc) = bytes.split_last_chunk::<4>()?;
    let (snapshot, _length) = rest.split_last_chunk::<8>()?;
    Some(crc32fast::hash(snapshot) == u32::from_le_bytes(*crc))
}

/// The checksum, then all that it covers.
fn blob_is_sound(bytes: &[u8]) -> Option<bool> {
    let (crc, blob) = bytes.split_first_chunk::<4>()?;
    Some(crc32fast::hash(blob) == u32::from_le_bytes(*crc))
}

fn is_snapshot(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap."))
}

fn files_in(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}
