//! Booting, stopping, being found again, and leaving nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringleader::provider::{Door, Inspection, Provider};

use crate::house::{House, fresh_id, spec, until};

#[tokio::test]
async fn a_machine_boots_and_says_who_it_is() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("agents-e5f6a7b8")).await.expect("made");
    let Inspection::Running { image, .. } = house.sandbox.inspect(id).await.expect("an answer") else {
        panic!("it does not run");
    };
    assert!(image.starts_with("tiny/"), "{image}");
    assert_eq!(house.said(id, "hostname"), "agents-e5f6a7b8");
    assert_eq!(house.said(id, "cat /etc/hostname"), "agents-e5f6a7b8");
    assert_eq!(house.said(id, "cat /etc/machine-id").len(), 32);
    assert_eq!(house.said(id, "id -u"), "0");
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn asking_twice_is_as_good_as_asking_once() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("twice")).await.expect("made");
    let pid = house.init_pid(id);
    house.sandbox.create(id, &spec("twice")).await.expect("it is there");
    house.sandbox.start(id).await.expect("it runs");
    assert_eq!(house.init_pid(id), pid);
    house.sandbox.stop(id).await.expect("stopped");
    house.sandbox.stop(id).await.expect("it was");
    house.sandbox.delete(id).await.expect("deleted");
    house.sandbox.delete(id).await.expect("it was");
    assert_eq!(house.sandbox.inspect(id).await.expect("an answer"), Inspection::Absent);
}

