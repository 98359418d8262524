//! `providerConfig`: local sizing at the top, a named provider's own settings under its name.
//!
//! The local keys have one shape for every provider that runs machines here, so that their
//! mistakes get the same cure everywhere. A named section is its provider's business.

use serde_json::{Map, Value};

use super::check::{invalid, unsupported};
use super::cure::shown;
use super::prune::join;
use super::suggest::nearest;
use super::{FieldError, FieldReason};

/// The local keys, in the order messages name them.
pub const LOCAL_KEYS: [&str; 6] = ["memory", "cpus", "disk", "pids", "network", "nesting"];

/// The most processes Linux can count.
const PIDS_MAX: u64 = 4_194_304;

/// What the local keys ask for. What is absent is the provider's default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LocalConfig {
    pub memory_gib: Option<f64>,
    pub cpus: Option<f64>,
    pub disk_gib: Option<f64>,
    pub pids: Option<u32>,
    pub network: Option<Network>,
    /// Containers inside.
    pub nesting: Option<bool>,
}

/// What a machine can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A network of its own, with a way out.
    Private,
    /// The host's.
    Host,
    /// Loopback alone.
    None,
}

/// Reads the local keys of the `providerConfig` at `path`. Sections (objects under other names) are
/// left alone.
///
/// # Errors
/// Every key that is wrong or unknown.
pub fn read(config: &Map<String, Value>, path: &str) -> Result<LocalConfig, Vec<FieldError>> {
    let mut local = LocalConfig::default();
    let mut errors = Vec::new();
    for (key, value) in config {
        if let Err(error) = set(&mut local, key, value, &join(path, key)) {
            errors.push(error);
        }
    }
    if errors.is_empty() { Ok(local) } else { Err(errors) }
}

fn set(local: &mut LocalConfig, key: &str, value: &Value, path: &str) -> Result<(), FieldError> {
    match key {
        _ if value.is_null() => {}
        "memory" => local.memory_gib = Some(amount(value, path, "GiB", gib)?),
        "cpus" => local.cpus = Some(amount(value, path, "CPUs", cpus)?),
        "disk" => local.disk_gib = Some(amount(value, path, "GiB", gib)?),
        "pids" => local.pids = Some(pids(value, path)?),
        "network" => local.network = Some(network(value, path)?),
        "nesting" => {
            let flag = value.as_bool().ok_or_else(|| wrong_type(value, path, "must be true or false"))?;
            local.nesting = Some(flag);
        }
        _ if value.is_object() => {}
        _ => return Err(unknown(key, path)),
    }
    Ok(())
}

/// A number above zero. `as_written` reads what people write with a unit.
fn amount(
    value: &Value,
    path: &str,
    unit: &str,
    as_written: fn(&str) -> Option<f64>,
) -> Result<f64, FieldError> {
    let Some(amount) = value.as_f64() else {
        let cure = value.as_str().and_then(as_written).filter(|amount| amount.is_finite() && *amount > 0.0);
        let cure = cure.map(|amount| format!(": write {amount}")).unwrap_or_default();
        let message = format!("{} is not a number; the unit is {unit}{cure}", shown(value));
        return Err(FieldError::new(path, FieldReason::TypeInvalid, message));
    };
    if amount > 0.0 {
        Ok(amount)
    } else {
        Err(invalid(path, value, &format!("must be more than 0; the unit is {unit}")))
    }
}

/// `4Gi`, `4 GB`, `512M` in GiB. What people write as GB they mean as GiB.
fn gib(text: &str) -> Option<f64> {
    let (number, unit) = with_unit(text)?;
    let unit = unit.to_ascii_lowercase();
    let factor = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" | "g" => 1.0,
        "k" => 1.0 / (1024.0 * 1024.0),
        "m" => 1.0 / 1024.0,
        "t" => 1024.0,
        _ => return None,
    };
    Some(number * factor)
}

/// `500m`, `2` in CPUs.
fn cpus(text: &str) -> Option<f64> {
    match with_unit(text)? {
        (number, "") => Some(number),
        (number, "m") => Some(number / 1000.0),
        _ => None,
    }
}

