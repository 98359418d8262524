//! What every generated schema promises: a structural one, and one that says what its type says.

use serde_json::{Value, json};

use super::kind;
use crate::object::registry;

/// Every schema below this one, itself included.
fn all<'a>(schema: &'a Value, path: &str, seen: &mut Vec<(String, &'a Value)>) {
    seen.push((path.to_owned(), schema));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        all(field, &format!("{path}.{name}"), seen);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(below) {
            all(below, &format!("{path}[]"), seen);
        }
    }
}

#[test]
fn every_schema_is_structural() {
    for kind in registry().kinds() {
        let mut seen = Vec::new();
        all((kind.schema)(), kind.kind, &mut seen);
        for (path, schema) in seen {
            let keywords = schema.as_object().expect("a schema is an object");
            for refused in
                ["$ref", "$schema", "$defs", "title", "oneOf", "anyOf", "allOf", "nullable", "const"]
            {
                assert!(!keywords.contains_key(refused), "{path} has {refused}");
            }
            let free = keywords.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
            assert!(schema["type"].is_string() || free, "{path} has no type: {schema}");
            if schema["type"] == "array" {
                assert!(schema["x-kubernetes-list-type"].is_string(), "{path} does not say how it merges");
            }
            if schema["type"] == "object" && !free {
                assert!(
                    schema["properties"].is_object() || schema["additionalProperties"].is_object(),
                    "{path}"
                );
            }
        }
    }
}

#[test]
fn a_schema_keeps_descriptions_defaults_bounds_and_choices() {
    let pool = (kind("wsp").schema)();
    let spec = &pool["properties"]["spec"];
    assert_eq!(spec["required"], json!(["template", "size"]));
    assert_eq!(
        spec["properties"]["size"]["properties"]["max"],
        json!({
            "type": "integer",
            "format": "int64",
            "minimum": 1,
            "maximum": 10000,
            "description": "1 to 10 000 members, those being deleted included."
        })
    );
    let lease = &spec["properties"]["lease"]["properties"];
    assert_eq!(lease["maxTerm"]["default"], "24h");
    assert_eq!(lease["configChanges"]["enum"], json!(["Apply", "Hold"]));
    let recycle = &spec["properties"]["recycle"];
    assert_eq!(recycle["description"], "Absent: every released member is deleted.");
    assert_eq!(recycle["properties"]["reset"]["enum"], json!(["none", "disk"]));
    let phase = &pool["properties"]["status"]["properties"]["phase"];
    assert_eq!(phase["enum"], json!(["Ready", "Terminating", "Pending", "Degraded"]));
    assert!(
        phase["description"]
            .as_str()
            .is_some_and(|text| text.contains("Degraded: TemplateHealthy is False."))
    );
}

#[test]
fn kinds_are_found_by_every_word_people_use() {
    for (word, kind) in [
        ("wsp", "WorkstationPool"),
        ("WorkstationPools", "WorkstationPool"),
        ("workstationpool.workstations.ringleader.dev", "WorkstationPool"),
        ("wspl", "WorkstationPoolLease"),
        ("WS", "Workstation"),
        ("ns", "Namespace"),
        ("event", "Event"),
    ] {
        assert_eq!(super::kind(word).kind, kind, "{word}");
    }
    assert!(registry().by_word("pods").is_none());
    let core = registry()
        .kinds()
        .iter()
        .filter(|kind| kind.group == "core.ringleader.dev")
        .copied()
        .collect::<Vec<_>>();
    assert!(core.iter().all(|kind| kind.short_names.is_empty()), "kubectl would be confused with core/v1");
}

// rule S1
#[test]
fn the_columns_of_a_pool_a_lease_and_a_member_are_computed_from_the_object() {
    let row = |word: &str, object: &Value| -> Vec<Value> {
        let shown = kind(word).columns.iter().filter(|column| column.priority == 0);
        shown.map(|column| column.value(object)).collect()
    };
    let age = "2026-11-30T12:00:00Z";
    let pool = json!({
        "metadata": {"creationTimestamp": age},
        "status": {
            "phase": "Ready",
            "capacity": {"max": 6, "members": 3, "room": 3},
            "members": {"idleRunning": 1, "idleStopped": 1, "leased": 1},
            "leases": {"pending": 0},
        },
    });
    assert_eq!(row("wsp", &pool), [json!("Ready"), json!("3/6"), json!(2), json!(1), json!(0), json!(age)]);
    let lease = json!({
        "metadata": {"creationTimestamp": age},
        "spec": {"workstationPoolRef": {"name": "agents"}, "expiresAt": "2026-12-01T12:00:00Z"},
        "status": {"phase": "Ready", "holder": {"kind": "ServiceAccount", "namespace": "ci", "name": "bot"}},
    });
    assert_eq!(
        row("wspl", &lease),
        [
            json!("serviceaccount:ci:bot"),
            json!("agents"),
            json!("Ready"),
            Value::Null,
            json!("2026-12-01T12:00:00Z"),
            json!(age)
        ]
    );
    let member = json!({
        "metadata": {
            "labels": {"pools.ringleader.dev/pool": "agents"},
            "annotations": {"pools.ringleader.dev/state": "Leased", "pools.ringleader.dev/lease": "my-build"},
        },
        "status": {"phase": "Ready"},
    });
    assert_eq!(
        row("ws", &member),
        [json!("Ready"), json!("agents"), json!("Leased"), json!("my-build"), Value::Null]
    );
    for kind in registry().kinds() {
        assert_eq!(kind.columns.last().map(|column| column.name), Some("Age"), "{}", kind.kind);
    }
}
