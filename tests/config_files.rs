//! `config/` is true: the example settings are the defaults, the unit says what the daemon needs.

use std::collections::BTreeMap;

use ringleader::settings::{self, Settings};

#[test]
fn the_example_settings_are_the_defaults_and_name_every_key() {
    let text = include_str!("../config/daemon.toml");
    let parsed = settings::parse(text).expect("config/daemon.toml parses");
    let defaults = Settings {
        data_dir: "/var/lib/ringleader".into(),
        socket: "/run/ringleader/rl.sock".into(),
        ..Settings::default()
    };
    assert_eq!(parsed, defaults);
}

#[test]
fn every_key_of_the_settings_stands_in_the_example() {
    let text = include_str!("../config/daemon.toml");
    let source = include_str!("../src/settings.rs");
    let structs = source.split("impl Default").next().expect("the types come first");
    let mut missing = Vec::new();
    for line in structs.lines() {
        let Some(field) = line.trim().strip_prefix("pub ") else { continue };
        let Some((name, r#type)) = field.split_once(": ") else { continue };
        if name.contains(' ') {
            continue;
        }
        let section = ["Log,", "Store,", "Images,", "Sandbox,"].contains(&r#type);
        let key = format!("{name} = ");
        let named = if section { text.contains(&format!("[{name}]")) } else { text.contains(&key) };
        if !named && name != "named" {
            missing.push(name.to_owned());
        }
    }
    assert!(missing.is_empty(), "config/daemon.toml does not name {missing:?}");
}

#[test]
fn the_unit_lets_members_outlive_the_daemon() {
    let unit = sections(include_str!("../config/ringleader.service"));
    let service = &unit["Service"];
    assert_eq!(service["Type"], "notify");
    assert_eq!(service["KillMode"], "process");
    assert_eq!(service["Delegate"], "yes");
    assert!(service.contains_key("WatchdogSec"));
    assert_eq!(service["ExecStart"], "/usr/bin/rl daemon run");
    assert_eq!(unit["Install"]["WantedBy"], "multi-user.target");
}

fn sections(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut sections = BTreeMap::<String, BTreeMap<String, String>>::new();
    let mut current = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut current);
        } else {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("not a key=value line: {line}"));
            sections.entry(current.clone()).or_default().insert(key.into(), value.into());
        }
    }
    sections
}
