//! Room in a namespace, shared by its pools.

use super::home::Home;
use crate::actor::supervisor::REAL;

const POOL: &str = "workstationpool";

// rule W2
// case 7 (agent-sandbox#1215, OpenSandbox#1423)
#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_never_exceeded_and_who_waits_for_room_gets_what_another_pool_gives_back() {
    let home = Home::open(REAL, 8).await;
    let quota = serde_json::json!({"spec": {"quota": {"workstations": 3}}});
    home.patch("namespace", "local", quota).await.expect("written");
    home.pool("first", 10, 5).await;
    let idle = |pool: &str| home.text(POOL, pool, "/status/members/idleRunning");
    home.until("the namespace is full", || idle("first") == "3").await;
    let message = |pool: &str| home.text(POOL, pool, "/status/message");
    let full = "waits for room: namespace local may hold 3 workstations";
    home.until("it says what it waits for", || message("first") == full).await;
    assert_eq!(home.toy.asked_for("first-"), 3, "not one more was ever made");

    home.pool("second", 10, 1).await;
    home.until("so does the other", || message("second") == full).await;
    let fewer = serde_json::json!({"spec": {"size": {"max": 2}, "warm": {"running": 2}}});
    home.patch(POOL, "first", fewer).await.expect("written");
    home.until("the room is used", || idle("second") == "1").await;
    home.until("nobody waits", || message("first").is_empty() && message("second").is_empty()).await;
}
