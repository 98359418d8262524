//! The week of a pool, as it is printed.

use serde_json::{Value, json};

use super::objects::{pool, serve_leases};
use super::typed;
use crate::client::fake::Fake;
use crate::object::{UsageHour, WAIT_BUCKETS_MILLIS};

fn week() -> Value {
    let mut hour = serde_json::to_value(UsageHour::default()).expect("plain data");
    hour["start"] = "2026-11-30T23:00:00Z".into();
    hour["demand"]["created"] = 3.into();
    hour["demand"]["heldMax"] = 2.into();
    hour["supply"]["leasedSeconds"] = 1800.5.into();
    json!({
        "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPoolUsage",
        "metadata": {"name": "agents-linux", "namespace": "local", "uid": "01J"},
        "waitBucketsMillis": WAIT_BUCKETS_MILLIS, "hours": [hour],
    })
}

#[tokio::test]
async fn usage_is_a_table_by_day_and_a_chart_by_hour() {
    let fake = Fake::start(serve_leases);
    fake.put(pool("agents-linux"));
    fake.store().usage = Some(week());
    let ran = typed(&fake, "rl workstationpool usage agents-linux").await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines[0], "DEMAND       LEASES   BOUND   HELD   WAITING   WAIT   LONGEST   EXPIRED");
    assert_eq!(lines[1], "2026-11-30   3        0       2      0         -      -         0");
    assert!(ran.out.contains("30m"), "{}", ran.out);
    assert_eq!(lines[lines.len() - 3], "Most leases held at once, by hour of UTC (█ is 2)");
    assert_eq!(lines[lines.len() - 1], format!("2026-11-30{}█", " ".repeat(26)));
}

#[tokio::test]
async fn usage_for_programs_is_what_the_api_says_or_a_line_an_hour() {
    let fake = Fake::start(serve_leases);
    fake.put(pool("agents-linux"));
    fake.store().usage = Some(week());
    let ran = typed(&fake, "rl wsp usage agents-linux -o json").await;
    assert_eq!(serde_json::from_str::<Value>(&ran.out).expect("JSON"), week());
    let ran = typed(&fake, "rl usage wsp agents-linux -o csv").await;
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!((ran.exit, lines.len(), ran.err.as_str()), (0, 2, ""));
    assert!(lines[0].starts_with("start,created,bound,heldMax,"), "{}", lines[0]);
    assert!(lines[1].starts_with("2026-11-30T23:00:00Z,3,0,2,"), "{}", lines[1]);
    let ran = typed(&fake, "rl wsp usage agents-linux -o wide").await;
    assert_eq!(ran.exit, 2);
}

// rule U4
#[tokio::test]
async fn without_a_usage_store_the_command_says_so() {
    let fake = Fake::start(serve_leases);
    fake.put(pool("agents-linux"));
    let ran = typed(&fake, "rl workstationpool usage agents-linux").await;
    assert_eq!((ran.exit, ran.out.as_str()), (1, ""));
    assert_eq!(
        ran.err,
        "error: this control plane keeps no usage store: workstationpool/agents-linux has no history here\n"
    );
    let ran = typed(&fake, "rl workstationpool usage nope").await;
    assert!(ran.err.starts_with("error: workstationpool/nope not found in namespace local"), "{}", ran.err);
    assert_eq!(ran.exit, 1);
}

#[tokio::test]
async fn a_pool_that_has_counted_nothing_yet_is_no_failure() {
    let fake = Fake::start(serve_leases);
    fake.put(pool("agents-linux"));
    let mut empty = week();
    empty["hours"] = json!([]);
    fake.store().usage = Some(empty);
    let ran = typed(&fake, "rl workstationpool usage agents-linux").await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, ""));
    assert_eq!(ran.err, "workstationpool/agents-linux has counted nothing yet\n");
}
