//! Kubernetes' rules for creates, PUTs and merge patches.

use serde_json::{Value, json};

use super::{complaints, created, kind, tick};
use crate::object::{
    Admitted, FieldValidation, Mutation, Part, RELEASE_FINALIZER, Rejected, admit_create, admit_update,
};

fn pool() -> Value {
    created(
        "wsp",
        &json!({
            "metadata": {"name": "agents", "labels": {"team": "a"}},
            "spec": {"template": {"spec": {}}, "size": {"max": 6}, "maxAge": "7d"},
        }),
    )
}

fn lease() -> Value {
    let mut lease = created(
        "wspl",
        &json!({
            "metadata": {"name": "my-build"},
            "spec": {"workstationPoolRef": {"name": "agents"}, "expiresAt": "2026-12-01T12:00:00Z"},
        }),
    );
    // What the pool writes.
    lease["metadata"]["labels"] = json!({"pools.ringleader.dev/pool": "agents"});
    lease["metadata"]["finalizers"] = json!([RELEASE_FINALIZER]);
    lease["status"]["holder"] = json!({"kind": "User", "name": "local"});
    lease["status"]["poolUID"] = json!("01KB0000000000000000000000");
    lease
}

fn update(word: &str, old: &Value, mutation: &Mutation, part: Part) -> Result<Admitted, Rejected> {
    admit_update(kind(word), old, mutation, part, FieldValidation::Strict)
}

fn patch(old: &Value, patch: Value) -> Result<Admitted, Rejected> {
    let word = old["kind"].as_str().expect("an object has a kind");
    update(word, old, &Mutation::MergePatch(patch), Part::Main)
}

/// A PUT of `old` as `change` leaves it.
fn put(old: &Value, change: impl FnOnce(&mut Value)) -> Result<Admitted, Rejected> {
    let mut body = old.clone();
    body["metadata"]["resourceVersion"] = json!("41");
    change(&mut body);
    let word = old["kind"].as_str().expect("an object has a kind");
    update(word, old, &Mutation::Replace(body), Part::Main)
}

fn told(result: Result<Admitted, Rejected>) -> Vec<String> {
    complaints(result.expect_err("this write is refused"))
}

fn remove(object: &mut Value, parent: &str, field: &str) {
    let fields = object.pointer_mut(parent).and_then(Value::as_object_mut).expect("the test names an object");
    fields.shift_remove(field);
}

#[test]
fn a_new_object_gets_its_uid_time_generation_and_every_default() {
    let pool = pool();
    assert_eq!(
        pool["metadata"],
        json!({
            "name": "agents",
            "namespace": "local",
            "uid": tick().ulid(0).to_string(),
            "generation": 1,
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {"team": "a"},
        })
    );
    assert_eq!(
        pool["spec"],
        json!({
            "template": {"spec": {}},
            "size": {"max": 6},
            "warm": {"running": 0, "stopped": 0, "stopAfter": "15m", "deleteAfter": "1h"},
            "maxAge": "7d",
            "lease": {"maxTerm": "24h", "maxPending": 100, "failedRetention": "24h", "configChanges": "Apply"},
            "paused": false,
        })
    );
    assert_eq!(
        (pool["apiVersion"].as_str(), pool["kind"].as_str()),
        (Some("workstations.ringleader.dev/v1"), Some("WorkstationPool"))
    );
}

#[test]
fn an_empty_recycle_block_is_one_of_defaults_and_null_is_none() {
    let with = |recycle: Value| {
        let spec = json!({"template": {"spec": {}}, "size": {"max": 1}, "recycle": recycle});
        created("wsp", &json!({"metadata": {"name": "a"}, "spec": spec}))["spec"]["recycle"].clone()
    };
    assert_eq!(with(json!({})), json!({"maxReuses": 20, "timeout": "10m", "reboot": false, "reset": "none"}));
    assert_eq!(with(Value::Null), Value::Null);
}

