//! Gets and lists.

use hyper::header::ACCEPT;

use super::*;

#[tokio::test]
async fn an_object_is_there_once_it_was_created_and_a_missing_one_is_named() {
    let api = Api::start();
    api.get(&format!("{POOLS}/missing")).await.refuses(
        404,
        "NotFound",
        "workstationpools.workstations.ringleader.dev \"missing\" not found",
        &pool_details("missing"),
    );
    let made = api.create_pool("agents").await;
    let answer = api.get(&format!("{POOLS}/agents/")).await;
    assert_eq!(answer.json(), made);
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    assert_eq!(answer.header("audit-id").len(), 36);
    assert_eq!(api.get(&format!("{POOLS}/agents/status")).await.json(), made);
}

#[tokio::test]
async fn head_answers_as_get_without_the_body() {
    let api = Api::start();
    api.create_pool("agents").await;
    let whole = api.get(&format!("{POOLS}/agents")).await;
    let head = api.ask(Method::HEAD, &format!("{POOLS}/agents"), &[], "").await;
    assert_eq!(head.code, StatusCode::OK);
    assert!(head.text.is_empty());
    assert_eq!(head.header("content-length"), whole.text.len().to_string());
}

#[tokio::test]
async fn an_empty_list_has_the_stores_version() {
    let api = Api::start();
    let list = api.get(&format!("{POOLS}?&limit=500&unknown=1")).await.json();
    assert_eq!(
        list,
        json!({
            "apiVersion": "workstations.ringleader.dev/v1", "items": [], "kind": "WorkstationPoolList",
            "metadata": {"continue": "", "resourceVersion": "1001"},
        })
    );
}

#[tokio::test]
async fn lists_are_ordered_whole_and_as_new_as_the_newest_write() {
    let api = Api::start();
    for name in ["b", "a", "c"] {
        api.create_pool(name).await;
    }
    api.send(Method::DELETE, &format!("{POOLS}/c"), &json!({})).await;
    let list = api.get("/apis/workstations.ringleader.dev/v1/workstationpools?limit=1").await.json();
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(version_of(&list), api.house_version());
}

#[tokio::test]
async fn cluster_wide_kinds_have_no_namespace_in_their_path() {
    let api = Api::start();
    let namespaces = "/apis/core.ringleader.dev/v1/namespaces";
    assert_eq!(api.get(namespaces).await.json()["items"][0]["metadata"]["name"], "local");
    assert_eq!(api.get(&format!("{namespaces}/local")).await.json()["kind"], "Namespace");
    let events = api.get(&format!("{namespaces}/local/events")).await.json();
    assert_eq!(events["kind"], "EventList");
}

#[tokio::test]
async fn selectors_choose_by_labels_and_by_name() {
    let api = Api::start();
    for (name, team) in [("a", "red"), ("b", "blue")] {
        let mut body = pool(name);
        body["metadata"]["labels"] = json!({"team": team});
        assert_eq!(api.send(Method::POST, POOLS, &body).await.code, StatusCode::CREATED);
    }
    for (query, expected) in [
        ("labelSelector=team%3Dred", vec!["a"]),
        ("labelSelector=team+notin+(red)", vec!["b"]),
        ("labelSelector=!team", vec![]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name!%3Db&labelSelector=team", vec!["a"]),
    ] {
        let list = api.get(&format!("{POOLS}?{query}")).await.json();
        let names: Vec<_> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{query}");
    }
    let bad = api.get(&format!("{POOLS}?labelSelector=a%20b%20c")).await;
    assert_eq!(bad.code, StatusCode::BAD_REQUEST);
    assert!(bad.json()["message"].as_str().unwrap().contains("found 'b', expected:"), "{}", bad.text);
    let bad = api.get(&format!("{POOLS}?fieldSelector=spec.size%5B0%5D%3D1")).await;
    bad.refuses(400, "BadRequest", "field label not supported: spec.size[0]", &Value::Null);
}

#[tokio::test]
async fn a_list_may_ask_how_fresh_it_is() {
    let api = Api::start();
    api.create_pool("a").await;
    let now = api.house_version();
    for query in [
        "resourceVersion=0",
        "resourceVersion=1",
        &format!("resourceVersion={now}&resourceVersionMatch=Exact"),
    ] {
        assert_eq!(api.get(&format!("{POOLS}?{query}")).await.code, StatusCode::OK, "{query}");
    }
    let answer =
        api.get(&format!("{POOLS}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan")).await;
    answer.refuses(
        504,
        "Timeout",
        &format!("Timeout: Too large resource version: 99999999, current: {now}"),
        &json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }),
    );
    assert_eq!(answer.header("retry-after"), "1");
    let answer = api.get(&format!("{POOLS}?resourceVersion=1&resourceVersionMatch=Exact")).await;
    assert_eq!((answer.code.as_u16(), &answer.json()["reason"]), (410, &json!("Expired")));
    api.get(&format!("{POOLS}?resourceVersionMatch=Exact")).await.refuses(
        422,
        "Invalid",
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        &json!({
            "group": "meta.k8s.io", "kind": "ListOptions",
            "causes": [{
                "reason": "FieldValueForbidden", "field": "resourceVersionMatch",
                "message": "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            }],
        }),
    );
    assert_eq!(api.get(&format!("{POOLS}?resourceVersion=abc")).await.code, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_object_comes_as_yaml_where_that_is_asked_for() {
    let api = Api::start();
    let made = api.create_pool("agents").await;
    let answer = api.ask(Method::GET, &format!("{POOLS}/agents"), &[(ACCEPT, "application/yaml")], "").await;
    assert_eq!(answer.header("content-type"), "application/yaml");
    assert_eq!(serde_saphyr::from_str::<Value>(&answer.text).unwrap(), made);
    let answer = api.ask(Method::GET, &format!("{POOLS}/agents"), &[(ACCEPT, "text/html")], "").await;
    answer.refuses(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
        &Value::Null,
    );
}

#[tokio::test]
async fn a_waiting_lease_is_read_with_its_place_in_the_queue() {
    let api = Api::start();
    let pool = api.create_pool("agents").await;
    let kind = api.house.kind("workstationpoolleases");
    let leases = POOLS.replace("workstationpools", "workstationpoolleases");
    for (index, name) in ["first", "second"].iter().enumerate() {
        let uid = ulid::Ulid::from_parts(1000, index as u128).to_string();
        let lease = json!({
            "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPoolLease",
            "metadata": {
                "name": name, "namespace": "local", "uid": uid,
                "creationTimestamp": format!("2026-11-30T00:00:0{index}Z"),
            },
            "spec": {"poolRef": {"name": "agents"}},
            "status": {"phase": "Pending", "poolUID": pool["metadata"]["uid"]},
        });
        api.house.put(crate::view::Key::new(kind, Some("local"), name), lease);
    }
    let one = api.get(&format!("{leases}/second")).await.json();
    assert_eq!(one["status"]["queuePosition"], 2);
    let list = api.get(&leases).await.json();
    let positions: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|i| &i["status"]["queuePosition"]).collect();
    assert_eq!(positions, [1, 2]);
}
