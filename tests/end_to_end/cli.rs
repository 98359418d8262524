//! The commands around the main job: apply, get, describe, wait, delete, image.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{Daemon, text};

/// A pool that keeps no machine.
const POOL: &str = "apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {name: agents, labels: {team: a}}\n\
                    spec: {template: {spec: {}}, size: {max: 3}, maxAge: 7d}\n";

fn write(daemon: &Daemon, manifest: &str) -> String {
    fs::write(daemon.path("pool.yaml"), manifest).expect("written");
    daemon.path("pool.yaml").display().to_string()
}

// rule S6
#[test]
fn apply_says_what_became_of_each_object_and_takes_back_what_the_manifest_drops() {
    let daemon = Daemon::start();
    let file = write(&daemon, POOL);
    assert_eq!(daemon.ok(&["apply", "-f", &file, "--dry-run"]), "workstationpool/agents created (dry run)\n");
    assert_eq!(daemon.names("workstationpool"), Vec::<String>::new());
    assert_eq!(daemon.ok(&["apply", "-f", &file]), "workstationpool/agents created\n");
    assert_eq!(daemon.ok(&["apply", "-f", &file]), "workstationpool/agents unchanged\n");
    write(&daemon, &POOL.replace(", maxAge: 7d", ", paused: true"));
    assert_eq!(daemon.ok(&["apply", "-f", &file]), "workstationpool/agents configured\n");
    let spec = daemon.value("workstationpool", "agents", "{.spec.maxAge}{.spec.paused}");
    assert_eq!(spec, "true", "a field taken out of the manifest is gone");

    // What `get` prints can be applied again: only what was applied last is noted anew.
    let generation = || daemon.value("workstationpool", "agents", "{.metadata.generation}");
    let before = generation();
    write(&daemon, &daemon.ok(&["get", "workstationpool", "agents", "-o", "yaml"]));
    daemon.ok(&["apply", "-f", &file]);
    assert_eq!(generation(), before);
    assert_eq!(daemon.ok(&["apply", "-f", &file]), "workstationpool/agents unchanged\n");

    write(&daemon, &POOL.replace("name: agents,", "name: agents, namespace: acme,"));
    let lines = "namespace/acme created (it was missing)\nworkstationpool/agents created\n";
    assert_eq!(daemon.ok(&["apply", "-f", &file]), lines);
    daemon.ok(&["delete", "workstationpool", "agents", "-n", "acme", "-y"]);
    daemon.clear();
}

