//! Creates, updates, patches and deletes.

use hyper::header::ACCEPT;

use crate::actor::doors::Refusal;

use super::*;

#[tokio::test]
async fn a_create_answers_201_with_the_object_as_it_is_stored() {
    let api = Api::start();
    let made = api.create_pool("agents").await;
    assert_eq!(made["metadata"]["namespace"], "local");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(version_of(&made), api.house_version());
    api.send(Method::POST, POOLS, &pool("agents")).await.refuses(
        409,
        "AlreadyExists",
        "workstationpools.workstations.ringleader.dev \"agents\" already exists",
        &pool_details("agents"),
    );
}

#[tokio::test]
async fn a_body_may_be_yaml_and_may_have_no_content_type() {
    let api = Api::start();
    let yaml =
        "kind: WorkstationPool\nmetadata: {name: y}\nspec:\n  template: {spec: {}}\n  size: {max: 2}\n";
    let answer = api.ask(Method::POST, POOLS, &[(CONTENT_TYPE, "application/yaml")], yaml).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    let answer = api.ask(Method::POST, POOLS, &[], pool("j").to_string()).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    let answer =
        api.ask(Method::POST, POOLS, &[(CONTENT_TYPE, "application/x-www-form-urlencoded")], "x=1").await;
    answer.refuses(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
        &Value::Null,
    );
}

#[tokio::test]
async fn every_wrong_field_is_a_cause() {
    let api = Api::start();
    let mut body = pool("agents");
    body["spec"]["size"] = json!({"max": "six"});
    body["spec"]["warm"] = json!({"running": -1});
    let answer = api.send(Method::POST, POOLS, &body).await;
    let status = answer.json();
    assert_eq!(answer.code.as_u16(), 422);
    assert_eq!(status["reason"], "Invalid");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("WorkstationPool.workstations.ringleader.dev \"agents\" is invalid: ["),
        "{message}"
    );
    assert_eq!(status["details"]["kind"], "WorkstationPool");
    let causes = status["details"]["causes"].as_array().unwrap();
    let cause =
        |field: &str| causes.iter().find(|c| c["field"] == field).unwrap_or_else(|| panic!("{status:#}"));
    assert_eq!(cause("spec.size.max")["reason"], "FieldValueTypeInvalid");
    assert_eq!(cause("spec.warm.running")["reason"], "FieldValueInvalid");
}

#[tokio::test]
async fn unknown_fields_are_dropped_warned_of_or_refused_as_the_client_likes() {
    let api = Api::start();
    let body = |name: &str| {
        let mut body = pool(name);
        body["spec"]["bogus"] = json!(1);
        body
    };
    let warned = api.send(Method::POST, POOLS, &body("a")).await;
    assert_eq!(warned.code, StatusCode::CREATED);
    assert_eq!(warned.header("warning"), r#"299 - "unknown field \"spec.bogus\"""#);
    assert_eq!(warned.json()["spec"].get("bogus"), None);
    let silent = api.send(Method::POST, &format!("{POOLS}?fieldValidation=Ignore"), &body("b")).await;
    assert_eq!((silent.code, silent.header("warning")), (StatusCode::CREATED, ""));
    api.send(Method::POST, &format!("{POOLS}?fieldValidation=Strict"), &body("c")).await.refuses(
        400,
        "BadRequest",
        "WorkstationPool in version \"v1\" cannot be handled as a WorkstationPool: strict decoding error: unknown field \"spec.bogus\"",
        &Value::Null,
    );
    let odd = api.send(Method::POST, &format!("{POOLS}?fieldValidation=Maybe"), &body("d")).await;
    assert_eq!(odd.json()["details"]["causes"][0]["field"], "fieldValidation");
}

#[tokio::test]
async fn a_key_that_stands_twice_is_treated_like_an_unknown_one() {
    let api = Api::start();
    let body = |name: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"template":{{"spec":{{}}}},"size":{{"max":1,"max":2}}}}}}"#
        )
    };
    let warned = api.ask(Method::POST, POOLS, &[], body("a")).await;
    assert_eq!(warned.header("warning"), r#"299 - "duplicate field \"spec.size.max\"""#);
    assert_eq!(warned.json()["spec"]["size"]["max"], 2);
    api.ask(Method::POST, &format!("{POOLS}?fieldValidation=Strict"), &[], body("b")).await.refuses(
        400,
        "BadRequest",
        "WorkstationPool in version \"v1\" cannot be handled as a WorkstationPool: strict decoding error: duplicate field \"spec.size.max\"",
        &Value::Null,
    );
}

