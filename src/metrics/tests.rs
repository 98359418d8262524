//! What a scraper gets: well-formed in both forms, and the same lines whatever there is.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use ulid::Ulid;

use super::label::{Label, LabelSet};
use super::*;
use crate::object::{LeasePhase, MemberState, PoolPhase, WORKSTATIONS_GROUP};
use crate::pool::{BuildFailure, Ending, Happening, Removal, Start};
use crate::view::{self, Applied, Key, Resource, ViewWriter};

fn metrics() -> (Metrics, ViewWriter) {
    let (view, writer) = view::new(10);
    (Metrics::new(view), writer)
}

fn show(writer: &mut ViewWriter, plural: &'static str, name: &str, version: u64, value: Value) {
    let key = Key { group: WORKSTATIONS_GROUP, plural, namespace: format!("of {name}"), name: name.into() };
    let uid = Ulid(u128::from(version));
    writer.apply(vec![Applied::Put(Resource { key, uid, version, value })]);
}

/// The names and labels of every sample: what a scraper makes a series of.
fn series(scraped: &str) -> BTreeSet<String> {
    let samples = scraped.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect()
}

fn value_of<'a>(scraped: &'a str, series: &str) -> &'a str {
    let found = scraped.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {series} in\n{scraped}"))
}

#[test]
fn many_pools_and_leases_with_strange_names_and_states_add_no_line() {
    let (metrics, mut writer) = metrics();
    let before = series(&metrics.scrape(Form::Prometheus).unwrap());
    for (number, state) in (0..500_u64).zip(MemberState::ALL.iter().cycle()) {
        let strange = format!("x\"}} 1\n# EOF {number} \u{1f980}");
        let version = 1 + number * 3;
        let (state, phase) = if number.is_multiple_of(5) {
            (json!(strange), json!(strange))
        } else {
            (json!(state.word()), json!("Pending"))
        };
        let annotations = json!({"pools.ringleader.dev/state": state, "of/the user": strange});
        let status = json!({"phase": phase, "message": strange, "reason": strange});
        show(
            &mut writer,
            "workstations",
            &strange,
            version,
            json!({"metadata": {"annotations": annotations}}),
        );
        show(&mut writer, "workstationpoolleases", &strange, version + 1, json!({"status": status}));
        show(&mut writer, "workstationpools", &strange, version + 2, json!({"status": status}));
        metrics.http.answer(Verb::Other, CodeClass::of(u16::try_from(number * 7).unwrap()), number);
        metrics.commits.commit(number, number);
    }
    metrics.pools.count(&everything());
    let scraped = metrics.scrape(Form::Prometheus).unwrap();
    assert_eq!(series(&scraped), before);
    assert_eq!(value_of(&scraped, "ringleader_leases{phase=\"Pending\"}"), "400");
    assert!(!scraped.contains("\u{1f980}"));
}

#[test]
fn every_line_is_of_the_form_that_is_promised() {
    let (metrics, _writer) = metrics();
    metrics.pools.count(&everything());
    for form in [Form::Prometheus, Form::OpenMetrics] {
        let scraped = metrics.scrape(form).unwrap();
        let mut family = String::new();
        let mut seen = BTreeSet::new();
        for line in scraped.lines().filter(|line| *line != "# EOF") {
            if let Some(described) = line.strip_prefix("# HELP ") {
                let (name, help) = described.split_once(' ').expect("a help text");
                assert!(help.ends_with('.') && help.len() > 5, "{line}");
                assert!(seen.insert(name.to_owned()), "{name} comes twice");
                family = name.to_owned();
            } else if let Some(described) = line.strip_prefix("# ") {
                let (_, named) = described.split_once(' ').expect("a name");
                assert!(named.starts_with(&format!("{family} ")), "{line} after {family}");
            } else {
                let (sample, value) = line.rsplit_once(' ').expect("a value");
                assert!(sample.starts_with(&family) && sample.starts_with("ringleader_"), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let (_, labels) = sample.split_once('{').unwrap_or((sample, "}"));
                assert!(labels.ends_with('}'), "{line}");
                for pair in labels.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty()) {
                    let (name, value) = pair.split_once('=').expect("a pair");
                    let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
                    assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{line}");
                    assert!(value.trim_matches('"').chars().all(plain), "{line}");
                }
            }
        }
        assert_eq!(scraped.ends_with("\n# EOF\n"), form == Form::OpenMetrics);
    }
}