#[test]
fn what_only_the_server_writes_is_passed_over_on_a_create() {
    let lease = created(
        "wspl",
        &json!({
            "metadata": {
                "name": "a", "uid": "zz", "generation": 9, "creationTimestamp": null, "deletionTimestamp": "x",
                "selfLink": "/", "managedFields": [{"manager": "kubectl"}], "finalizers": [RELEASE_FINALIZER, "me.dev/x"],
            },
            "spec": {"workstationPoolRef": {"name": "agents"}},
            "status": {"holder": {"kind": "User", "name": "root"}, "phase": "Ready"},
        }),
    );
    assert_eq!(lease["metadata"]["generation"], 1);
    assert_eq!(lease["metadata"]["uid"], tick().ulid(0).to_string());
    assert_eq!(lease["metadata"]["finalizers"], json!(["me.dev/x"]));
    assert_eq!(lease["metadata"].get("deletionTimestamp"), None);
    assert_eq!(lease["status"].get("holder"), None);
    assert_eq!(lease["status"]["phase"], "Pending");
}

#[test]
fn a_generated_name_has_five_random_letters_and_fits() {
    let named = |prefix: &str| {
        created("wsp", &json!({"metadata": {"generateName": prefix}, "spec": {"template": {"spec": {}}, "size": {"max": 1}}}))
            ["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    let name = named("ci-");
    assert!(name.starts_with("ci-") && name.len() == 8, "{name}");
    assert!(name[3..].chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)), "{name}");
    assert_eq!(named(&"a".repeat(60)).len(), 54);
}

