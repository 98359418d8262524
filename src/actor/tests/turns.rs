//! Builds at once, over all pools.

use super::home::Home;
use crate::actor::supervisor::REAL;

// rule F4
// case 29 (RDO nodepool)
#[tokio::test(flavor = "multi_thread")]
async fn hanging_builds_of_one_pool_leave_turns_for_the_others() {
    let home = Home::open(REAL, 8).await;
    home.toy.hang("hog-");
    home.pool("hog", 20, 12).await;
    home.until("the hog has what one pool gets", || home.toy.asked_for("hog-") == 6).await;
    let message = || home.text("workstationpool", "hog", "/status/message");
    home.until("it says what the rest wait for", || message().starts_with("waits for its turn")).await;

    home.pool("sound", 4, 0).await;
    for number in 0..4 {
        let name = format!("job-{number}");
        home.lease("sound", &name).await.expect("leased");
        home.ready(&name).await;
    }
    assert_eq!(home.toy.asked_for("hog-"), 6, "and never more than its share");
}

// rule F4
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_turn_builds_as_soon_as_a_build_has_ended() {
    let home = Home::open(REAL, 1).await;
    home.pool("one", 4, 2).await;
    home.pool("two", 4, 2).await;
    for pool in ["one", "two"] {
        let filled = || home.text("workstationpool", pool, "/status/members/idleRunning") == "2";
        home.until("each floor is filled, one build after the other", filled).await;
    }
}
