//! Lease a machine, work on it, hand it back.

use std::io::Write as _;
use std::process::Stdio;

use crate::harness::{Daemon, text};

// rule S5
#[test]
fn the_main_job_works_as_it_is_typed() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("my-build");
    let (name, suffix) = member.rsplit_once('-').expect("a suffix");
    assert_eq!(name, "agents-linux");
    assert!(suffix.len() == 8 && suffix.chars().all(|c| c.is_ascii_hexdigit()), "{member}");

    let seen = daemon.ok(&["shell", &member, "--", "id; hostname; cat /etc/os-release"]);
    assert!(seen.contains("(dev)"), "{seen}");
    assert!(seen.contains(&member), "{seen}");
    assert!(seen.contains("PRETTY_NAME="), "{seen}");

    let config = daemon.ssh_config();
    let output = daemon.ssh(&config, &[&member, "true"]).output().expect("ssh runs");
    assert!(output.status.success(), "{}", text(&output.stderr));

    assert!(daemon.ok(&["get", "workstationpool"]).contains("agents-linux"));
    assert!(daemon.ok(&["get", "workstationpoollease"]).contains(&member));
    assert!(daemon.ok(&["get", "workstation"]).contains(&member));

    daemon.ok(&["workstationpoollease", "release", "my-build"]);
    daemon.until("the lease is gone", || daemon.names("workstationpoollease").is_empty());
    daemon.until("the member is gone", || !daemon.names("workstation").contains(&member));
    daemon.clear();
    assert_eq!(daemon.logged("ERROR"), Vec::<String>::new());
}

#[test]
fn a_shell_passes_exit_codes_input_output_and_errors_apart() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("job");
    let output = daemon.rl(&["shell", &member, "--", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).ends_with("err\n"), "{}", text(&output.stderr));

    let mut copying = daemon
        .command(&["shell", "job", "--", "wc -c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    copying.stdin.take().expect("piped").write_all(&vec![b'x'; 5_000_000]).expect("taken");
    let output = copying.wait_with_output().expect("ends");
    assert_eq!(text(&output.stdout).trim(), "5000000", "a lease's name is as good as its member's");

    let (code, _) = daemon.fails(&["shell", "no-such-member", "--", "true"]);
    assert_eq!(code, 125, "rl's own failure is told apart from the command's");
    daemon.clear();
}

#[test]
fn an_interactive_shell_has_a_terminal() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("job");
    let config = daemon.ssh_config();
    let mut shell = daemon
        .ssh(&config, &["-tt", &member])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ssh runs");
    shell.stdin.take().expect("piped").write_all(b"tty; echo shell=$0; exit 3\n").expect("typed");
    let output = shell.wait_with_output().expect("ends");
    let seen = text(&output.stdout);
    assert!(seen.contains("/dev/pts/"), "{seen}{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(3));
    daemon.clear();
}

#[test]
fn the_login_user_becomes_root_inside_and_nobody_outside() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("job");
    let inside = daemon.ok(&["shell", &member, "--", "sudo id -u; sudo cat /proc/self/uid_map"]);
    let lines: Vec<&str> = inside.lines().collect();
    assert_eq!(lines[0], "0");
    let host: u32 = lines[1].split_whitespace().nth(1).expect("a map").parse().expect("a number");
    assert!(host >= 0x1000_0000, "root inside is host user {host}");
    daemon.clear();
}

// rule A2
#[test]
fn a_released_key_opens_no_new_login() {
    let daemon = Daemon::with_pool();
    let key = daemon.path("other");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.expect("ssh-keygen is there").success());
    let public = format!("{}.pub", key.display());
    daemon.ok(&["workstationpool", "lease", "agents-linux", "--name", "job", "--key", &public, "--wait"]);
    let member = daemon.value("workstationpoollease", "job", "{.status.workstationName}");
    let config = daemon.ssh_config();
    let identity = format!("IdentityFile={}", key.display());
    let login = |expected: bool| {
        let output = daemon.ssh(&config, &["-o", &identity, &member, "true"]).output().expect("ssh runs");
        output.status.success() == expected
    };
    assert!(login(true), "the lease's key opens the member");
    // Another key takes its place: what is on the member is what the lease says now (rule L18).
    daemon.ok(&["workstationpoollease", "release", "job"]);
    daemon.until("the member is closed", || login(false));
    daemon.clear();
}

#[test]
fn stopping_keeps_the_disk_and_starting_boots_it() {
    let daemon = Daemon::start();
    let manifest = daemon.path("hello.yaml");
    let text = "apiVersion: workstations.ringleader.dev/v1\nkind: Workstation\nmetadata: {name: hello, namespace: local}\nspec: {}\n";
    std::fs::write(&manifest, text).expect("written");
    let manifest = manifest.display().to_string();
    daemon.ok(&["auth", "status"]);
    daemon.ok(&["apply", "-f", &manifest]);
    daemon.ok(&["wait", "workstation", "hello", "--timeout", "90s"]);
    daemon.ok(&["shell", "hello", "--", "echo kept > note; uname -n"]);
    std::fs::write(daemon.path("hello.yaml"), text.replace("spec: {}", "spec: {stopped: true}"))
        .expect("written");
    daemon.ok(&["apply", "-f", &manifest]);
    daemon.ok(&["wait", "workstation", "hello", "--for", "Stopped", "--timeout", "90s"]);
    std::fs::write(daemon.path("hello.yaml"), text).expect("written");
    daemon.ok(&["apply", "-f", &manifest]);
    daemon.ok(&["wait", "workstation", "hello", "--timeout", "90s"]);
    assert_eq!(daemon.ok(&["shell", "hello", "--", "cat note"]).trim(), "kept");
    daemon.clear();
}
