//! What a pool has counted, as people read it.

use super::*;
use crate::clock;
use crate::object::{Level, Mark, UsageRow};

fn row(pool: &Value, hours_ago: i64) -> UsageRow {
    let uid = pool["metadata"]["uid"].as_str().expect("a uid").parse().expect("a ulid");
    let mut row = UsageRow::at(uid, clock::now().plus_millis(-hours_ago * 3_600_000));
    row.hour.demand.created = 1;
    row
}

// rule U3
#[tokio::test]
async fn a_pool_tells_its_hours_oldest_first_and_counts_on_while_it_is_idle() {
    let api = Api::start();
    let pool = api.create_pool("agents").await;
    let tick = clock::tick();
    let since = Mark {
        wall: tick.wall.plus_millis(-3_600_000),
        steady: tick.steady.plus_millis(-3_600_000),
        level: Level { idle_running: 2, ..Level::default() },
    };
    api.house.count(UsageRow { mark: Some(since), ..row(&pool, 1) });
    api.house.count(row(&pool, 30));
    api.house.count(row(&pool, 200));
    let answer = api.get(&format!("{POOLS}/agents/usage")).await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    let usage = answer.json();
    assert_eq!(
        (&usage["kind"], &usage["apiVersion"]),
        (&json!("WorkstationPoolUsage"), &json!("workstations.ringleader.dev/v1"))
    );
    assert_eq!(
        usage["metadata"],
        json!({"name": "agents", "namespace": "local", "uid": pool["metadata"]["uid"]})
    );
    let hours = usage["hours"].as_array().expect("a list");
    let starts: Vec<_> = hours.iter().map(|hour| hour["start"].as_str().expect("a time")).collect();
    assert!(starts.is_sorted() && starts.len() == 3, "{starts:?}");
    let idle = |hour: &Value| hour["supply"]["idleRunningSeconds"].as_f64().expect("a number");
    let seconds: f64 = hours.iter().map(idle).sum();
    assert!((7200.0..7260.0).contains(&seconds), "two members for an hour: {seconds}");
    assert_eq!(hours[0]["demand"]["created"], 1);
    let (bounds, histogram) = (&usage["waitBucketsMillis"], &hours[0]["demand"]["wait"]["histogram"]);
    let many = |list: &Value| list.as_array().expect("a list").len();
    assert_eq!(many(bounds) + 1, many(histogram));
}

// rule U3
#[tokio::test]
async fn a_pool_that_is_gone_has_no_usage_and_the_next_of_its_name_starts_afresh() {
    let api = Api::start();
    let pool = api.create_pool("agents").await;
    api.house.count(row(&pool, 1));
    let path = format!("{POOLS}/agents/usage");
    assert_eq!(api.get(&path).await.json()["hours"].as_array().expect("a list").len(), 1);
    assert_eq!(api.ask(Method::DELETE, &format!("{POOLS}/agents"), &[], "").await.code, StatusCode::OK);
    let gone = api.get(&path).await;
    gone.refuses(
        404,
        "NotFound",
        "workstationpools.workstations.ringleader.dev \"agents\" not found",
        &pool_details("agents"),
    );
    api.create_pool("agents").await;
    assert_eq!(api.get(&path).await.json()["hours"], json!([]));
}

#[tokio::test]
async fn usage_is_read_and_not_written_and_only_pools_have_it() {
    let api = Api::start();
    api.create_pool("agents").await;
    let path = format!("{POOLS}/agents/usage");
    let answer = api.send(Method::PUT, &path, &json!({})).await;
    assert_eq!((answer.code, answer.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
    let other = POOLS.replace("workstationpools", "workstationpoolleases");
    assert_eq!(api.get(&format!("{other}/agents/usage")).await.code, StatusCode::NOT_FOUND);
}
