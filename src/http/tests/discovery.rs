//! What clients learn before they act.

use hyper::header::{ACCEPT, IF_NONE_MATCH};

use super::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

#[tokio::test]
async fn a_group_says_its_version() {
    let api = Api::start();
    let group = api.get("/apis/workstations.ringleader.dev").await.json();
    let version = json!({"groupVersion": "workstations.ringleader.dev/v1", "version": "v1"});
    assert_eq!(
        group,
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "workstations.ringleader.dev",
            "versions": [version], "preferredVersion": version,
        })
    );
    let groups = api.get("/apis/").await.json();
    assert_eq!(groups["kind"], "APIGroupList");
    let names: Vec<_> = groups["groups"].as_array().unwrap().iter().map(|g| g["name"].clone()).collect();
    assert_eq!(names, ["core.ringleader.dev", "workstations.ringleader.dev"]);
}

#[tokio::test]
async fn a_group_version_lists_every_kind_of_the_registry_with_its_status() {
    let api = Api::start();
    let list = api.get("/apis/workstations.ringleader.dev/v1").await.json();
    assert_eq!(list["kind"], "APIResourceList");
    assert_eq!(list["groupVersion"], "workstations.ringleader.dev/v1");
    let resources = list["resources"].as_array().unwrap();
    let by_name = |name: &str| resources.iter().find(|r| r["name"] == name).cloned().unwrap_or_default();
    let pools = by_name("workstationpools");
    assert_eq!(pools["singularName"], "workstationpool");
    assert_eq!(pools["namespaced"], true);
    assert_eq!(pools["kind"], "WorkstationPool");
    assert_eq!(
        pools["verbs"],
        json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"])
    );
    // The value that a real API server computes for the same group, version and kind.
    assert_eq!(pools["storageVersionHash"], "qPlnUqREG6c=");
    assert_eq!(
        by_name("workstationpools/status"),
        json!({
            "name": "workstationpools/status", "singularName": "", "namespaced": true,
            "kind": "WorkstationPool", "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(by_name("workstations/ssh")["verbs"], json!(["create", "get"]));
    assert_eq!(by_name("workstationpools/usage")["verbs"], json!(["get"]));
    assert_eq!(by_name("workstations/usage"), Value::Null);
}

#[tokio::test]
async fn aggregated_discovery_repeats_its_media_type_and_answers_304_to_its_own_tag() {
    let api = Api::start();
    let answer = api.ask(Method::GET, "/apis", &[(ACCEPT, AGGREGATED)], "").await;
    assert_eq!(
        answer.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(answer.header("vary"), "Accept");
    let list = answer.json();
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    let group = &list["items"][1];
    assert_eq!(group["metadata"], json!({"name": "workstations.ringleader.dev", "creationTimestamp": null}));
    let resources = group["versions"][0]["resources"].as_array().unwrap();
    let pools = resources.iter().find(|r| r["resource"] == "workstationpools").unwrap();
    assert_eq!(pools["scope"], "Namespaced");
    assert_eq!(
        pools["responseKind"],
        json!({"group": "workstations.ringleader.dev", "version": "v1", "kind": "WorkstationPool"})
    );
    assert_eq!(pools["subresources"][0]["subresource"], "status");

    let tag = answer.header("etag").to_owned();
    let again = api.ask(Method::GET, "/apis", &[(ACCEPT, AGGREGATED), (IF_NONE_MATCH, &tag)], "").await;
    assert_eq!(again.code, StatusCode::NOT_MODIFIED);
    assert!(again.text.is_empty());
    let other = api.ask(Method::GET, "/apis", &[(IF_NONE_MATCH, &tag)], "").await;
    assert_eq!(other.code, StatusCode::OK, "the plain form is another document");
}

#[tokio::test]
async fn older_clients_get_the_beta_form() {
    let api = Api::start();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let answer = api.ask(Method::GET, "/apis", &[(ACCEPT, accept)], "").await;
    assert_eq!(answer.header("content-type"), accept);
    assert_eq!(answer.json()["apiVersion"], "apidiscovery.k8s.io/v2beta1");
}

#[tokio::test]
async fn the_core_group_is_there_and_empty() {
    let api = Api::start();
    let plain = api.get("/api").await.json();
    assert_eq!((&plain["kind"], &plain["versions"]), (&json!("APIVersions"), &json!([])));
    let aggregated = api.ask(Method::GET, "/api/", &[(ACCEPT, AGGREGATED)], "").await;
    assert_eq!(aggregated.json()["items"], json!([]));
}

#[tokio::test]
async fn unknown_groups_resources_and_paths_are_plain_404s() {
    let api = Api::start();
    for path in [
        "/apis/nope.example.com/v1",
        "/apis/workstations.ringleader.dev/v1/namespaces/local/nosuch",
        "/apis/workstations.ringleader.dev/v2/namespaces/local/workstationpools",
        "/apis/workstations.ringleader.dev/v1/workstationpools/one-without-a-namespace",
        "/nowhere",
    ] {
        let answer = api.get(path).await;
        assert_eq!(answer.code, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.text, "404 page not found\n");
    }
}

#[tokio::test]
async fn the_version_is_one_that_clients_can_read() {
    let api = Api::start();
    for path in ["/version", "/version/", "/version?timeout=32s"] {
        let version = api.get(path).await.json();
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("33")));
        assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.33.0+ringleader-"));
    }
}

#[tokio::test]
async fn readyz_lists_every_reason_and_healthz_does_not_care() {
    let api = Api::start();
    assert_eq!(api.get("/readyz").await.text, "ok");
    api.house.health.lock().unwrap().not_ready =
        vec!["pool agents: rebuilding".into(), "disk: 1 % free".into()];
    let answer = api.get("/readyz").await;
    assert_eq!(answer.code, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.text, "not ready: pool agents: rebuilding\nnot ready: disk: 1 % free\n");
    for path in ["/healthz", "/livez"] {
        assert_eq!(api.get(path).await.text, "ok");
    }
    let status = api.get("/ringleader/v1/status").await.json();
    assert_eq!(status["notReady"][1], "disk: 1 % free");
}