#[tokio::test]
async fn a_body_that_is_no_object_of_this_kind_is_a_bad_request() {
    let api = Api::start();
    for body in ["{\"apiVersion\":", "[1,2]", "", "\"text\""] {
        let answer = api.ask(Method::POST, POOLS, &[(CONTENT_TYPE, "application/json")], body).await;
        assert_eq!(answer.code, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.json()["message"].as_str().unwrap().contains("must be of type WorkstationPool"));
    }
    let mut body = pool("x");
    body["apiVersion"] = json!("other.dev/v1");
    api.send(Method::POST, POOLS, &body).await.refuses(
        400,
        "BadRequest",
        "the API version in the data (other.dev/v1) does not match the expected API version (workstations.ringleader.dev/v1)",
        &Value::Null,
    );
    let mut body = pool("x");
    body["metadata"]["namespace"] = json!("other");
    api.send(Method::POST, POOLS, &body).await.refuses(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        &Value::Null,
    );
}

#[tokio::test]
async fn a_create_in_a_missing_namespace_names_the_namespace() {
    let api = Api::start();
    let path = POOLS.replace("/local/", "/nowhere/");
    api.send(Method::POST, &path, &pool("x")).await.refuses(
        404,
        "NotFound",
        "namespaces \"nowhere\" not found",
        &json!({"name": "nowhere", "kind": "namespaces"}),
    );
}

#[tokio::test]
async fn a_dry_run_answers_like_the_real_one_and_writes_nothing() {
    let api = Api::start();
    let answer = api.send(Method::POST, &format!("{POOLS}?dryRun=All"), &pool("dry")).await;
    assert_eq!(answer.code, StatusCode::CREATED);
    assert_eq!(answer.json()["metadata"].get("resourceVersion"), None);
    assert_eq!(api.get(&format!("{POOLS}/dry")).await.code, StatusCode::NOT_FOUND);
    api.create_pool("agents").await;
    let answer = api.send(Method::DELETE, &format!("{POOLS}/agents"), &json!({"dryRun": ["All"]})).await;
    assert_eq!(answer.json()["status"], "Success");
    assert_eq!(api.get(&format!("{POOLS}/agents")).await.code, StatusCode::OK);
}