#[test]
fn buckets_add_up_to_the_count_and_what_lies_on_a_bound_is_within_it() {
    let (metrics, _writer) = metrics();
    for wait_millis in [0, 1, 2, 3, 30_000, 10_000_000] {
        metrics.pools.count(&[Happening::LeaseReady { start: Start::Cold, wait_millis }]);
    }
    let scraped = metrics.scrape(Form::OpenMetrics).unwrap();
    let bucket = |le: &str| {
        value_of(&scraped, &format!("ringleader_lease_wait_seconds_bucket{{le=\"{le}\",start=\"cold\"}}"))
    };
    assert_eq!([bucket("0.001"), bucket("0.002"), bucket("0.005")], ["2", "3", "4"]);
    assert_eq!([bucket("30.0"), bucket("1800.0"), bucket("+Inf")], ["5", "5", "6"]);
    assert_eq!(value_of(&scraped, "ringleader_lease_wait_seconds_count{start=\"cold\"}"), "6");
    assert_eq!(value_of(&scraped, "ringleader_lease_wait_seconds_sum{start=\"cold\"}"), "10030.006");
    assert_eq!(value_of(&scraped, "ringleader_lease_wait_seconds_count{start=\"warm\"}"), "0");
}

#[test]
fn what_happens_is_counted_where_its_name_says() {
    let (metrics, _writer) = metrics();
    metrics.pools.count(&everything());
    let scraped = metrics.scrape(Form::Prometheus).unwrap();
    for one in [
        "ringleader_leases_created_total",
        "ringleader_lease_bindings_total{start=\"resumed\"}",
        "ringleader_lease_endings_total{outcome=\"expired_unbound\"}",
        "ringleader_build_failures_total{reason=\"timed_out\"}",
        "ringleader_member_removals_total{reason=\"by_hand\"}",
        "ringleader_member_build_seconds_count",
        "ringleader_members_gone_total",
        concat!("ringleader_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"),
    ] {
        assert_eq!(value_of(&scraped, one), "1", "{one}");
    }
}

#[test]
fn two_labels_give_each_combination_a_place_of_its_own() {
    let all = <(Verb, CodeClass)>::all();
    assert_eq!(all.len(), Verb::ALL.len() * CodeClass::ALL.len());
    for verb in Verb::ALL {
        for class in CodeClass::ALL {
            let place = &all[(*verb, *class).index()];
            assert_eq!(*place, [("verb", verb.word()), ("code", class.word())]);
        }
    }
}

#[test]
fn phases_and_states_are_called_what_the_api_calls_them() {
    fn agree<L: Label + std::fmt::Debug>() {
        for value in L::ALL {
            assert_eq!(format!("{value:?}"), value.word());
        }
    }
    agree::<MemberState>();
    agree::<LeasePhase>();
    agree::<PoolPhase>();
}

/// One of each thing that can happen.
fn everything() -> Vec<Happening> {
    let starts = Start::ALL.iter().flat_map(|start| {
        let (start, wait_millis) = (*start, 12);
        [Happening::LeaseBound { start }, Happening::LeaseReady { start, wait_millis }]
    });
    let endings = Ending::ALL.iter().map(|ending| Happening::LeaseEnded(*ending));
    let failures = BuildFailure::ALL.iter().map(|failure| Happening::BuildFailed(*failure));
    let removals = Removal::ALL.iter().map(|removal| Happening::MemberRemoved(*removal));
    let plain = [
        Happening::LeaseCreated,
        Happening::LeaseWaitsAgain,
        Happening::BuildOrdered,
        Happening::MemberBuilt { build_millis: 40 },
        Happening::MemberGone,
    ];
    plain.into_iter().chain(starts).chain(endings).chain(failures).chain(removals).collect()
}