#[tokio::test]
async fn stop_keeps_the_disk_and_start_boots_it() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("keeper")).await.expect("made");
    let Inspection::Running { boot_id: first, .. } = house.sandbox.inspect(id).await.expect("an answer")
    else {
        panic!("it does not run");
    };
    house.said(id, "echo kept > /root/note; echo gone > /run/note");
    house.sandbox.stop(id).await.expect("stopped");
    assert!(matches!(house.sandbox.inspect(id).await.expect("an answer"), Inspection::Stopped { .. }));

    house.sandbox.start(id).await.expect("started");
    let Inspection::Running { boot_id: second, .. } = house.sandbox.inspect(id).await.expect("an answer")
    else {
        panic!("it does not run");
    };
    assert_ne!(first, second);
    assert_eq!(house.said(id, "cat /root/note"), "kept");
    assert!(!house.inside(id, "cat /run/note").status.success());
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn both_doors_lead_to_the_agents_listeners() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("doors")).await.expect("made");
    house.sandbox.link(id, Door::Control).await.expect("connected");
    house.sandbox.link(id, Door::Ssh).await.expect("connected");
    house.sandbox.stop(id).await.expect("stopped");
    house.sandbox.link(id, Door::Ssh).await.expect_err("nothing runs");
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn the_end_of_a_killed_machine_is_noticed() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("mortal")).await.expect("made");
    let ended = house.sandbox.ended(id);
    kill(house.init_pid(id));
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("in time").expect("noticed");
    assert!(matches!(house.sandbox.inspect(id).await.expect("an answer"), Inspection::Stopped { .. }));
    house.sandbox.start(id).await.expect("it boots again");
    assert!(house.is_running(id).await);
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn a_dead_agent_is_started_again() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("agents")).await.expect("made");
    let init = house.init_pid(id);
    until("an agent runs", || children(init).len() == 1).await;
    let agent = children(init)[0];
    kill(agent);
    until("another agent runs", || children(init).first().is_some_and(|pid| *pid != agent)).await;
    house.sandbox.link(id, Door::Control).await.expect("the listener never went away");
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn machines_outlive_the_daemon_and_its_launcher_and_are_found_again() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("survivor")).await.expect("made");
    let pid = house.init_pid(id);
    let house = house.reopened();
    assert_eq!(house.sandbox.list().await.expect("a list"), [id]);
    assert!(house.is_running(id).await);
    assert_eq!(house.init_pid(id), pid);
    house.sandbox.delete(id).await.expect("deleted");
    until("its first process is gone", || !PathBuf::from(format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn a_dead_launcher_is_replaced() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("first")).await.expect("made");
    let launcher = own_launchers().into_iter().next().expect("a launcher runs");
    kill(launcher);
    let other = fresh_id();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while let Err(error) = house.sandbox.create(other, &spec("second")).await {
        assert!(std::time::Instant::now() < deadline, "still: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(house.is_running(id).await);
    assert!(house.is_running(other).await);
    house.sandbox.delete(id).await.expect("deleted");
    house.sandbox.delete(other).await.expect("deleted");
}

#[tokio::test]
async fn a_half_made_machine_is_broken_and_can_be_deleted() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("half")).await.expect("made");
    let pid = house.init_pid(id);
    fs::write(house.directory(id).join("machine.json"), "{").expect("written");
    assert!(matches!(house.sandbox.inspect(id).await.expect("an answer"), Inspection::Broken { .. }));
    assert_eq!(house.sandbox.list().await.expect("a list"), [id]);
    house.sandbox.start(id).await.expect_err("only delete serves");
    house.sandbox.delete(id).await.expect("deleted");
    assert_eq!(house.sandbox.inspect(id).await.expect("an answer"), Inspection::Absent);
    until("its first process is gone", || !PathBuf::from(format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn what_a_killed_daemon_left_in_the_making_is_swept_at_the_next_start() {
    let house = House::new();
    let left = house.data.path().join("machines").join(format!(".making-{}", fresh_id()));
    fs::create_dir(&left).expect("made");
    let house = house.reopened();
    assert!(!left.exists());
    assert!(house.sandbox.list().await.expect("a list").is_empty());
}

#[tokio::test]
async fn a_machine_of_another_store_is_never_touched() {
    let house = House::new();
    let id = fresh_id();
    house.sandbox.create(id, &spec("foreign")).await.expect("made");
    let (ours, theirs) = (house.instance, fresh_id());
    let record = house.directory(id).join("machine.json");
    let text = fs::read_to_string(&record).expect("a record");
    fs::write(&record, text.replace(&ours.to_string(), &theirs.to_string())).expect("written");
    assert!(house.sandbox.list().await.expect("a list").is_empty());
    house.sandbox.delete(id).await.expect_err("another daemon's");
    fs::write(&record, text).expect("written");
    house.sandbox.delete(id).await.expect("deleted");
}

#[tokio::test]
async fn nothing_is_left_of_deleted_machines() {
    let house = House::new();
    let before = Traces::of(&house);
    let ids = [fresh_id(), fresh_id(), fresh_id()];
    for (id, name) in ids.iter().zip(["one", "two", "three"]) {
        let mut spec = spec(name);
        spec.provider_config.insert("pids".into(), 200.into());
        spec.provider_config.insert("memory".into(), 1.into());
        house.sandbox.create(*id, &spec).await.expect("made");
    }
    assert_ne!(Traces::of(&house), before);
    house.said(ids[1], "setsid sleep 1000 > /dev/null 2>&1 &");
    house.sandbox.stop(ids[0]).await.expect("stopped");
    kill(house.init_pid(ids[2]));
    for id in ids {
        house.sandbox.delete(id).await.expect("deleted");
    }
    until("everything is gone", || Traces::of(&house) == before).await;
}

/// What a machine could leave on the host.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    mounts: String,
    cgroups: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    /// Processes in another user namespace than this one, started from this house's program.
    processes: BTreeSet<u32>,
}

impl Traces {
    fn of(house: &House) -> Self {
        let name = format!("ringleader-{}", house.instance);
        let mut cgroups = BTreeSet::new();
        find(&PathBuf::from("/sys/fs/cgroup"), &name, &mut cgroups);
        let mut directories = BTreeSet::new();
        for part in ["machines", "trash"] {
            for entry in fs::read_dir(house.data.path().join(part)).expect("a directory") {
                directories.insert(entry.expect("an entry").path());
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        Self { mounts, cgroups, directories, processes: house_processes(house) }
    }
}

fn find(directory: &PathBuf, name: &str, found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_name() == *name {
            found.insert(entry.path());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), name, found);
        }
    }
}

/// Processes whose user 0 is one of this house's machines, by their id maps.
fn house_processes(house: &House) -> BTreeSet<u32> {
    let firsts: Vec<String> = fs::read_dir(house.data.path().join("machines"))
        .expect("a directory")
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("machine.json")).ok())
        .filter_map(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .map(|record| record["first_id"].to_string())
        .collect();
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap_or_default();
            map.split_whitespace().nth(1).is_some_and(|first| firsts.iter().any(|other| other == first))
        })
        .collect()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
}

fn children(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Launchers that this thread's process started (nextest gives each test its own process).
fn own_launchers() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc").flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|children| {
            children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"launcher\0"))
        })
        .collect()
}
