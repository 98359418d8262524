//! The hash of a template: members are compared by it alone (rule T1). Text that changes nothing
//! does not change it: key order, formatting, defaults written out, `4` or `4.0`.

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use crate::object::{Identity, Image, Template};

/// The hash of `spec.template`: the first 64 bits of SHA-256, in hex.
///
/// # Panics
/// Never: a template is plain data.
pub fn hash(template: &Template) -> String {
    let mut template = template.clone();
    let spec = &mut template.spec;
    spec.identity =
        spec.identity.take().map(without_defaults).filter(|identity| *identity != Identity::default());
    spec.image = spec.image.take().filter(|image| *image != Image::default());
    let value = serde_json::to_value(&template).expect("a template is plain data");
    let text = canonical(value).to_string();
    let digest = Sha256::digest(text.as_bytes());
    let (first, _) = digest.split_first_chunk().expect("SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

fn without_defaults(mut identity: Identity) -> Identity {
    identity.user = identity.user.filter(|user| user != "dev");
    identity.shell = identity.shell.filter(|shell| shell != "/bin/bash");
    identity.sudo = identity.sudo.filter(|sudo| !sudo);
    identity
}

/// Keys in order, no nulls, whole numbers without a fraction.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.into_iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(
                entries.into_iter().map(|(key, value)| (key, canonical(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        Value::Number(number) => Value::Number(whole(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

fn whole(number: Number) -> Number {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
    float.and_then(|float| format!("{float:.0}").parse::<i64>().ok()).map_or(number, Number::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(spec: &Value) -> String {
        hash(&serde_json::from_value(json!({ "spec": spec })).expect("a template"))
    }

    // rule T1
    // case 11 (kobe#149, rhacm-docs#8217)
    #[test]
    fn text_that_changes_nothing_does_not_change_the_hash() {
        let plain = of(&json!({"providerConfig": {"memory": 4, "cpus": 2}}));
        assert_eq!(plain, of(&json!({"providerConfig": {"cpus": 2.0, "memory": 4.0}, "stopped": false})));
        assert_eq!(of(&json!({})), of(&json!({"identity": {"user": "dev", "sudo": true}, "image": {}})));
    }

    // rule T1
    #[test]
    fn text_that_changes_something_changes_the_hash() {
        assert_ne!(of(&json!({})), of(&json!({"identity": {"sudo": false}})));
        assert_ne!(
            of(&json!({"providerConfig": {"memory": 4}})),
            of(&json!({"providerConfig": {"memory": 4.5}}))
        );
        assert_ne!(of(&json!({"environment": {"A": "1"}})), of(&json!({"environment": {"A": "2"}})));
    }

    // rule T1
    // case 11 (kobe#149, rhacm-docs#8217)
    #[test]
    fn the_hash_of_an_empty_template_is_pinned() {
        assert_eq!(of(&json!({})), "53aa778a9b137a0c");
    }
}
