//! What a pool has counted, with real machines and over a crash.

use serde_json::Value;

use crate::harness::{Daemon, text};

// rule U1
#[test]
fn the_life_of_a_lease_shows_in_the_usage_of_its_pool() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("my-build");
    daemon.ok(&["workstationpoollease", "release", "my-build"]);
    daemon.until("the lease is gone", || daemon.names("workstationpoollease").is_empty());
    daemon.until("the member is gone", || !daemon.names("workstation").contains(&member));
    let week = week(&daemon);
    let all = |pointer: &str| -> f64 { week.iter().map(|hour| number(hour, pointer)).sum() };
    for (pointer, expected) in [
        ("/demand/created", 1.0),
        ("/demand/bound", 1.0),
        ("/demand/wait/count", 1.0),
        ("/demand/expiredUnbound", 0.0),
        ("/endings/done", 1.0),
        ("/supply/deleted", 1.0),
    ] {
        assert!((all(pointer) - expected).abs() < f64::EPSILON, "{pointer} is {}: {week:#?}", all(pointer));
    }
    let most = week.iter().map(|hour| number(hour, "/demand/heldMax")).fold(0.0, f64::max);
    assert!((1.0..2.0).contains(&most), "{most} were held at once");
    assert!(all("/supply/built") >= 1.0 && all("/supply/leasedSeconds") > 0.0, "{week:#?}");

    let table = daemon.ok(&["workstationpool", "usage", "agents-linux"]);
    assert!(table.starts_with("DEMAND") && table.contains("Most leases held at once"), "{table}");
    daemon.clear();
}

// rule U2
#[test]
fn a_killed_daemon_counts_nothing_twice_and_goes_on_counting() {
    let mut daemon = Daemon::with_pool();
    daemon.lease("my-build");
    for _ in 0..3 {
        daemon.kill();
        daemon.run();
    }
    let all = |daemon: &Daemon, pointer: &str| -> f64 {
        week(daemon).iter().map(|hour| number(hour, pointer)).sum()
    };
    assert!((all(&daemon, "/demand/created") - 1.0).abs() < f64::EPSILON);
    let before = all(&daemon, "/supply/leasedSeconds");
    daemon.until("the leased member's time goes on", || all(&daemon, "/supply/leasedSeconds") > before);
    daemon.ok(&["workstationpoollease", "release", "my-build"]);
    daemon.until("the release is counted", || all(&daemon, "/endings/done") > 0.5);
    daemon.clear();
}

fn week(daemon: &Daemon) -> Vec<Value> {
    let output = daemon.rl(&["workstationpool", "usage", "agents-linux", "-o", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let usage: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    usage["hours"].as_array().expect("a list").clone()
}

fn number(hour: &Value, pointer: &str) -> f64 {
    hour.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {hour:#}"))
}
