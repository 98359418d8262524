//! Watches.

use super::*;

/// The lines of a watch as they come.
struct Lines {
    body: Incoming,
    pending: String,
}

impl Lines {
    /// The next event, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.pending.split_once('\n') {
                let event = serde_json::from_str(line).expect("each line is an object");
                self.pending = rest.to_owned();
                return Some(event);
            }
            let frame = tokio::time::timeout(DEADLINE, self.body.frame()).await.expect("in time")?;
            let data = frame.expect("the stream ends properly").into_data().expect("data only");
            self.pending.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// Type, name and version of the next event.
    async fn brief(&mut self) -> (String, String, u64) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]), version_of(&event["object"]))
    }
}

impl Api {
    async fn watch(&self, query: &str) -> Lines {
        let response = self.open(Method::GET, &format!("{POOLS}?watch=1&{query}"), &[], "").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/json");
        Lines { body: response.into_body(), pending: String::new() }
    }

    async fn label(&self, name: &str, labels: Value) -> Value {
        let patch = json!({"metadata": {"labels": labels}});
        self.send(Method::PATCH, &format!("{POOLS}/{name}"), &patch).await.json()
    }
}

fn brief(r#type: &str, object: &Value) -> (String, String, u64) {
    (r#type.to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned(), version_of(object))
}

#[tokio::test]
async fn a_watch_from_a_list_tells_every_later_change_in_order() {
    let api = Api::start();
    api.create_pool("before").await;
    let since = version_of(&api.get(POOLS).await.json());
    let made = api.create_pool("w").await;
    let mut lines = api.watch(&format!("resourceVersion={since}")).await;
    assert_eq!(lines.brief().await, brief("ADDED", &made));
    let changed = api.label("w", json!({"a": "b"})).await;
    assert_eq!(lines.brief().await, brief("MODIFIED", &changed));
    api.label("w", json!({"a": "b"})).await;
    api.ask(Method::DELETE, &format!("{POOLS}/w"), &[], "").await;
    let gone = lines.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["metadata"]["labels"]),
        (&json!("DELETED"), &json!({"a": "b"}))
    );
    assert_eq!(version_of(&gone["object"]), api.house_version(), "the version of the deletion");
}

#[tokio::test]
async fn a_watch_without_a_version_or_from_zero_begins_with_what_is_there() {
    let api = Api::start();
    let (a, b) = (api.create_pool("a").await, api.create_pool("b").await);
    for query in ["", "resourceVersion=0", "resourceVersion="] {
        let mut lines = api.watch(query).await;
        assert_eq!(lines.brief().await, brief("ADDED", &a), "{query}");
        assert_eq!(lines.brief().await, brief("ADDED", &b), "{query}");
    }
}

#[tokio::test]
async fn an_object_that_starts_or_stops_to_match_comes_and_goes() {
    let api = Api::start();
    api.create_pool("w").await;
    let since = api.house_version();
    let mut lines = api.watch(&format!("labelSelector=sel%3D1&resourceVersion={since}")).await;
    let matching = api.label("w", json!({"sel": "1"})).await;
    assert_eq!(lines.brief().await, brief("ADDED", &matching));
    let left = api.label("w", json!({"sel": "2"})).await;
    let gone = lines.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"], json!({"sel": "1"}), "its previous state");
    assert_eq!(version_of(&gone["object"]), version_of(&left), "with the new version");
    api.label("w", json!({"sel": "3"})).await;
    let back = api.label("w", json!({"sel": "1"})).await;
    assert_eq!(lines.brief().await, brief("ADDED", &back), "what never matched is not told");
}

#[tokio::test]
async fn a_watch_of_one_name_also_has_its_old_address() {
    let api = Api::start();
    api.create_pool("other").await;
    let mine = api.create_pool("mine").await;
    let mut lines = api.watch("fieldSelector=metadata.name%3Dmine").await;
    assert_eq!(lines.brief().await, brief("ADDED", &mine));
    let path = POOLS.replace("/v1/", "/v1/watch/");
    let answer = api.get(&format!("{path}/mine?timeoutSeconds=1")).await;
    assert_eq!(answer.text.lines().count(), 1);
    let answer = api.get(&format!("{path}?timeoutSeconds=1")).await;
    assert_eq!(answer.text.lines().count(), 2);
}

