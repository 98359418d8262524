//! How long a store takes to open again, by the number of its records, beside what reading its files
//! and decoding as many lines of JSON takes.
//!
//! `cargo bench --bench recovery`. The store is closed as a daemon closes it. Every record is read,
//! its checksum is checked, and it is shown in the view before anybody is served.

mod store;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ringleader::store::{Store, StoreOptions};
use ringleader::view;
use store::{Measured, put};

const SIZES: [u128; 3] = [1_000, 10_000, 100_000];
const ROUNDS: usize = 5;

fn main() {
    println!("{:>10} {:>14} {:>14} {:>8}", "records", "open, ms", "reference, ms", "ratio");
    for records in SIZES {
        let measured = Measured::new();
        for uid in 0..records {
            measured.submit(vec![put(uid, 1)], vec![]);
        }
        measured.store.barrier().blocking_recv().expect("the committer passes");
        measured.store.close();
        let opened = median(|| open(measured.dir.path()));
        let reference = median(|| read_and_decode(measured.dir.path(), records));
        let ratio = opened.as_secs_f64() / reference.as_secs_f64();
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        println!("{records:>10} {:>14.1} {:>14.1} {ratio:>8.1}", millis(opened), millis(reference));
    }
}

fn open(dir: &Path) {
    let (_, writer) = view::new(1);
    let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
    options.ballast_bytes = 0;
    Store::open(dir, options, writer).expect("opens again").close();
}

/// The bytes of every file, and one small object a record from text.
fn read_and_decode(dir: &Path, records: u128) {
    let line = r#"{"metadata":{"name":"user","generation":1},"spec":{"displayName":"somebody"}}"#;
    let mut folders = vec![dir.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                bytes += fs::read(path).expect("it can be read").len();
            }
        }
    }
    assert!(bytes > 0);
    for _ in 0..records {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        std::hint::black_box(value);
    }
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}
