//! What root of a machine is, and is not.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringleader::provider::Provider;
use serde_json::json;

use crate::{House, fresh_id, spec};

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
    spec.provider_config = json!({"pids": 40, "memory": 0.25, "cpus": 0.5})
        .as_object()
        .expect("an object")
        .clone();
    house.sandbox.create(id, &spec).await.expect("made");
    // Too many processes: the shell cannot fork.
    let refused = house.said(id, "echo $$ > /dev/null; cat /proc/self/cgroup");
    assert!(!refused.contains(&house.instance.to_string()), "the host's groups are in sight: {refused}");
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", house.init_pid(id))).expect("it runs");
    assert!(groups.contains(&id.to_string()), "{groups}");
    house.sandbox.delete(id).await.expect("deleted");
}