#[tokio::test]
async fn initial_events_end_with_the_bookmark_that_clients_wait_for() {
    let api = Api::start();
    let made = api.create_pool("a").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = api.watch(query).await;
    assert_eq!(lines.brief().await, brief("ADDED", &made));
    assert_eq!(
        lines.next().await.unwrap(),
        json!({"type": "BOOKMARK", "object": {
            "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPool",
            "metadata": {
                "annotations": {"k8s.io/initial-events-end": "true"},
                "resourceVersion": api.house_version().to_string(),
            },
        }})
    );
    let next = api.create_pool("b").await;
    assert_eq!(lines.brief().await, brief("ADDED", &next));
    let refused = api.get(&format!("{POOLS}?watch=1&sendInitialEvents=true")).await;
    assert_eq!(
        (refused.code.as_u16(), refused.json()["message"].as_str().unwrap()),
        (
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    );
}

#[tokio::test]
async fn a_quiet_watch_is_told_how_far_it_has_come_if_it_wants_to() {
    let api = Api::start_with(|options| options.bookmark_every = Duration::from_millis(20));
    let mut lines = api.watch("allowWatchBookmarks=true").await;
    // Another kind's writes carry this watch's version on, so that it does not fall behind.
    let leases = POOLS.replace("workstationpools", "workstationpoolleases");
    let kind = api.house.kind("workstationpoolleases");
    let before = api.house_version();
    let lease = json!({"metadata": {"name": "l", "uid": ulid::Ulid::from_parts(1, 1).to_string()}});
    api.house.put(crate::view::Key::new(kind, Some("local"), "l"), lease);
    assert_eq!(api.get(&leases).await.code, StatusCode::OK);
    loop {
        let event = lines.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        if version_of(&event["object"]) > before {
            break;
        }
    }
}

#[tokio::test]
async fn a_watch_that_starts_too_far_back_is_told_410_in_the_stream() {
    let api = Api::start();
    for query in ["resourceVersion=1", "watch=true&resourceVersion=999"] {
        let mut lines = api.watch(query).await;
        let event = lines.next().await.unwrap();
        assert_eq!(event["type"], "ERROR");
        let status = &event["object"];
        assert_eq!(
            (&status["kind"], &status["reason"], &status["code"]),
            (&json!("Status"), &json!("Expired"), &json!(410))
        );
        assert!(status["message"].as_str().unwrap().starts_with("too old resource version: "), "{status}");
        assert_eq!(lines.next().await, None);
    }
}

#[tokio::test]
async fn a_watch_from_a_version_to_come_waits_for_it() {
    let api = Api::start();
    let now = api.house_version();
    let mut lines = api.watch(&format!("resourceVersion={}", now + 1)).await;
    api.create_pool("seen-already").await;
    let next = api.create_pool("next").await;
    assert_eq!(lines.brief().await, brief("ADDED", &next));
}

#[tokio::test]
async fn a_watch_ends_after_its_time() {
    let api = Api::start();
    let mut lines = api.watch(&format!("timeoutSeconds=1&resourceVersion={}", api.house_version())).await;
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_cut_off_and_holds_nobody_up() {
    let api = Api::start_with(|options| options.slow_after = Duration::from_millis(50));
    let mut lines = api.watch("").await;
    let padding = "x".repeat(200_000);
    for index in 0..40 {
        let mut body = pool("big");
        body["metadata"]["name"] = json!(format!("big-{index}"));
        body["metadata"]["annotations"] = json!({"example.com/padding": padding});
        assert_eq!(api.send(Method::POST, POOLS, &body).await.code, StatusCode::CREATED);
    }
    let mut told = 0;
    while lines.next().await.is_some() {
        told += 1;
    }
    assert!(told < 40, "the stream ended early");
}

#[tokio::test]
async fn watches_beyond_the_limit_are_sent_away_and_a_closed_one_makes_room() {
    let api = Api::start_with(|options| options.watches = 1);
    let first = api.watch("").await;
    let answer = api.get(&format!("{POOLS}?watch=1")).await;
    assert_eq!((answer.code.as_u16(), answer.header("retry-after")), (429, "1"));
    drop(first);
    tokio::time::timeout(DEADLINE, async {
        while api.open(Method::GET, &format!("{POOLS}?watch=1"), &[], "").await.status() != StatusCode::OK {}
    })
    .await
    .expect("the place is free again");
}