#[tokio::test]
async fn a_put_replaces_the_object_it_has_seen_and_no_other() {
    let api = Api::start();
    let path = format!("{POOLS}/agents");
    let mut object = api.create_pool("agents").await;
    object["spec"]["size"]["max"] = json!(7);
    let answer = api.send(Method::PUT, &path, &object).await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.json()["metadata"]["generation"], 2);
    object["spec"]["size"]["max"] = json!(8);
    api.send(Method::PUT, &path, &object).await.refuses(
        409,
        "Conflict",
        "Operation cannot be fulfilled on workstationpools.workstations.ringleader.dev \"agents\": the object has been modified; please apply your changes to the latest version and try again",
        &pool_details("agents"),
    );
    api.send(Method::PUT, &path, &pool("other")).await.refuses(
        400,
        "BadRequest",
        "the name of the object (other) does not match the name on the URL (agents)",
        &Value::Null,
    );
    let missing = api.send(Method::PUT, &format!("{POOLS}/nope"), &pool("nope")).await;
    assert_eq!(missing.code, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_merge_patch_changes_what_it_names() {
    let api = Api::start();
    let path = format!("{POOLS}/agents");
    api.create_pool("agents").await;
    let change = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"size": {"max": 9}}});
    let patched = api.send(Method::PATCH, &path, &change).await.json();
    assert_eq!(
        (&patched["metadata"]["labels"]["team"], &patched["spec"]["size"]["max"]),
        (&json!("a"), &json!(9))
    );
    let again = api.send(Method::PATCH, &path, &change).await;
    assert_eq!((again.code, version_of(&again.json())), (StatusCode::OK, version_of(&patched)), "a no-op");
    let stale = api.send(Method::PATCH, &path, &json!({"metadata": {"resourceVersion": "1"}})).await;
    assert_eq!((stale.code.as_u16(), &stale.json()["reason"]), (409, &json!("Conflict")));
    let broken =
        api.ask(Method::PATCH, &path, &[(CONTENT_TYPE, "application/merge-patch+json")], "[1,2]").await;
    assert_eq!(broken.code, StatusCode::BAD_REQUEST);
    let forced = api.send(Method::PATCH, &format!("{path}?force=true"), &change).await;
    assert_eq!(
        forced.json()["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
}

#[tokio::test]
async fn other_sorts_of_patch_are_told_which_one_is_taken() {
    let api = Api::start();
    api.create_pool("agents").await;
    for sort in [
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "application/json",
    ] {
        let answer = api.ask(Method::PATCH, &format!("{POOLS}/agents"), &[(CONTENT_TYPE, sort)], "{}").await;
        answer.refuses(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/merge-patch+json",
            &Value::Null,
        );
    }
}

#[tokio::test]
async fn status_is_written_at_its_own_address_and_nowhere_else() {
    let api = Api::start();
    api.create_pool("agents").await;
    let patch = json!({"spec": {"size": {"max": 77}}, "metadata": {"labels": {"x": "y"}}, "status": {"observedGeneration": 1}});
    let answer = api.send(Method::PATCH, &format!("{POOLS}/agents/status"), &patch).await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    let object = answer.json();
    assert_eq!(object["status"]["observedGeneration"], 1);
    assert_eq!((&object["spec"]["size"]["max"], &object["metadata"]["generation"]), (&json!(6), &json!(1)));
    assert_eq!(object["metadata"].get("labels"), None);
    let object = api
        .send(Method::PATCH, &format!("{POOLS}/agents"), &json!({"status": {"observedGeneration": 5}}))
        .await;
    assert_eq!(object.json()["status"]["observedGeneration"], 1);
    let answer = api.send(Method::DELETE, &format!("{POOLS}/agents/status"), &json!({})).await;
    assert_eq!((answer.code.as_u16(), answer.header("allow")), (405, "GET, HEAD, PUT, PATCH"));
}

#[tokio::test]
async fn a_delete_answers_success_with_the_uid() {
    let api = Api::start();
    let made = api.create_pool("agents").await;
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "gracePeriodSeconds": 0});
    let answer = api.send(Method::DELETE, &format!("{POOLS}/agents"), &body).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {
                "name": "agents", "group": "workstations.ringleader.dev", "kind": "workstationpools",
                "uid": made["metadata"]["uid"],
            },
        })
    );
    assert_eq!(
        api.ask(Method::DELETE, &format!("{POOLS}/agents"), &[], "").await.code,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_delete_that_finalizers_hold_answers_the_object() {
    let api = Api::start();
    api.create_pool("agents").await;
    let path = format!("{POOLS}/agents");
    api.send(Method::PATCH, &path, &json!({"metadata": {"finalizers": ["example.com/wait"]}})).await;
    let held = api.ask(Method::DELETE, &path, &[], "").await.json();
    assert_eq!(held["kind"], "WorkstationPool");
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let freed = api.send(Method::PATCH, &path, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(freed.code, StatusCode::OK);
    assert_eq!(api.get(&path).await.code, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_delete_may_say_which_one_it_means() {
    let api = Api::start();
    let made = api.create_pool("agents").await;
    let path = format!("{POOLS}/agents");
    let uid = "00000000-0000-0000-0000-000000000000";
    let answer = api.send(Method::DELETE, &path, &json!({"preconditions": {"uid": uid}})).await;
    answer.refuses(
        409,
        "Conflict",
        &format!(
            "Operation cannot be fulfilled on WorkstationPool.workstations.ringleader.dev \"agents\": the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            made["metadata"]["uid"].as_str().unwrap()
        ),
        &json!({"name": "agents", "group": "workstations.ringleader.dev", "kind": "WorkstationPool"}),
    );
    let stale = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(api.send(Method::DELETE, &path, &stale).await.code, StatusCode::CONFLICT);
    api.send(Method::DELETE, &path, &json!({"propagationPolicy": "Nope"})).await.refuses(
        422,
        "Invalid",
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Nope\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        &json!({
            "group": "meta.k8s.io", "kind": "DeleteOptions",
            "causes": [{
                "reason": "FieldValueNotSupported", "field": "propagationPolicy",
                "message": "Unsupported value: \"Nope\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            }],
        }),
    );
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"]}});
    assert_eq!(api.send(Method::DELETE, &path, &right).await.code, StatusCode::OK);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector_and_answered_as_the_list_of_what_was_there() {
    let api = Api::start();
    for name in ["a", "b"] {
        api.create_pool(name).await;
    }
    let answer = api.ask(Method::DELETE, &format!("{POOLS}?fieldSelector=metadata.name%3Da"), &[], "").await;
    assert_eq!(answer.json()["items"][0]["metadata"]["name"], "a");
    let left = api.get(POOLS).await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    let everywhere = "/apis/workstations.ringleader.dev/v1/workstationpools";
    let answer = api.ask(Method::DELETE, everywhere, &[], "").await;
    assert_eq!((answer.code.as_u16(), answer.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn methods_that_an_address_does_not_know_are_405_and_say_which_it_does() {
    let api = Api::start();
    for (method, path, allowed) in [
        (Method::POST, format!("{POOLS}/agents"), "GET, HEAD, PUT, PATCH, DELETE"),
        (Method::PUT, POOLS.to_owned(), "GET, HEAD, POST, DELETE"),
        (Method::POST, "/apis".to_owned(), "GET, HEAD"),
        (Method::POST, "/healthz".to_owned(), "GET, HEAD"),
    ] {
        let answer = api.send(method, &path, &json!({})).await;
        assert_eq!(answer.header("allow"), allowed, "{path}");
        answer.refuses(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            &Value::Null,
        );
    }
}

#[tokio::test]
async fn every_refusal_of_an_owner_has_its_code() {
    let api = Api::start();
    for (refusal, code, reason, words) in [
        (
            Refusal::Forbidden("it is leased".into()),
            403,
            "Forbidden",
            "\"agents\" is forbidden: it is leased",
        ),
        (
            Refusal::TooMany { message: "the pool is full".into(), retry_after_secs: 7 },
            429,
            "TooManyRequests",
            "the pool is full",
        ),
        (Refusal::Unavailable("the disk is full".into()), 503, "ServiceUnavailable", "the disk is full"),
        (Refusal::BadRequest("no".into()), 400, "BadRequest", "no"),
        (Refusal::Timeout, 504, "Timeout", "outcome unknown: read it back"),
    ] {
        *api.house.refusal.lock().unwrap() = Some(refusal);
        let answer = api.send(Method::PATCH, &format!("{POOLS}/agents"), &json!({})).await;
        let status = answer.json();
        assert_eq!((answer.code.as_u16(), &status["reason"]), (code, &json!(reason)));
        assert!(status["message"].as_str().unwrap().contains(words), "{status}");
        assert_eq!(answer.header("retry-after"), if code == 429 { "7" } else { "" });
    }
}

#[tokio::test]
async fn a_refusal_is_json_whatever_was_asked_for() {
    let api = Api::start();
    let answer = api.ask(Method::GET, &format!("{POOLS}/x"), &[(ACCEPT, "application/yaml")], "").await;
    assert_eq!((answer.code.as_u16(), answer.header("content-type")), (404, "application/json"));
}
