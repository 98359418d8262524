//! The daemon as a service: what it tells systemd, reads again, refuses, and exits with.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{Daemon, rl, text};

#[test]
fn systemd_is_told_when_the_daemon_is_ready_alive_and_stopping() {
    let mut daemon = Daemon::start();
    assert_eq!(daemon.stop(), 0);
    let path = daemon.path("notify.sock");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_mins(1))).expect("set");
    let next = |wanted: &str| {
        let mut buffer = [0; 512];
        loop {
            let read = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {wanted} came: {error}"));
            if String::from_utf8_lossy(&buffer[..read]).lines().any(|line| line == wanted) {
                return;
            }
        }
    };
    daemon.run_with(&[("NOTIFY_SOCKET", path.as_os_str()), ("WATCHDOG_USEC", "3000000".as_ref())]);
    next("READY=1");
    next("WATCHDOG=1");
    assert_eq!(daemon.stop(), 0);
    next("STOPPING=1");
}

#[test]
fn a_hangup_reads_the_settings_again_and_wrong_ones_change_nothing() {
    let daemon = Daemon::start();
    let settings = daemon.path("daemon.toml");
    let before = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("builds_at_once_max = 3\n{before}")).expect("written");
    daemon.hang_up();
    daemon.until("the settings are read", || {
        daemon.logged("INFO").iter().any(|line| line.contains("builds_at_once_max=3"))
    });
    std::fs::write(&settings, "builds_at_once_max = 0\n").expect("written");
    daemon.hang_up();
    daemon.until("the wrong ones are refused", || {
        daemon
            .logged("ERROR")
            .iter()
            .any(|line| line.contains("the settings stay as they were: builds_at_once_max"))
    });
    assert!(daemon.rl(&["status"]).status.success(), "it serves on");
}

#[test]
fn a_second_daemon_on_the_same_directory_or_socket_is_refused_and_the_first_serves_on() {
    let daemon = Daemon::start();
    let second = |data: &str, socket: &str| {
        let output = Command::new(rl())
            .args(["daemon", "run", "--data-dir", data, "--socket", socket])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        (output.status.code(), text(&output.stderr))
    };
    let (data, socket) = (daemon.data().display().to_string(), daemon.socket().display().to_string());
    let other = |name: &str| daemon.path(name).display().to_string();
    let (code, said) = second(&data, &other("other.sock"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("another daemon (process ") && said.contains("choose another data directory"),
        "{said}"
    );
    let (code, said) = second(&other("other-data"), &socket);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(&format!("another daemon answers at {socket}: stop it, or pass another --socket")),
        "{said}"
    );
    assert!(daemon.rl(&["status"]).status.success());
}

#[test]
fn wrong_settings_end_the_daemon_with_64_and_name_the_key() {
    let daemon = Daemon::start();
    let file = daemon.path("wrong.toml");
    let file_name = file.display().to_string();
    for (settings, said) in [
        ("[store]\ncashe_mib = 3\n", "unknown field `cashe_mib`"),
        ("builds_at_once_max = 0\n", "builds_at_once_max: 0 would never build; write at least 1"),
        ("providers = [\"cloud\"]\n", "providers: \"cloud\" is not a provider; this version has: sandbox"),
        ("[log]\nformat = \"xml\"\n", "unknown variant `xml`, expected `text` or `json`"),
    ] {
        std::fs::write(&file, settings).expect("written");
        let output =
            Command::new(rl()).args(["daemon", "run", "--config", &file_name]).output().expect("it runs");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    let output =
        Command::new(rl()).args(["daemon", "run", "--listen", "127.0.0.1:1"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
}
