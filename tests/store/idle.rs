//! A store that nobody uses does not wake the processor, and takes the next write all the same.

use std::collections::BTreeMap;
use std::fs;

use super::*;

/// How often each of sled's threads was switched to.
fn switches() -> BTreeMap<u32, u64> {
    let threads = fs::read_dir("/proc/self/task").expect("threads").flatten();
    let of = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let id = thread.file_name().to_str()?.parse().ok()?;
        let count = value("voluntary_ctxt_switches:")?.parse().ok()?;
        value("Name:")?.starts_with("sled-io-").then_some((id, count))
    };
    threads.filter_map(of).collect()
}

/// Waits until none of them was switched to for longer than they sleep by themselves.
fn come_to_rest() {
    let mut last = (switches(), Instant::now());
    eventually("sled's threads rest", || {
        let now = switches();
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(2500)
    });
    assert!(last.0.len() >= 7, "they are there: {:?}", last.0);
}

#[test]
fn a_store_at_rest_is_not_woken_and_takes_writes_loads_and_its_end() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let catalog = opened.load(OwnerId::Catalog).0;
    catalog.write(vec![put(1, "ada", "")]);
    come_to_rest();
    catalog.write((2..200).map(|uid| put(uid, &format!("user-{uid}"), &"x".repeat(20_000))).collect());
    come_to_rest();
    assert_eq!(opened.load(OwnerId::Catalog).1.len(), 199);
    come_to_rest();
    let (_other_parent, other_dir) = fresh();
    let other = open(&other_dir);
    other.load(OwnerId::Catalog).0.write(vec![put(1, "bob", "")]);
    drop(other);
    opened.store.close();
    assert_eq!(open(&dir).view.version(), 199);
}
