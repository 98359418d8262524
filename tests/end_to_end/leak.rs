//! After everything is released and deleted the host is as it was.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::Daemon;

#[test]
fn nothing_is_left_behind() {
    let mut daemon = Daemon::with_pool();
    let marker = daemon.data().display().to_string();
    let status = daemon.ok(&["status"]);
    let instance = status
        .lines()
        .find_map(|line| line.strip_prefix("Instance:"))
        .expect("an instance")
        .trim()
        .to_owned();
    for number in 0..3 {
        daemon.lease(&format!("job-{number}"));
    }
    daemon.clear();
    daemon.until("trash is emptied", || entries(&daemon.data().join("trash")).is_empty());
    assert_eq!(entries(&daemon.data().join("machines")), BTreeSet::new());
    assert_eq!(daemon.stop(), 0);
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(&marker), "mounts are left: {mounts}");
    assert_eq!(processes_naming(&marker), Vec::<String>::new());
    assert_eq!(groups_of(&instance), Vec::<String>::new());
}

fn entries(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Command lines of processes that name `marker`, this test's own apart.
fn processes_naming(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("proc").flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(marker) {
            found.push(command);
        }
    }
    found
}

/// Control groups of this daemon's machines.
fn groups_of(instance: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(instance) {
                    found.push(entry.path().display().to_string());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}
