//! Every numbered rule of `rules.md`, and every case of `cases.md`, has a test that says so on a
//! line of its own above it: `// rule L7`, `// case 7 (source#1)`.
//!
//! What is still owed stands in the two lists below, each with the issue that owes it. They only
//! shrink: an entry that has its test by now fails here, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rules without a test yet.
const RULES_OWED: &[(&str, &str)] = &[
    ("A1", "issue 6: shares are Grants"),
    ("A5", "issue 6: Grants of lease"),
    ("A9", "issue 6: rights by kind"),
    ("G1", "issue 5: configurations"),
    ("G2", "issue 5: configurations"),
    ("G3", "issue 5: configurations"),
    ("H1", "issue 5: holding configuration"),
    ("H2", "issue 5: holding configuration"),
    ("H3", "issue 5: holding configuration"),
    ("H4", "issue 5: holding configuration"),
    ("H5", "issue 5: holding configuration"),
    ("R7", "issue 5: recycle scripts"),
    ("R9", "issue 5: a reset and its proof"),
];

/// Cases without a test yet.
const CASES_OWED: &[(&str, &str)] = &[("14", "issue 5: a reset and its proof")];

#[test]
fn every_rule_has_a_test_or_an_issue_that_owes_it() {
    let text = shared("spec/rules.md");
    let rules = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_whitespace().next());
    let rules: BTreeSet<String> = rules.map(str::to_owned).collect();
    assert!(rules.len() > 80, "rules.md has rules: {}", rules.len());
    compare("rule", &rules, RULES_OWED);
}

#[test]
fn every_case_from_the_field_has_a_test_or_an_issue_that_owes_it() {
    let text = shared("scenarios/cases.md");
    let cases: BTreeMap<String, String> = cases_with_sources(&text);
    assert!(cases.len() > 20, "cases.md has cases: {}", cases.len());
    compare("case", &cases.keys().cloned().collect(), CASES_OWED);
    let uncited: Vec<String> = marks("case")
        .into_iter()
        .filter(|mark| {
            let (number, source) = mark.name.split_once(' ').unwrap_or((&mark.name, ""));
            cases.get(number).is_none_or(|cited| source != format!("({cited})"))
        })
        .map(|mark| format!("{}: case {} is not cited as cases.md cites it", mark.place, mark.name))
        .collect();
    assert!(uncited.is_empty(), "{}", uncited.join("\n"));
}

#[test]
fn every_mark_stands_above_a_test() {
    let astray: Vec<String> = marks("rule")
        .into_iter()
        .chain(marks("case"))
        .filter(|mark| !mark.is_above_a_test)
        .map(|mark| format!("{}: `{}` has no test below it", mark.place, mark.name))
        .collect();
    assert!(astray.is_empty(), "{}", astray.join("\n"));
}

/// The number of each case, and its source: the last parenthesis of its paragraph.
fn cases_with_sources(text: &str) -> BTreeMap<String, String> {
    let mut cases: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines() {
        let number = line.split_once(". ").map(|(number, _)| number);
        if let Some(number) = number.filter(|number| number.parse::<u32>().is_ok()) {
            number.clone_into(&mut last);
        }
        if !last.is_empty() {
            cases.entry(last.clone()).or_default().push_str(line);
        }
    }
    for words in cases.values_mut() {
        let source = words.rsplit_once('(').map(|(_, source)| source.trim().trim_end_matches(')').to_owned());
        *words = source.unwrap_or_default();
    }
    cases
}

fn compare(what: &str, all: &BTreeSet<String>, owed: &[(&str, &str)]) {
    let tested: BTreeSet<String> = marks(what)
        .into_iter()
        .filter(|mark| mark.is_above_a_test)
        .map(|mark| mark.name.split(' ').next().expect("a first word").to_owned())
        .collect();
    let owed: BTreeSet<String> = owed.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut faults = Vec::new();
    for name in all {
        match (tested.contains(name), owed.contains(name)) {
            (false, false) => faults.push(format!("{what} {name} has no test")),
            (true, true) => {
                faults.push(format!("{what} {name} has a test: take it off the list of the owed"));
            }
            (true, false) | (false, true) => {}
        }
    }
    for name in tested.union(&owed).filter(|name| !all.contains(*name)) {
        faults.push(format!("there is no {what} {name}"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// One `// rule X` or `// case N (source)`.
struct Mark {
    name: String,
    place: String,
    is_above_a_test: bool,
}

fn marks(what: &str) -> Vec<Mark> {
    let prefix = format!("// {what} ");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut marks = Vec::new();
    for path in rust_files() {
        let text = fs::read_to_string(&path).expect("a source file is text");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            if let Some(name) = line.strip_prefix(&prefix) {
                let below = lines[at..].iter().find(|line| !line.starts_with("//"));
                let is_above_a_test = below.is_some_and(|line| {
                    line.starts_with("#[test]")
                        || line.starts_with("#[tokio::test")
                        || line.starts_with("#[actix::test")
                        || line.starts_with("#![proptest_config")
                });
                let place = format!("{}:{}", path.strip_prefix(root).unwrap_or(&path).display(), at + 1);
                marks.push(Mark { name: name.to_owned(), place, is_above_a_test });
            }
        }
    }
    marks
}

fn rust_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("tests"), root.join("proof")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn shared(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(file);
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("this test reads {}, which is not there: {error}", path.display()))
}
