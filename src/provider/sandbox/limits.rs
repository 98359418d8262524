//! `providerConfig`, read and checked: sizes with their units, ready for cgroups.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::launcher::Network;
use crate::object::{FieldError, FieldReason};

/// What a template may say about a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub limits: Limits,
    pub network: Network,
}

/// What a machine may use of the host. None is no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    /// Thousandths of one processor.
    pub cpu_millis: Option<u64>,
    pub processes: Option<u64>,
    pub disk_bytes: Option<u64>,
}

const KNOWN: &str = "memory, cpus, disk, pids, network, nesting";
const GIB: f64 = 1_073_741_824.0;

/// Reads `config`, reporting every wrong key with its path below `base`.
///
/// # Errors
/// One entry for each key that is unknown or has a wrong value.
pub fn read(config: &Map<String, Value>, base: &str) -> Result<Settings, Vec<FieldError>> {
    let mut settings = Settings::default();
    let mut errors = Vec::new();
    for (key, value) in config {
        if let Err((reason, message)) = read_one(&mut settings, key, value) {
            errors.push(FieldError::new(format!("{base}.{key}"), reason, message));
        }
    }
    if errors.is_empty() { Ok(settings) } else { Err(errors) }
}

type Wrong = (FieldReason, String);

fn read_one(settings: &mut Settings, key: &str, value: &Value) -> Result<(), Wrong> {
    let limits = &mut settings.limits;
    match key {
        "memory" => limits.memory_bytes = Some(scaled(number(value, Unit::Gib, 0.0625..=65_536.0)?, GIB)),
        "disk" => limits.disk_bytes = Some(scaled(number(value, Unit::Gib, 0.0625..=1_048_576.0)?, GIB)),
        "cpus" => limits.cpu_millis = Some(scaled(number(value, Unit::Processors, 0.01..=4_096.0)?, 1000.0)),
        "pids" => limits.processes = Some(processes(value)?),
        "network" => settings.network = network(value)?,
        "nesting" => nesting(value)?,
        _ => {
            return Err((
                FieldReason::NotSupported,
                format!("not a setting of provider sandbox; it knows {KNOWN}"),
            ));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Unit {
    Gib,
    Processors,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Gib => "GiB",
            Self::Processors => "processors",
        }
    }

    /// The number that `text` most likely meant, such as 4 for `4Gi`.
    fn guess(self, text: &str) -> Option<f64> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let number: f64 = digits.parse().ok()?;
        let suffix = text[digits.len()..].trim().to_ascii_lowercase();
        match (self, suffix.as_str()) {
            (Self::Gib, "" | "g" | "gb" | "gi" | "gib") | (Self::Processors, "" | "cpus" | "cores") => {
                Some(number)
            }
            (Self::Gib, "m" | "mb" | "mi" | "mib") => Some(number / 1024.0),
            (Self::Gib, "t" | "tb" | "ti" | "tib") => Some(number * 1024.0),
            (Self::Processors, "m") => Some(number / 1000.0),
            (Self::Gib | Self::Processors, _) => None,
        }
    }
}

fn number(value: &Value, unit: Unit, range: std::ops::RangeInclusive<f64>) -> Result<f64, Wrong> {
    let Some(number) = value.as_f64() else {
        let guess = value.as_str().and_then(|text| unit.guess(text));
        let cure = guess.map(|guess| format!(": write {guess}")).unwrap_or_default();
        return Err((
            FieldReason::TypeInvalid,
            format!("{value} is not a number; the unit is {}{cure}", unit.name()),
        ));
    };
    if range.contains(&number) {
        Ok(number)
    } else {
        let (from, to) = range.into_inner();
        Err((FieldReason::Invalid, format!("{number} is out of range: from {from} to {to} {}", unit.name())))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked: positive, and far below 2^63 after scaling"
)]
fn scaled(number: f64, factor: f64) -> u64 {
    (number * factor).round() as u64
}

fn processes(value: &Value) -> Result<u64, Wrong> {
    const RANGE: std::ops::RangeInclusive<u64> = 32..=4_194_304;
    match value.as_u64() {
        Some(count) if RANGE.contains(&count) => Ok(count),
        Some(count) => Err((
            FieldReason::Invalid,
            format!("{count} is out of range: from {} to {} processes", RANGE.start(), RANGE.end()),
        )),
        None => Err((FieldReason::TypeInvalid, format!("{value} is not a whole number of processes"))),
    }
}

fn network(value: &Value) -> Result<Network, Wrong> {
    match value.as_str() {
        Some("none") => Ok(Network::None),
        Some("host") => Ok(Network::Host),
        Some("private") => Err((
            FieldReason::NotSupported,
            "private is not available in this version: write none (loopback only) or host".into(),
        )),
        Some(_) | None => Err((
            FieldReason::NotSupported,
            format!("{value} is no network: write none (loopback only) or host"),
        )),
    }
}

fn nesting(value: &Value) -> Result<(), Wrong> {
    match value.as_bool() {
        Some(false) => Ok(()),
        Some(true) => Err((
            FieldReason::NotSupported,
            "containers inside a sandbox are not available in this version: leave it out".into(),
        )),
        None => Err((FieldReason::TypeInvalid, format!("{value} is not true or false"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(config: Value) -> Vec<String> {
        let Value::Object(config) = config else { unreachable!("the tests pass objects") };
        match read(&config, "spec.providerConfig") {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_key_is_read_with_its_unit() {
        let config =
            json!({"memory": 1.5, "cpus": 0.5, "disk": 10, "pids": 500, "network": "host", "nesting": false});
        let settings = read(config.as_object().expect("an object"), "").expect("all valid");
        assert_eq!(settings.network, Network::Host);
        assert_eq!(
            settings.limits,
            Limits {
                memory_bytes: Some(3 << 29),
                cpu_millis: Some(500),
                processes: Some(500),
                disk_bytes: Some(10 << 30),
            }
        );
    }

    #[test]
    fn a_size_with_a_suffix_gets_its_cure() {
        assert_eq!(
            said(json!({"memory": "4Gi"})),
            [r#"spec.providerConfig.memory: "4Gi" is not a number; the unit is GiB: write 4"#]
        );
        assert_eq!(
            said(json!({"memory": "512Mi"})),
            [r#"spec.providerConfig.memory: "512Mi" is not a number; the unit is GiB: write 0.5"#]
        );
        assert_eq!(
            said(json!({"cpus": "500m"})),
            [r#"spec.providerConfig.cpus: "500m" is not a number; the unit is processors: write 0.5"#]
        );
    }

    #[test]
    fn all_wrong_keys_are_reported_and_the_known_ones_listed() {
        assert_eq!(
            said(json!({"ram": 4, "pids": 3, "network": "private", "nesting": "yes"})),
            [
                "spec.providerConfig.ram: not a setting of provider sandbox; it knows memory, cpus, disk, pids, network, nesting",
                "spec.providerConfig.pids: 3 is out of range: from 32 to 4194304 processes",
                "spec.providerConfig.network: private is not available in this version: write none (loopback only) or host",
                r#"spec.providerConfig.nesting: "yes" is not true or false"#,
            ]
        );
    }

    #[test]
    fn what_is_no_size_at_all_gets_no_guess() {
        assert_eq!(
            said(json!({"memory": [4]})),
            ["spec.providerConfig.memory: [4] is not a number; the unit is GiB"]
        );
    }
}