#[test]
fn a_body_for_somewhere_else_is_a_bad_request() {
    let answer = |body: Value| {
        let answer = admit_create(kind("ws"), body, Some("local"), &tick(), FieldValidation::Strict);
        complaints(answer.expect_err("this is for somewhere else"))
    };
    assert_eq!(
        answer(json!({"apiVersion": "other.dev/v1", "metadata": {"name": "x"}, "spec": {}})),
        [
            "bad request: the API version in the data (other.dev/v1) does not match the expected API version (workstations.ringleader.dev/v1)"
        ]
    );
    assert_eq!(
        answer(json!({"kind": "Other", "metadata": {"name": "x"}, "spec": {}})),
        [r#"kind: Invalid value: "Other": must be Workstation"#]
    );
    assert_eq!(
        answer(json!({"metadata": {"name": "x", "namespace": "other"}, "spec": {}})),
        [
            "bad request: the namespace of the provided object does not match the namespace sent on the request"
        ]
    );
    assert_eq!(
        answer(json!({"metadata": {"name": "x", "resourceVersion": "4"}, "spec": {}})),
        ["bad request: resourceVersion should not be set on objects to be created"]
    );
    assert_eq!(answer(json!([])), ["bad request: the body must be an object"]);
}

#[test]
fn unknown_fields_are_dropped_with_a_warning_or_in_silence_where_the_writer_says_so() {
    let body = json!({"metadata": {"name": "a"}, "spec": {"bogus": 1, "image": {"zzz": 1}}});
    let with = |validation| {
        admit_create(kind("ws"), body.clone(), Some("local"), &tick(), validation)
            .expect("unknown fields are dropped")
    };
    let warned = with(FieldValidation::Warn);
    assert_eq!(warned.warnings, [r#"unknown field "spec.bogus""#, r#"unknown field "spec.image.zzz""#]);
    assert_eq!(warned.value["spec"], json!({"image": {}}));
    let silent = with(FieldValidation::Ignore);
    assert_eq!((silent.warnings.len(), &silent.value), (0, &warned.value));
}

#[test]
fn generation_rises_with_the_spec_and_with_nothing_else() {
    let pool = pool();
    let generation =
        |patched: Value| patch(&pool, patched).expect("a good patch").value["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"spec": {"size": {"max": 7}}})), 2);
    assert_eq!(generation(json!({"metadata": {"labels": {"team": "b"}}})), 1);
    assert_eq!(generation(json!({"spec": {"warm": {"running": 0}}})), 1);
    assert_eq!(generation(json!({"status": {"phase": "Ready"}})), 1);
    assert_eq!(generation(json!({"metadata": {"generation": 9}})), 1);
}

#[test]
fn a_write_that_changes_nothing_is_known_as_such() {
    let pool = pool();
    assert!(!patch(&pool, json!({})).expect("an empty patch").changed);
    assert!(!patch(&pool, json!({"spec": {"size": {"max": 6}}})).expect("the same").changed);
    assert!(!patch(&pool, json!({"status": {"phase": "Ready"}})).expect("a status elsewhere").changed);
    assert!(!put(&pool, |_| {}).expect("the same").changed);
    assert!(!put(&pool, |body| remove(body, "/spec", "warm")).expect("a default left out").changed);
    assert!(put(&pool, |body| remove(body, "/spec", "maxAge")).expect("a field left out").changed);
}

#[test]
fn a_merge_patch_keeps_what_it_leaves_out_and_null_removes() {
    let pool = pool();
    let patched = patch(
        &pool,
        json!({"metadata": {"labels": {"team": null, "x": "y"}}, "spec": {"maxAge": null, "paused": true}}),
    );
    let value = patched.expect("a good patch").value;
    assert_eq!(value["metadata"]["labels"], json!({"x": "y"}));
    assert_eq!(value["spec"].get("maxAge"), None);
    assert_eq!(value["spec"]["paused"], true);
    assert_eq!(value["spec"]["size"], json!({"max": 6}));
    assert_eq!(told(patch(&pool, json!({"spec": {"size": null}}))), ["spec.size: Required value"]);
    assert_eq!(told(patch(&pool, json!([1]))), ["bad request: a merge patch must be an object"]);
}

// rule L3
#[test]
fn a_put_without_expires_at_reaches_the_pool_without_one_and_a_patch_keeps_it() {
    let lease = lease();
    let kept = patch(&lease, json!({"spec": {"authorizedKeys": []}})).expect("a good patch").value;
    assert_eq!(kept["spec"]["expiresAt"], "2026-12-01T12:00:00Z");
    let put = put(&lease, |body| remove(body, "/spec", "expiresAt")).expect("a good PUT").value;
    assert_eq!(put["spec"].get("expiresAt"), None);
    let removed = patch(&lease, json!({"spec": {"expiresAt": null}})).expect("a good patch").value;
    assert_eq!(removed["spec"].get("expiresAt"), None);
}

// rule L1
#[test]
fn the_holder_and_the_pool_of_a_lease_never_change() {
    let lease = lease();
    let status = |patch: Value| update("wspl", &lease, &Mutation::MergePatch(patch), Part::Status);
    assert_eq!(
        told(status(json!({"status": {"holder": {"name": "eve"}}}))),
        [r#"status.holder: Invalid value: {"kind":"User","name":"eve"}: field is immutable"#]
    );
    assert_eq!(
        told(status(json!({"status": {"poolUID": null}}))),
        ["status.poolUID: Invalid value: null: field is immutable"]
    );
    assert_eq!(
        told(status(json!({"status": {"poolUID": "x"}})))[0],
        r#"status.poolUID: Invalid value: "x": must be a ULID"#
    );
    // Through the object itself status is not written at all.
    let main = patch(&lease, json!({"status": {"holder": {"name": "eve"}}})).expect("status is passed over");
    assert!(!main.changed);
}

#[test]
fn a_status_write_takes_the_status_and_nothing_else() {
    let pool = pool();
    let body = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"size": {"max": 9}}, "status": {"message": "waits"}});
    let written =
        update("wsp", &pool, &Mutation::MergePatch(body), Part::Status).expect("a good status").value;
    assert_eq!(written["status"]["message"], "waits");
    assert_eq!((&written["metadata"], &written["spec"]), (&pool["metadata"], &pool["spec"]));
}

#[test]
fn a_put_must_name_the_version_it_saw_and_a_patch_may() {
    let pool = pool();
    assert_eq!(put(&pool, |_| {}).expect("a good PUT").expected_version, Some(41));
    assert_eq!(
        told(put(&pool, |body| remove(body, "/metadata", "resourceVersion"))),
        ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"]
    );
    let versioned = |version: Value| patch(&pool, json!({"metadata": {"resourceVersion": version}}));
    assert_eq!(versioned(json!("7")).expect("a good patch").expected_version, Some(7));
    assert_eq!(versioned(Value::Null).expect("a good patch").expected_version, None);
    for wrong in [json!("new"), json!(7), json!("-1")] {
        let answer = told(versioned(wrong));
        assert!(answer[0].ends_with("must be a decimal number, as the server wrote it"), "{answer:?}");
    }
    let mut stored = pool.clone();
    stored["metadata"]["resourceVersion"] = json!("40");
    let same = admit_update(
        kind("wsp"),
        &stored,
        &Mutation::MergePatch(json!({})),
        Part::Main,
        FieldValidation::Strict,
    );
    let same = same.expect("an empty patch");
    assert_eq!((same.value["metadata"].get("resourceVersion"), same.changed), (None, false));
}

#[test]
fn a_uid_in_a_put_is_a_precondition_and_a_patch_may_not_change_it() {
    let pool = pool();
    let uid = tick().ulid(0);
    assert_eq!(
        told(put(&pool, |body| body["metadata"]["uid"] = json!("zz"))),
        [format!("conflict: Precondition failed: UID in precondition: zz, UID in object meta: {uid}")]
    );
    assert_eq!(
        told(patch(&pool, json!({"metadata": {"uid": "zz"}}))),
        [r#"metadata.uid: Invalid value: "zz": field is immutable"#]
    );
}

#[test]
fn names_and_namespaces_cannot_be_moved_and_times_are_passed_over() {
    let pool = pool();
    assert_eq!(
        told(patch(&pool, json!({"metadata": {"name": "zz"}}))),
        ["bad request: the name of the object (zz) does not match the name on the URL (agents)"]
    );
    assert_eq!(
        told(put(&pool, |body| body["metadata"]["namespace"] = json!("other"))),
        [
            "bad request: the namespace of the provided object does not match the namespace sent on the request"
        ]
    );
    let times = json!({"creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z", "name": null});
    assert!(!patch(&pool, json!({"metadata": times})).expect("times are passed over").changed);
}

#[test]
fn labels_and_finalizers_of_the_server_outlive_a_put_that_leaves_them_out() {
    let lease = lease();
    let bare = put(&lease, |body| {
        remove(body, "/metadata", "labels");
        remove(body, "/metadata", "finalizers");
    });
    assert!(!bare.expect("a good PUT").changed);
    assert!(
        !patch(&lease, json!({"metadata": {"labels": null, "finalizers": null}}))
            .expect("a good patch")
            .changed
    );
    let foreign =
        patch(&lease, json!({"metadata": {"finalizers": ["me.dev/x"]}})).expect("a good patch").value;
    assert_eq!(foreign["metadata"]["finalizers"], json!([RELEASE_FINALIZER, "me.dev/x"]));
    assert_eq!(
        told(patch(&lease, json!({"metadata": {"labels": {"pools.ringleader.dev/pool": "b"}}}))),
        [
            "metadata.labels: Forbidden: pools.ringleader.dev/pool: keys under pools.ringleader.dev/ are written by the server alone"
        ]
    );
}

#[test]
fn an_object_being_deleted_gets_no_new_finalizers_and_loses_old_ones() {
    let mut lease = lease();
    lease["metadata"]["finalizers"] = json!([RELEASE_FINALIZER, "me.dev/x"]);
    lease["metadata"]["deletionTimestamp"] = json!("2026-11-30T13:00:00Z");
    assert_eq!(
        told(patch(&lease, json!({"metadata": {"finalizers": ["me.dev/x", "me.dev/y", "me.dev/z"]}}))),
        [
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"me.dev/y", "me.dev/z"}"#
        ]
    );
    let gone = patch(&lease, json!({"metadata": {"finalizers": null, "deletionTimestamp": null}}))
        .expect("a good patch")
        .value;
    assert_eq!(gone["metadata"]["finalizers"], json!([RELEASE_FINALIZER]));
    assert_eq!(gone["metadata"]["deletionTimestamp"], "2026-11-30T13:00:00Z");
}

#[test]
fn a_finalizer_without_a_domain_is_warned_about_once() {
    let pool = pool();
    let patched = patch(&pool, json!({"metadata": {"finalizers": ["novendor"]}})).expect("allowed");
    assert_eq!(
        patched.warnings,
        [
            r#"metadata.finalizers: "novendor": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"#
        ]
    );
    assert!(patch(&patched.value, json!({"spec": {"paused": true}})).expect("allowed").warnings.is_empty());
}

#[test]
fn a_text_a_user_wrote_is_the_text_a_user_reads() {
    let spec =
        json!({"template": {"spec": {}}, "size": {"max": 1}, "maxAge": "60m", "lease": {"maxTerm": "1d"}});
    let pool = created("wsp", &json!({"metadata": {"name": "a"}, "spec": spec}));
    assert_eq!((&pool["spec"]["maxAge"], &pool["spec"]["lease"]["maxTerm"]), (&json!("60m"), &json!("1d")));
}
