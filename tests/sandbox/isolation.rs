//! What root of a machine is, and is not.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringleader::provider::Provider;
use serde_json::json;

use crate::house::{House, fresh_id, spec};

#[tokio::test]
async fn root_inside_is_nobody_outside() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("mapped")).await.expect("made");
    let first = house.first_id(id);
    house.said(id, "echo mine > /root/mine");
    let outside = fs::metadata(house.directory(id).join("upper/root/mine")).expect("on the disk");
    assert_eq!((outside.uid(), outside.gid()), (first, first));
    let process = fs::metadata(format!("/proc/{}", house.init_pid(id))).expect("it runs");
    assert_eq!(process.uid(), first);
    assert_eq!(house.said(id, "stat -c %u:%g /root/mine /etc/passwd /usr/bin/cat"), "0:0\n0:0\n0:0");
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn nothing_that_only_the_hosts_root_may_read_is_in_the_hosts_image() {
    let house = House::on("host");
    let id = fresh_id();
    house.sandbox.create(id, &spec("curious")).await.expect("made");
    let generation = house.sandbox.images().generation("host").expect("taken");
    let mut taken = BTreeSet::new();
    walk(&generation.root, &mut |_, found| {
        taken.insert((found.dev(), found.ino()));
    });
    assert!(taken.len() > 1000, "the image is nearly empty");

    // By hard link: the very file. By copy: a file that says the same under the same path.
    let mut secrets = 0;
    for part in ["/etc", "/usr", "/root", "/var/lib", "/opt"] {
        walk_secrets(Path::new(part), Readers::Anybody, &mut |path, found| {
            secrets += 1;
            assert!(!taken.contains(&(found.dev(), found.ino())), "{} is linked", path.display());
            let inside = generation.root.join(path.strip_prefix("/").expect("absolute"));
            let same = found.len() > 0 && inside.is_file() && fs::read(path).ok() == fs::read(inside).ok();
            assert!(!same, "{} is copied", path.display());
        });
    }
    assert!(secrets > 0, "this host has no file that only root may read, so this shows nothing");
    let planted = tempfile::NamedTempFile::new_in("/root").expect("a file only root may read");
    assert!(!house.inside(id, &format!("cat {}", planted.path().display())).status.success());
    assert!(
        house.said(id, "cat /etc/shadow").lines().all(|line| line.contains(":*:") || line.contains(":!"))
    );
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn every_alternative_of_the_hosts_image_leads_somewhere() {
    let house = House::on("host");
    let id = fresh_id();
    house.sandbox.create(id, &spec("whole")).await.expect("made");
    let script = r#"for f in /etc/alternatives/*; do test -e "$f" || echo "$f"; done"#;
    assert_eq!(house.said(id, script), "");
    assert_eq!(
        house.said(id, "cat /etc/os-release"),
        fs::read_to_string("/etc/os-release").expect("readable").trim()
    );
    house.said(id, "perl -e 'print 1' && awk 'BEGIN { exit 0 }' && dpkg -s base-files");
    house.sandbox.delete(id).await.expect("deleted");
}

/// Who may reach a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Anybody,
    RootOnly,
}

/// Every regular file below `directory` that others may not read, by its own mode or by that of a
/// directory above it.
fn walk_secrets(directory: &Path, readers: Readers, seen: &mut impl FnMut(&Path, &Metadata)) {
    let Ok(here) = fs::symlink_metadata(directory) else { return };
    let readers = if here.mode() & 0o001 == 0 { Readers::RootOnly } else { readers };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
        if found.is_dir() && found.dev() == here.dev() {
            walk_secrets(&path, readers, seen);
        } else if found.is_file() && (readers == Readers::RootOnly || found.mode() & 0o004 == 0) {
            seen(&path, &found);
        }
    }
}

fn walk(directory: &Path, seen: &mut impl FnMut(&Path, &Metadata)) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let (path, found) = (entry.path(), entry.metadata().expect("there"));
        if found.is_dir() {
            walk(&path, seen);
        } else if found.is_file() {
            seen(&path, &found);
        }
    }
}

#[tokio::test]
async fn two_machines_do_not_see_each_other() {
    let house = House::new();
    let (one, two) = (fresh_id(), fresh_id());
    house.sandbox.create(one, &spec("one")).await.expect("made");
    house.sandbox.create(two, &spec("two")).await.expect("made");
    assert_ne!(house.first_id(one), house.first_id(two));
    house.said(one, "echo secret > /tmp/note; setsid sleep 4321 > /dev/null 2>&1 &");
    assert!(!house.inside(two, "cat /tmp/note").status.success());
    assert!(!house.said(two, "cat /proc/[0-9]*/cmdline").contains("4321"));
    for id in [one, two] {
        house.sandbox.delete(id).await.expect("deleted");
    }
}

