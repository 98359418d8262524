//! The daemon killed, or restarted, in the middle: nothing is lost, doubled or leaked.

use std::collections::BTreeSet;

use crate::harness::Daemon;

// rule F5
// rule L20
#[test]
fn a_lease_works_on_after_the_daemon_was_killed() {
    let mut daemon = Daemon::with_pool();
    let member = daemon.lease("my-build");
    daemon.ok(&["shell", &member, "--", "echo mine > note"]);
    let boot = daemon.ok(&[
        "shell",
        &member,
        "--",
        "cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat",
    ]);
    daemon.kill();
    daemon.run();
    assert_eq!(daemon.value("workstationpoollease", "my-build", "{.status.workstationName}"), member);
    assert_eq!(daemon.ok(&["shell", &member, "--", "cat note"]).trim(), "mine");
    let now = daemon.ok(&[
        "shell",
        &member,
        "--",
        "cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat",
    ]);
    assert_eq!(now, boot, "the machine ran on");
    daemon.ok(&["workstationpoollease", "release", "my-build"]);
    daemon.until("the member is gone", || !daemon.names("workstation").contains(&member));
    daemon.clear();
}

#[test]
fn a_plain_restart_leaves_members_alone() {
    let mut daemon = Daemon::with_pool();
    let member = daemon.lease("my-build");
    let before = daemon.names("workstation");
    assert_eq!(daemon.stop(), 0);
    daemon.run();
    daemon.ok(&["shell", &member, "--", "true"]);
    assert_eq!(daemon.names("workstation"), before);
    daemon.clear();
}

/// Kills the daemon at many moments of a life that builds, leases and deletes all the time.
#[test]
fn killed_at_any_moment_it_neither_loses_nor_doubles_nor_leaks() {
    let mut daemon = Daemon::start();
    daemon.ok(&["apply", "-f", &crate::harness::example_pool()]);
    daemon.ok(&["auth", "status"]);
    let mut held = BTreeSet::new();
    for round in 0..8_u32 {
        let name = format!("round-{round}");
        daemon.ok(&["workstationpool", "lease", "agents-linux", "--name", &name]);
        held.insert(name.clone());
        if round % 2 == 1 {
            let oldest = held.pop_first().expect("held");
            daemon.ok(&["workstationpoollease", "release", &oldest]);
        }
        // At another point of what the writes above set going, each time.
        std::thread::sleep(std::time::Duration::from_millis(u64::from(round) * 13));
        daemon.kill();
        daemon.run();
        let leases: BTreeSet<String> = daemon.names("workstationpoollease").into_iter().collect();
        assert!(leases.is_superset(&held), "{held:?} were acknowledged, {leases:?} are there");
    }
    for name in &held {
        daemon.ok(&["wait", "workstationpoollease", name, "--timeout", "90s"]);
    }
    let members: Vec<String> = held
        .iter()
        .map(|name| daemon.value("workstationpoollease", name, "{.status.workstationName}"))
        .collect();
    let different: BTreeSet<&String> = members.iter().collect();
    assert_eq!(different.len(), members.len(), "a member is lent twice: {members:?}");
    daemon.clear();
    let machines = std::fs::read_dir(daemon.data().join("machines")).map_or(0, Iterator::count);
    assert_eq!(machines, 0, "machines are left in the data directory");
}

// rule L17
#[test]
fn a_machine_killed_from_outside_is_noticed_at_once_and_started_again() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("job");
    daemon.ok(&["shell", &member, "--", "echo kept > note"]);
    daemon.rl(&["shell", &member, "--", "sudo kill -9 -1; sudo kill 1"]);
    let boot = |daemon: &Daemon| daemon.value("workstation", &member, "{.status.machine.startedAt}");
    let before = boot(&daemon);
    // PID 1 inside ignores what it has no handler for, so the stop comes from the host.
    let pid = init_of(&daemon, &member);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    daemon.until("the machine is up again", || {
        let now = boot(&daemon);
        !now.is_empty() && now != before && daemon.rl(&["shell", &member, "--", "true"]).status.success()
    });
    assert_eq!(daemon.ok(&["shell", &member, "--", "cat note"]).trim(), "kept");
    daemon.clear();
}

/// The host's process id of a member's PID 1: the process whose command is `rl init` and whose
/// host name, in its own UTS namespace, is the member's.
fn init_of(daemon: &Daemon, member: &str) -> rustix::process::Pid {
    let namespace = daemon.ok(&["shell", member, "--", "sudo readlink /proc/1/ns/pid"]);
    for entry in std::fs::read_dir("/proc").expect("proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let is_first = status.lines().any(|line| {
            line.starts_with("NSpid:")
                && line.split_whitespace().last() == Some("1")
                && line.split_whitespace().count() > 2
        });
        let link = std::fs::read_link(entry.path().join("ns/pid"))
            .map(|link| link.display().to_string())
            .unwrap_or_default();
        if is_first && link == namespace.trim() {
            return rustix::process::Pid::from_raw(pid).expect("a pid");
        }
    }
    panic!("no process is PID 1 of {member} ({namespace})");
}