fn with_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

fn pids(value: &Value, path: &str) -> Result<u32, FieldError> {
    let Some(count) = value.as_i64() else {
        return Err(wrong_type(value, path, "must be an integer"));
    };
    u64::try_from(count)
        .ok()
        .filter(|count| (1..=PIDS_MAX).contains(count))
        .and_then(|count| u32::try_from(count).ok())
        .ok_or_else(|| invalid(path, value, &format!("must be from 1 to {PIDS_MAX}")))
}

fn network(value: &Value, path: &str) -> Result<Network, FieldError> {
    let Some(word) = value.as_str() else {
        return Err(wrong_type(value, path, "must be private, host or none"));
    };
    match word {
        "private" => Ok(Network::Private),
        "host" => Ok(Network::Host),
        "none" => Ok(Network::None),
        _ => Err(unsupported(path, word, ["private", "host", "none"])),
    }
}

fn wrong_type(value: &Value, path: &str, must_be: &str) -> FieldError {
    FieldError::new(path, FieldReason::TypeInvalid, format!("Invalid value: {}: {must_be}", shown(value)))
}

fn unknown(key: &str, path: &str) -> FieldError {
    let meant =
        nearest(key, LOCAL_KEYS).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    let known = LOCAL_KEYS.join(", ");
    let message =
        format!("unknown field{meant} (known: {known}; a provider's own settings go below its name)");
    FieldError::new(path, FieldReason::NotSupported, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(config: &Value) -> Result<LocalConfig, Vec<String>> {
        let config = config.as_object().expect("the test writes an object");
        read(config, "spec.providerConfig").map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn told(config: &Value) -> String {
        of(config).expect_err("this is wrong").join("\n")
    }

    #[test]
    fn local_keys_are_read_and_a_providers_section_is_left_alone() {
        let read = of(&json!({
            "memory": 6, "cpus": 1.5, "disk": 20, "pids": 512, "network": "none", "nesting": true,
            "gcp": {"machineType": "n2-standard-4", "diskGiB": 100},
        }));
        let wanted = LocalConfig {
            memory_gib: Some(6.0),
            cpus: Some(1.5),
            disk_gib: Some(20.0),
            pids: Some(512),
            network: Some(Network::None),
            nesting: Some(true),
        };
        assert_eq!(read, Ok(wanted));
        assert_eq!(of(&json!({})), Ok(LocalConfig::default()));
    }

    #[test]
    fn an_amount_with_a_unit_is_answered_with_the_number_to_write() {
        let memory = |text: &str| told(&json!({ "memory": text }));
        assert_eq!(
            memory("4Gi"),
            r#"spec.providerConfig.memory: "4Gi" is not a number; the unit is GiB: write 4"#
        );
        assert!(memory("512Mi").ends_with("the unit is GiB: write 0.5"));
        assert!(memory("8 GB").ends_with("the unit is GiB: write 8"));
        assert!(memory("big").ends_with("the unit is GiB"));
        assert_eq!(
            told(&json!({"cpus": "500m"})),
            r#"spec.providerConfig.cpus: "500m" is not a number; the unit is CPUs: write 0.5"#
        );
    }

    #[test]
    fn every_wrong_key_is_named_at_once_with_the_known_ones() {
        assert_eq!(
            told(&json!({"memroy": 4, "pids": 0, "network": "bridge", "nesting": "yes", "cpus": -1})),
            [
                r#"spec.providerConfig.memroy: unknown field; did you mean "memory"? (known: memory, cpus, disk, pids, network, nesting; a provider's own settings go below its name)"#,
                "spec.providerConfig.pids: Invalid value: 0: must be from 1 to 4194304",
                r#"spec.providerConfig.network: Unsupported value: "bridge": supported values: "private", "host", "none""#,
                r#"spec.providerConfig.nesting: Invalid value: "yes": must be true or false"#,
                "spec.providerConfig.cpus: Invalid value: -1: must be more than 0; the unit is CPUs",
            ]
            .join("\n")
        );
    }
}