#[tokio::test]
async fn nothing_of_the_host_is_in_sight() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("blind")).await.expect("made");
    let mounts = house.said(id, "cat /proc/self/mountinfo");
    let data = house.data.path().to_string_lossy().into_owned();
    assert!(!mounts.contains(&data), "{mounts}");
    assert!(!mounts.contains("sandbox-images"), "{mounts}");
    // Init and its agent hold none of the host's files open, whatever they were started with.
    let descriptors = house.said(id, "for f in /proc/1/fd/*; do readlink $f; done");
    for place in descriptors.lines() {
        let own = ["/dev/null", "/run/ringleader.log", "socket:", "anon_inode:"];
        assert!(own.iter().any(|start| place.starts_with(start)), "{descriptors}");
    }
    assert_eq!(house.said(id, "readlink /proc/1/root"), "/");
    assert!(!house.inside(id, "echo 1 > /proc/sys/kernel/sysrq").status.success());
    assert!(!house.inside(id, "echo h > /proc/sysrq-trigger").status.success());
    assert!(!house.inside(id, "mkdir /sys/fs/cgroup/x").status.success());
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn a_machine_has_its_own_loopback_and_no_other_network_unless_asked() {
    let house = House::new();
    let (own, shared) = (fresh_id(), fresh_id());
    house.sandbox.create(own, &spec("own")).await.expect("made");
    assert_eq!(house.said(own, "ls /sys/class/net"), "lo");
    assert!(house.said(own, "cat /proc/net/fib_trie").contains("127.0.0.1"));
    let mut on_host = spec("shared");
    on_host.provider_config.insert("network".into(), json!("host"));
    house.sandbox.create(shared, &on_host).await.expect("made");
    let host = fs::read_to_string("/proc/net/dev").expect("readable");
    assert_eq!(house.said(shared, "cat /proc/net/dev").lines().count(), host.trim().lines().count());
    assert!(!house.inside(shared, "echo x > /sys/kernel/mm/ksm/run").status.success());
    for id in [own, shared] {
        house.sandbox.delete(id).await.expect("deleted");
    }
}

#[tokio::test]
async fn privileges_can_be_gained_exactly_when_sudo_is_allowed() {
    let house = House::new();
    for (sudo, expected) in [(true, "NoNewPrivs:\t0"), (false, "NoNewPrivs:\t1")] {
        let id = fresh_id();
        let spec = ringleader::machine::MachineSpec { sudo, ..spec("privileges") };
        house.sandbox.create(id, &spec).await.expect("made");
        assert!(house.said(id, "cat /proc/1/status").contains(expected));
        house.sandbox.delete(id).await.expect("deleted");
    }
}

#[tokio::test]
async fn limits_hold() {
    let house = House::new();
    let id = fresh_id();
    let mut spec = spec("limited");
    spec.provider_config =
        json!({"pids": 32, "memory": 0.0625, "cpus": 0.5}).as_object().expect("an object").clone();
    house.sandbox.create(id, &spec).await.expect("made");
    let init = house.init_pid(id);
    let groups = fs::read_to_string(format!("/proc/{init}/cgroup")).expect("it runs");
    assert!(groups.contains(&id.to_string()), "{groups}");
    let seen = house.said(id, "cat /proc/1/cgroup");
    assert!(!seen.contains(&house.instance.to_string()), "the host's groups are in sight: {seen}");
    // What comes in by nsenter stays in the caller's cgroups; so does what it forks. Only a child
    // of the machine's own processes is limited, and so the counting is done from outside.
    let limit = limit_of(&groups, "pids", "pids.max");
    assert_eq!(limit, "32");
    assert_eq!(limit_of(&groups, "memory", "memory.limit_in_bytes"), (1_u64 << 26).to_string());
    house.sandbox.delete(id).await.expect("deleted");
}

/// The limit in force for a process, wherever this host keeps its controllers.
fn limit_of(groups: &str, controller: &str, legacy_file: &str) -> String {
    let path = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (names, path) = (fields.next()?, fields.next()?);
            names.split(',').any(|name| name == wanted).then(|| path.to_owned())
        })
    };
    let file = match path(controller) {
        Some(path) => format!("/sys/fs/cgroup/{controller}{path}/{legacy_file}"),
        None => format!("/sys/fs/cgroup{}/{controller}.max", path("").expect("a unified group")),
    };
    fs::read_to_string(file).expect("readable").trim().to_owned()
}
