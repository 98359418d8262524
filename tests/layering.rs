//! Reads `src/` and fails on an import that breaks the table of rooms in ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};

/// A room, and the rooms of ours it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("object", &[]),
    ("machine", &["object"]),
    ("pool", &["object", "machine"]),
    ("access", &["object"]),
    ("catalog", &["object"]),
    ("fleet", &["object", "machine"]),
    ("view", &["object"]),
    ("metrics", &["object", "pool", "view"]),
    ("store", &["object", "machine", "pool", "catalog", "fleet", "view", "metrics", "clock"]),
    ("sys", &[]),
    ("provider", &["object", "machine", "sys", "clock"]),
    ("agent", &["object", "machine", "sys", "clock"]),
    (
        "actor",
        &[
            "object", "machine", "pool", "access", "catalog", "fleet", "view", "metrics", "store",
            "provider", "agent", "settings", "clock",
        ],
    ),
    ("http", &["object", "access", "view", "metrics", "actor", "clock"]),
    ("client", &["object"]),
    ("cli", &["object", "client", "clock"]),
    ("settings", &["object"]),
    ("clock", &["object"]),
];

/// A crate (or call), and the rooms that may name it.
const CONFINED: &[(&str, &[&str])] = &[
    ("actix", &["actor"]),
    ("sled", &["store"]),
    ("postcard", &["store", "agent", "provider"]),
    ("hyper", &["http", "client"]),
    ("hyper_util", &["http", "client"]),
    ("russh", &["agent"]),
    ("prometheus_client", &["metrics"]),
    ("unsafe", &["sys"]),
];

#[test]
fn rooms_import_only_what_the_table_allows() {
    let mut faults = Vec::new();
    for (room, file, line, text) in lines_of_src() {
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else { continue };
        for used in rooms_named_in(&text) {
            if used != room && !allowed.contains(&used.as_str()) {
                faults.push(format!("{file}:{line}: {room} may not use {used}: {}", text.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn http_sees_only_the_messages_of_the_actors() {
    let faults: Vec<String> = lines_of_src()
        .filter(|(room, _, _, text)| {
            room == "http" && text.contains("actor::") && !text.contains("actor::doors")
        })
        .map(|(_, file, line, text)| format!("{file}:{line}: {}", text.trim()))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn crates_and_calls_stay_in_their_rooms() {
    let mut faults = Vec::new();
    for (room, file, line, text) in lines_of_src() {
        for (word, rooms) in CONFINED {
            let at = |pattern: String| text.contains(&pattern);
            let named = if *word == "unsafe" {
                at("unsafe {".into())
                    || at("unsafe fn".into())
                    || at("unsafe extern".into())
                    || at("unsafe impl".into())
            } else {
                at(format!("use {word}::"))
                    || at(format!("{word}::")) && !at(format!("_{word}::")) && !at(format!("::{word}::"))
            };
            if named && !rooms.contains(&room.as_str()) {
                faults.push(format!("{file}:{line}: {word} outside {rooms:?}: {}", text.trim()));
            }
        }
        if room != "clock" && (text.contains("Utc::now") || text.contains("SystemTime::now")) {
            faults.push(format!("{file}:{line}: only clock.rs reads the clock: {}", text.trim()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_room_stands_in_the_table() {
    for entry in fs::read_dir(src()).expect("src is there") {
        let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
        let room = name.trim_end_matches(".rs");
        let known = ROOMS.iter().any(|(name, _)| *name == room)
            || ["main", "lib"].contains(&room)
            || room == "daemon";
        assert!(known, "src/{name} is no room of the table: add it to ARCHITECTURE.md and to this test");
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every line of code: its room, file, number and text; comments and tests left out.
fn lines_of_src() -> impl Iterator<Item = (String, String, usize, String)> {
    let mut files = Vec::new();
    collect(&src(), &mut files);
    assert!(files.len() > 20, "src/ was not read");
    files.into_iter().flat_map(|path| {
        let relative = path.strip_prefix(src()).expect("below src").to_owned();
        let room = relative
            .components()
            .next()
            .expect("a file")
            .as_os_str()
            .to_string_lossy()
            .trim_end_matches(".rs")
            .to_owned();
        let text = fs::read_to_string(&path).expect("readable source");
        let of_tests =
            relative.components().any(|part| part.as_os_str() == "tests") || relative.ends_with("tests.rs");
        let code = if of_tests {
            String::new()
        } else {
            text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
        };
        let lines: Vec<_> = code
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(number, line)| {
                (room.clone(), format!("src/{}", relative.display()), number + 1, line.to_owned())
            })
            .collect();
        lines
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable folder") {
        let path = entry.expect("readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn rooms_named_in(line: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.trim_end_matches(['}', ';']).split(',').collect(),
            None => vec![rest],
        };
        for name in names {
            let name: String = name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() && name.chars().next().is_some_and(char::is_lowercase) {
                rooms.push(name);
            }
        }
    }
    rooms
}
