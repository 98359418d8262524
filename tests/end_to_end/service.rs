//! The daemon as a service: what it tells systemd, and how it takes new settings.

use std::os::unix::net::UnixDatagram;

use crate::harness::{DEADLINE, Daemon};

#[test]
fn a_reload_takes_the_log_level_and_wrong_settings_change_nothing() {
    let mut daemon = Daemon::prepare();
    daemon.run();
    daemon.ok(&["get", "workstation"]);
    assert_eq!(daemon.logged("DEBUG"), Vec::<String>::new());

    daemon.settle("[log]\nlevel = \"debug\"\n");
    daemon.reload();
    daemon.until("the settings are read again", || daemon.has_logged("settings read again"));
    daemon.ok(&["get", "workstation"]);
    daemon.until("a request is logged", || daemon.has_logged("answered"));

    daemon.settle("[log]\nlevel = \"loud\"\n");
    daemon.reload();
    let refused = "the settings stay as they were: log.level: \"loud\" is no level";
    daemon.until("the wrong ones are refused", || daemon.has_logged(refused));
    let before = daemon.logged("DEBUG").len();
    daemon.ok(&["get", "workstation"]);
    daemon.until("requests are still logged", || daemon.logged("DEBUG").len() > before);
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn systemd_is_told_of_the_start_of_life_and_of_the_end() {
    let mut daemon = Daemon::prepare();
    let path = daemon.path("notify");
    let socket = UnixDatagram::bind(&path).expect("bound");
    socket.set_read_timeout(Some(DEADLINE)).expect("set");
    let heard = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).expect("a word for systemd");
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    daemon.run_with(&[("NOTIFY_SOCKET", &path.display().to_string()), ("WATCHDOG_USEC", "1000000")]);
    // The watchdog lives before the socket does: what matters is that all three are said.
    let first: Vec<String> = std::iter::repeat_with(heard).take_while(|word| word != "READY=1").collect();
    assert!(first.iter().all(|word| word == "WATCHDOG=1"), "{first:?}");
    assert_eq!(heard(), "WATCHDOG=1");
    assert_eq!(heard(), "WATCHDOG=1", "again and again");
    assert_eq!(daemon.stop(), 0);
    let last: Vec<String> = std::iter::repeat_with(heard).take_while(|word| word != "STOPPING=1").collect();
    assert!(last.iter().all(|word| word == "WATCHDOG=1"), "{last:?}");
    assert!(!daemon.socket().exists(), "the socket goes with the daemon");
}

#[test]
fn a_log_directory_gets_the_log_in_files_and_in_the_form_that_is_set() {
    let mut daemon = Daemon::prepare();
    let logs = daemon.path("logs");
    daemon.settle(&format!("[log]\nformat = \"json\"\ndirectory = {:?}\n", logs.display().to_string()));
    daemon.run();
    assert_eq!(daemon.stop(), 0);
    let files: Vec<_> =
        std::fs::read_dir(&logs).expect("made").map(|entry| entry.expect("read").path()).collect();
    assert_eq!(files.len(), 1, "one a day: {files:?}");
    let log = std::fs::read_to_string(&files[0]).expect("a log");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let said = |message: &str| lines.iter().any(|line| line["fields"]["message"] == message);
    assert!(said("ready") && said("stopping: members live on"), "{log}");
}