#[test]
fn both_grammars_and_every_output_show_the_same_object() {
    let daemon = Daemon::start();
    daemon.ok(&["apply", "-f", &write(&daemon, POOL)]);
    let yaml = daemon.ok(&["get", "workstationpool", "agents", "-o", "yaml"]);
    for words in [
        ["workstationpool", "get", "agents", "-o", "yaml"],
        ["WorkstationPools", "get", "agents", "-o", "yaml"],
        ["get", "wsp", "agents", "-o", "yaml"],
    ] {
        assert_eq!(daemon.ok(&words), yaml);
    }
    assert!(
        yaml.starts_with("apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\n"),
        "{yaml}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&daemon.ok(&["get", "wsp", "agents", "-o", "json"])).expect("JSON");
    assert_eq!(json["spec"]["size"]["max"], 3);
    let list: serde_json::Value =
        serde_json::from_str(&daemon.ok(&["get", "wsp", "-o", "json"])).expect("JSON");
    assert_eq!((&list["kind"], &list["items"][0]), (&"List".into(), &json));
    assert_eq!(daemon.ok(&["get", "wsp", "-o", "name"]), "workstationpool/agents\n");
    let path = "jsonpath={range .items[*]}{.metadata.name} {.spec.size.max}{\"\\n\"}{end}";
    assert_eq!(daemon.ok(&["get", "wsp", "-o", path]), "agents 3\n");
    let head = |words: &[&str]| daemon.ok(words).lines().next().unwrap_or_default().to_owned();
    assert_eq!(head(&["get", "wsp"]), "NAME     PHASE     CAPACITY   IDLE   LEASED   PENDING   AGE");
    assert!(head(&["get", "wsp", "-o", "wide"]).len() > head(&["get", "wsp"]).len());
    assert_eq!(daemon.ok(&["get", "wsp", "-l", "team=b", "-o", "name"]), "");
    assert_eq!(daemon.ok(&["get", "wsp", "-l", "team in (a, b)", "-o", "name"]), "workstationpool/agents\n");
    let page = daemon.ok(&["describe", "workstationpool/agents"]);
    assert!(page.contains("Capacity:         0 of 3 members, room for 3\n"), "{page}");
    assert_eq!(daemon.ok(&["workstationpool", "describe", "agents"]).lines().count(), page.lines().count());
    daemon.clear();
}

#[test]
fn a_followed_list_prints_what_comes_after_it() {
    let daemon = Daemon::start();
    daemon.ok(&["apply", "-f", &write(&daemon, POOL)]);
    let mut following = daemon
        .command(&["get", "workstationpool", "-w", "-o", "name"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rl runs");
    let lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    let mut names = lines.map(|line| line.expect("a line"));
    assert_eq!(names.next().as_deref(), Some("workstationpool/agents"));
    daemon.ok(&["workstationpool", "create", "builders", "--size-max", "1"]);
    assert!(names.any(|name| name == "workstationpool/builders"));
    following.kill().expect("killed");
    following.wait().expect("reaped");
    daemon.clear();
}

#[test]
fn each_form_of_wait_ends_when_it_is_so() {
    let daemon = Daemon::start();
    daemon.ok(&["apply", "-f", &write(&daemon, POOL)]);
    let wait = |words: &[&str]| daemon.ok(&[&["wait", "--timeout", "90s"], words].concat());
    assert_eq!(wait(&["workstationpool", "agents"]), "workstationpool/agents condition met\n");
    let path = ["wsp/agents", "--for", "jsonpath={.status.capacity.max}=3"];
    daemon.ok(&["workstationpool", "lease", "agents", "--name", "job"]);
    assert_eq!(wait(&["wspl", "job", "--for", "ready"]), "workstationpoollease/job Ready\n");
    assert_eq!(wait(&path), "workstationpool/agents condition met\n");
    daemon.ok(&["delete", "workstationpoollease", "job"]);
    assert_eq!(wait(&["wspl", "job", "--for", "Deleted"]), "workstationpoollease/job deleted\n");
    daemon.clear();
}

#[test]
fn a_refreshed_image_is_no_template_change_and_members_keep_their_generation() {
    // Its own images: those that the other tests share stay as they are.
    let mut daemon = Daemon::prepare();
    daemon.run();
    daemon.ok(&["workstationpool", "create", "agents", "--size-max", "2", "--warm-running", "1"]);
    daemon.ok(&["wait", "workstationpool", "agents", "--timeout", "90s"]);
    let member = daemon.names("workstation").remove(0);
    let hash = daemon.value("workstationpool", "agents", "{.status.templateHash}");
    let first = daemon.value("workstation", &member, "{.status.machine.image}");
    assert!(daemon.ok(&["image", "list"]).contains(&first), "{first}");

    let line = daemon.ok(&["image", "refresh", "host"]);
    let second = line.trim().strip_prefix("image/host is ").expect("the new generation").to_owned();
    assert_ne!(first, second);
    assert_eq!(daemon.value("workstationpool", "agents", "{.status.templateHash}"), hash);
    assert_eq!(daemon.names("workstation"), std::slice::from_ref(&member), "it is not replaced");
    assert_eq!(daemon.value("workstation", &member, "{.status.machine.image}"), first);

    // Members made from now on are made from the new one, and the old one still boots its own.
    daemon.ok(&["workstationpool", "lease", "agents", "--name", "job", "--wait", "--timeout", "90s"]);
    daemon.ok(&["wait", "workstationpool", "agents", "--timeout", "90s"]);
    let newer =
        daemon.names("workstation").into_iter().find(|name| *name != member).expect("a second member");
    assert_eq!(daemon.value("workstation", &newer, "{.status.machine.image}"), second);
    let output = daemon.rl(&["shell", "job", "--", "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    daemon.clear();
}
