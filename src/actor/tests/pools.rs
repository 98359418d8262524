//! Pools that fail, and their neighbours that do not notice.

use std::time::{Duration, Instant};

use super::home::{FLAWED, Home};
use crate::actor::doors::Refusal;
use crate::actor::supervisor::REAL;

const POOL: &str = "workstationpool";
const LEASE: &str = "workstationpoollease";

/// A house with a pool `flawed` whose one warm member is idle.
async fn warm() -> Home {
    let home = Home::open(FLAWED, 8).await;
    home.pool("flawed", 3, 1).await;
    idle(&home, "flawed").await;
    home
}

async fn idle(home: &Home, pool: &str) {
    let filled = || home.text(POOL, pool, "/status/members/idleRunning") == "1";
    home.until("a member is idle", filled).await;
}

/// Leases as soon as the owner is up again.
async fn lease_once_rebuilt(home: &Home, pool: &str, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(refusal) = home.lease(pool, name).await {
        assert_eq!(refusal, Refusal::Timeout, "nothing but the death of the owner");
        assert!(Instant::now() < deadline, "the owner did not come back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_panics_before_submit_has_written_nothing_and_serves_on() {
    let home = warm().await;
    assert_eq!(home.lease("flawed", "panic-before-submit").await.err(), Some(Refusal::Timeout));
    lease_once_rebuilt(&home, "flawed", "job").await;
    home.ready("job").await;
    assert!(home.shown(LEASE, "panic-before-submit").is_none());
    assert_eq!(home.not_ready(), [""; 0]);
}

// rule L20
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_panics_in_evolve_answers_all_the_same_and_its_next_owner_serves_the_lease() {
    let home = warm().await;
    let written = home.lease("flawed", "panic-in-evolve").await.expect("it was submitted");
    assert_eq!(written.resource.key.name, "panic-in-evolve");
    let member = home.ready("panic-in-evolve").await;
    assert_eq!(home.toy.keys_of(&member).len(), 1, "the holder's key is there");
    assert_eq!(home.not_ready(), [""; 0]);
}

// rule L20
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_panics_after_submit_loses_neither_the_reply_nor_the_wants_nor_the_bond() {
    let home = warm().await;
    let member = |name: &str| home.text(LEASE, name, "/status/workstationName");
    home.lease("flawed", "panic-after-submit").await.expect("the reply belongs to the submission");
    home.until("the bond is read", || !member("panic-after-submit").is_empty()).await;
    let bound = member("panic-after-submit");
    home.until("the want arrives", || home.toy.keys_of(&bound).len() == 1).await;
    assert_eq!(home.ready("panic-after-submit").await, bound, "it is the same member's still");
    assert_eq!(home.not_ready(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_keeps_panicking_is_given_up_and_says_so_while_its_neighbours_are_served() {
    let mut home = warm().await;
    home.pool("sound", 3, 1).await;
    idle(&home, "sound").await;
    home.lease("flawed", "held").await.expect("leased");
    let member = home.ready("held").await;

    home.lease("flawed", "panic-for-ever").await.expect("submitted");
    let mut served = 0;
    while home.not_ready().is_empty() {
        let name = format!("job-{served}");
        home.lease("sound", &name).await.expect("the neighbour takes leases");
        home.ready(&name).await;
        home.release(&name).await.expect("released");
        served += 1;
    }
    let [why] = home.not_ready().try_into().expect("one reason");
    assert!(why.starts_with("workstationpool/flawed of namespace local failed 5 times in a minute"), "{why}");
    assert!(why.ends_with("see the daemon's log for the cause, then restart the daemon"), "{why}");

    let said = || home.text(POOL, "flawed", "/status/message");
    home.until("the pool itself says so", || said() == why).await;
    let pool = home.shown(POOL, "flawed").expect("it is read on");
    let ready = &pool.value["status"]["conditions"][0];
    assert_eq!(
        [&ready["type"], &ready["status"], &ready["reason"], &ready["message"]],
        ["Ready", "False", "OwnerGivenUp", why.as_str()]
    );
    assert_eq!(pool.value["status"]["phase"], "Degraded");
    let refused = Err(Refusal::Unavailable(why.clone()));
    assert_eq!(home.lease("flawed", "late").await.map(drop), refused, "a write is refused with the reason");
    assert_eq!(home.release("held").await.map(drop), refused);
    assert_eq!(home.text(LEASE, "held", "/status/phase"), "Ready", "what it lent stays lent");
    home.lease("sound", "after").await.expect("the neighbour takes leases");
    home.ready("after").await;

    home.reopen(REAL).await;
    let phase = |home: &Home| home.text(POOL, "flawed", "/status/phase");
    home.until("a restart brings it back", || phase(&home) == "Ready").await;
    assert_eq!(home.text(POOL, "flawed", "/status/conditions/0/reason"), "MembersServe");
    assert_eq!(home.text(LEASE, "held", "/status/workstationName"), member, "with what it had");
    home.ready("panic-for-ever").await;
    home.release("held").await.expect("released");
    assert_eq!(home.not_ready(), [""; 0]);
}

// case 29 (RDO nodepool)
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_holds_up_only_its_own_members() {
    let home = Home::open(REAL, 8).await;
    home.pool("stuck", 5, 1).await;
    idle(&home, "stuck").await;
    home.toy.hang("stuck-");
    home.pool("sound", 4, 0).await;

    home.lease("stuck", "first").await.expect("leased");
    home.ready("first").await;
    home.until("the floor's refill hangs", || home.toy.asked_for("stuck-") == 2).await;
    home.lease("stuck", "hung").await.expect("leased");
    home.lease("sound", "elsewhere").await.expect("leased");
    home.ready("elsewhere").await;
    assert_eq!(home.text(LEASE, "hung", "/status/phase"), "Starting", "it waits for its own machine");

    home.toy.recover();
    // The next member that was begun before hangs too; the one after it is made and serves.
    home.lease("stuck", "hung-too").await.expect("leased");
    idle(&home, "stuck").await;
    home.lease("stuck", "second").await.expect("leased");
    home.ready("second").await;
    home.release("first").await.expect("released");
    home.until("the first one's release goes on", || home.shown(LEASE, "first").is_none()).await;
}

// rule F1
// case 29 (RDO nodepool)
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_panics_has_failed_the_build_and_nothing_else() {
    let home = Home::open(REAL, 8).await;
    home.toy.panic("bad-");
    home.pool("bad", 4, 1).await;
    home.pool("sound", 4, 1).await;
    home.until("it is told after three", || home.text(POOL, "bad", "/status/phase") == "Degraded").await;
    assert!(
        home.text(POOL, "bad", "/status/template/lastFailure/message").contains("the provider itself failed")
    );
    home.lease("sound", "job").await.expect("leased");
    home.ready("job").await;
}
