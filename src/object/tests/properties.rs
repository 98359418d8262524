//! Whatever is sent, admission answers; and what it has admitted once, it admits unchanged.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::{kind, tick};
use crate::object::{
    FieldSelector, FieldValidation, LabelSelector, Mutation, Part, admit_create, admit_update, public_key,
    registry,
};

/// Words that mean something somewhere, so that random objects get past the first door.
const WORDS: [&str; 40] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "resourceVersion",
    "uid",
    "spec",
    "status",
    "template",
    "size",
    "max",
    "warm",
    "running",
    "stopped",
    "stopAfter",
    "recycle",
    "lease",
    "maxTerm",
    "owner",
    "workstationPoolRef",
    "state",
    "expiresAt",
    "authorizedKeys",
    "providerConfig",
    "memory",
    "image",
    "requirements",
    "configs",
    "identity",
    "environment",
    "holder",
    "conditions",
    "local",
    "publicKey",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![3 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,12}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        word(),
        proptest::sample::select(
            &["1h", "0s", "User", "Needed", "a", "provider:x", "2026-12-01T00:00:00Z", "4Gi"][..]
        )
        .prop_map(str::to_owned),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..20_i64).prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(word(), inner, 0..8)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A good pool with one field somewhere replaced by anything.
fn nearly_a_pool() -> impl Strategy<Value = Value> {
    const PLACES: [&str; 15] = [
        "/metadata",
        "/metadata/labels",
        "/metadata/finalizers",
        "/spec",
        "/spec/template",
        "/spec/template/spec",
        "/spec/template/spec/providerConfig",
        "/spec/template/spec/image",
        "/spec/template/spec/identity",
        "/spec/size/max",
        "/spec/warm",
        "/spec/warm/stopAfter",
        "/spec/recycle",
        "/spec/owner",
        "/spec/paused",
    ];
    (proptest::sample::select(&PLACES[..]), json()).prop_map(|(place, value)| {
        let mut pool = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}, "finalizers": ["me.dev/x"]},
            "spec": {
                "template": {"spec": {"providerConfig": {"memory": 1}, "image": {"os": "linux"}, "identity": {"user": "dev"}}},
                "size": {"max": 6},
                "warm": {"running": 1, "stopAfter": "1h"},
                "recycle": {},
                "owner": {"kind": "User", "name": "alice"},
                "paused": false,
            },
        });
        *pool.pointer_mut(place).expect("the pool has this place") = value;
        pool
    })
}

proptest! {
    #[test]
    fn any_body_of_any_kind_gets_an_answer(body in json()) {
        for kind in registry().kinds() {
            for validation in [FieldValidation::Ignore, FieldValidation::Strict] {
                let _ = admit_create(kind, body.clone(), Some("local"), &tick(), validation);
            }
        }
    }

    #[test]
    fn what_was_admitted_is_admitted_again_without_a_change(body in nearly_a_pool()) {
        let kind = kind("wsp");
        let Ok(admitted) = admit_create(kind, body, Some("local"), &tick(), FieldValidation::Ignore) else { return Ok(()) };
        let again = admit_create(kind, admitted.value.clone(), Some("local"), &tick(), FieldValidation::Strict)
            .expect("an admitted object is a good one");
        prop_assert_eq!(&again.value, &admitted.value);
        let mut body = admitted.value.clone();
        body["metadata"]["resourceVersion"] = json!("1");
        let put = admit_update(kind, &admitted.value, &Mutation::Replace(body), Part::Main, FieldValidation::Strict)
            .expect("an admitted object is a good one");
        prop_assert!(!put.changed, "{:#}\n{:#}", put.value, admitted.value);
    }

    #[test]
    fn no_patch_moves_an_object_or_breaks_it(patch in json(), status in any::<bool>()) {
        let kind = kind("wspl");
        let spec = json!({"workstationPoolRef": {"name": "agents"}});
        let body = json!({"metadata": {"name": "a"}, "spec": spec});
        let old = admit_create(kind, body, Some("local"), &tick(), FieldValidation::Strict).expect("a good lease").value;
        let part = if status { Part::Status } else { Part::Main };
        let mutation = Mutation::MergePatch(json!({"metadata": patch, "spec": patch, "status": patch}));
        for mutation in [Mutation::MergePatch(patch), mutation] {
            let Ok(new) = admit_update(kind, &old, &mutation, part, FieldValidation::Ignore) else { continue };
            for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"] {
                prop_assert_eq!(new.value["metadata"].get(field), old["metadata"].get(field));
            }
            if part == Part::Status {
                prop_assert_eq!(&new.value["spec"], &old["spec"]);
            } else {
                prop_assert_eq!(&new.value["status"], &old["status"]);
            }
        }
    }

    #[test]
    fn any_text_is_a_selector_or_is_told_why_not(text in "[ a-z=!,()./-]{0,16}|.{0,12}") {
        let _ = LabelSelector::parse(&text).map(|selector| selector.matches(&json!({})));
        let _ = FieldSelector::parse(&text).map(|selector| selector.matches(&json!({})));
        let _ = public_key::check(&text);
    }
}
