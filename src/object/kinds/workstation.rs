//! Workstations, and the rules of a workstation's spec wherever one stands.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, column, complete, wide};
use crate::object::check::{invalid, unsupported};
use crate::object::{
    Cell, FieldError, Kind, NameRule, VERSION, WORKSTATIONS_GROUP, Workstation, provider_config, schema,
};

/// Workstation, as the API serves it.
pub static KIND: Kind = Kind {
    group: WORKSTATIONS_GROUP,
    version: VERSION,
    kind: "Workstation",
    plural: "workstations",
    singular: "workstation",
    short_names: &["ws"],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: true,
    has_status: true,
    name_rule: NameRule::Label { max_len: 63 },
    columns: &[
        column("Phase", "string", "What the machine is doing.", Cell::At("/status/phase")),
        column("Pool", "string", "The pool it is a member of.", POOL),
        column("State", "string", "What it is to its pool.", STATE),
        column("Lease", "string", "The lease it is bound to.", LEASE),
        wide("Cordoned", "boolean", "Whether it takes no new lease.", Cell::At("/spec/cordoned")),
        wide("Reuses", "string", "How often it was recycled.", REUSES),
        wide("Template Hash", "string", "The template it was built from.", TEMPLATE_HASH),
        wide("Address", "string", "Where its machine is.", Cell::At("/status/machine/address")),
        wide("Message", "string", "Why it is so.", Cell::At("/status/message")),
        AGE,
    ],
    schema: || &SCHEMA,
    check,
    complete: complete::<Workstation>,
};

const POOL: Cell = Cell::At("/metadata/labels/pools.ringleader.dev~1pool");
const STATE: Cell = Cell::At("/metadata/annotations/pools.ringleader.dev~1state");
const LEASE: Cell = Cell::At("/metadata/annotations/pools.ringleader.dev~1lease");
const REUSES: Cell = Cell::At("/metadata/annotations/pools.ringleader.dev~1reuses");
const TEMPLATE_HASH: Cell = Cell::At("/metadata/annotations/pools.ringleader.dev~1template-hash");

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Workstation>);

fn check(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    spec(&new["spec"], "spec")
}

/// What is wrong with the workstation spec at `path`, beside what its schema refuses. The provider
/// that will run it adds what it cannot do.
pub fn spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = requirements(spec, path);
    if let Some(config) = spec.get("providerConfig").and_then(Value::as_object) {
        let path = format!("{path}.providerConfig");
        errors.extend(provider_config::read(config, &path).err().into_iter().flatten());
    }
    errors.extend(configs(spec, path));
    errors.extend(identity(spec, path));
    errors.extend(environment(spec, path));
    errors
}

fn requirements(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut pinned = None;
    for (index, token) in items(spec, "requirements").enumerate() {
        let path = format!("{path}.requirements[{index}]");
        let Some(token) = token.as_str() else { continue };
        match token.strip_prefix("provider:") {
            None => errors.push(unsupported(path, token, ["provider:NAME"])),
            Some(provider) if !is_word(provider) => {
                errors.push(invalid(path, &token.into(), "write provider:NAME, as `rl status` names it"));
            }
            Some(provider) if pinned.is_some_and(|pinned| pinned != provider) => {
                errors.push(invalid(path, &token.into(), "only one provider can be pinned"));
            }
            Some(provider) => pinned = Some(provider),
        }
    }
    errors
}

fn configs(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, config) in items(spec, "configs").enumerate() {
        let Some(name) = config["name"].as_str().filter(|name| !name.is_empty()) else { continue };
        let path = format!("{path}.configs[{index}].name");
        errors.extend(NameRule::Subdomain.broken(name).iter().map(|why| invalid(&path, &name.into(), why)));
    }
    errors
}

/// These names go into passwd and group files, so that nothing but plain names may pass.
fn identity(spec: &Value, path: &str) -> Vec<FieldError> {
    const AN_ACCOUNT: &str = "must be a name of at most 32 lower case letters, digits, '-' or '_', and begin with a \
                              letter or '_'";
    let identity = &spec["identity"];
    let path = format!("{path}.identity");
    let mut errors = Vec::new();
    let mut wrong =
        |field: String, value: &Value, why: &str| errors.push(invalid(format!("{path}.{field}"), value, why));
    match &identity["user"] {
        root @ Value::String(user) if user == "root" => {
            wrong("user".into(), root, "must not be root: leave sudo on to become root");
        }
        user @ Value::String(name) if !is_account(name) => wrong("user".into(), user, AN_ACCOUNT),
        _ => {}
    }
    if let shell @ Value::String(file) = &identity["shell"]
        && !(file.starts_with('/') && file.chars().all(|c| c.is_ascii_graphic() && c != ':'))
    {
        wrong("shell".into(), shell, "must be the full path of a program, such as /bin/bash");
    }
    for (index, group) in items(identity, "groups").enumerate() {
        if group.as_str().is_some_and(|name| !is_account(name)) {
            wrong(format!("groups[{index}]"), group, AN_ACCOUNT);
        }
    }
    errors
}

fn environment(spec: &Value, path: &str) -> Vec<FieldError> {
    let path = format!("{path}.environment");
    let mut errors = Vec::new();
    for (name, value) in spec["environment"].as_object().into_iter().flatten() {
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let why = "must be a name of letters, digits or '_', and not begin with a digit";
            errors.push(invalid(&path, &name.as_str().into(), why));
        }
        if value.as_str().is_some_and(|text| text.contains('\0')) {
            errors.push(invalid(format!("{path}.{name}"), value, "must not contain a NUL character"));
        }
    }
    errors
}

fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn is_account(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}

fn is_word(text: &str) -> bool {
    NameRule::Label { max_len: 63 }.broken(text).is_empty()
}
