//! What a scraper reads over the real socket, after a real lease.

use std::process::Command;

use crate::harness::{Daemon, text};

#[test]
fn a_scrape_over_the_socket_tells_of_a_lease_from_its_wait_to_its_end() {
    let daemon = Daemon::with_pool();
    let before = scrape(&daemon);
    assert_eq!(value(&before, "ringleader_leases_created_total"), 0);
    assert!(value(&before, "ringleader_member_build_seconds_count") >= 1, "its floor was built");

    daemon.lease("no-label-names-me");
    let held = scrape(&daemon);
    assert_eq!(value(&held, "ringleader_leases{phase=\"Ready\"}"), 1);
    assert_eq!(value(&held, "ringleader_members{state=\"Leased\"}"), 1);
    assert_eq!(value(&held, "ringleader_lease_wait_seconds_count{start=\"warm\"}"), 1);
    assert_eq!(value(&held, "ringleader_lease_wait_seconds_bucket{start=\"warm\",le=\"300\"}"), 1);
    assert!(value(&held, "ringleader_store_commit_seconds_count") > 0);
    let gathered = value(&held, "ringleader_store_commit_submissions_sum");
    assert!(gathered >= value(&held, "ringleader_store_commit_submissions_count"));

    daemon.ok(&["workstationpoollease", "release", "no-label-names-me"]);
    daemon.until("its end is counted", || {
        let scraped = scrape(&daemon);
        value(&scraped, "ringleader_lease_endings_total{outcome=\"done\"}") == 1
            && value(&scraped, "ringleader_member_removals_total{reason=\"released\"}") == 1
            && value(&scraped, "ringleader_members_gone_total") == 1
    });
    let after = scrape(&daemon);
    assert_eq!(value(&after, "ringleader_leases{phase=\"Ready\"}"), 0);
    assert_eq!(value(&after, "ringleader_owner_restarts_total"), 0);
    assert!(!after.contains("no-label-names-me") && !after.contains("agents-linux"));
    let series = |scraped: &str| scraped.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(series(&before), series(&after), "a life adds no line");
    daemon.clear();
}

/// As an operator types it.
fn scrape(daemon: &Daemon) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--unix-socket"])
        .arg(daemon.socket())
        .arg("http://rl/metrics")
        .output()
        .expect("curl runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A whole number of it.
fn value(scraped: &str, series: &str) -> u64 {
    let found = scraped.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found
        .unwrap_or_else(|| panic!("no {series} in\n{scraped}"))
        .trim_end_matches(".0")
        .parse()
        .expect("a whole number")
}
