//! How large the store's files grow under a million cycles of put, update and remove.
//!
//! `cargo bench --bench growth` (or `-- 100000` for fewer cycles). 1000 records live all the time;
//! each cycle creates one, changes it and removes it, in three submissions. Prints the size on disk
//! as it goes, and after a restart.

mod store;

use std::fs;
use std::path::Path;
use std::time::Instant;

use ringleader::store::{Store, StoreOptions};
use ringleader::view;
use store::{Measured, put, remove};

const LIVE_RECORDS: u128 = 1000;
const CYCLES: u128 = 1_000_000;
const REPORTS: u128 = 20;

fn main() {
    let cycles = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(CYCLES);
    let measured = Measured::new();
    for uid in 0..LIVE_RECORDS {
        measured.submit(vec![put(uid, 0)], vec![]);
    }
    let began = Instant::now();
    println!("{:>10} {:>12} {:>10}", "cycles", "KiB on disk", "seconds");
    for cycle in 0..cycles {
        let uid = LIVE_RECORDS + cycle;
        measured.submit(vec![put(uid, 1)], vec![]);
        measured.submit(vec![put(uid, 2), put(cycle % LIVE_RECORDS, 3)], vec![]);
        measured.submit(vec![remove(uid)], vec![]);
        if cycle % 1000 == 999 {
            measured.store.barrier().blocking_recv().expect("the committer passes");
        }
        if (cycle + 1) % (cycles / REPORTS).max(1) == 0 {
            let seconds = began.elapsed().as_secs_f64();
            println!("{:>10} {:>12} {seconds:>10.1}", cycle + 1, size_kib(measured.dir.path()));
        }
    }
    measured.store.close();
    println!("closed     {:>12}", size_kib(measured.dir.path()));
    let began = Instant::now();
    let (_, writer) = view::new(1);
    let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
    options.ballast_bytes = 0;
    let store = Store::open(measured.dir.path(), options, writer).expect("opens again");
    println!("opened     {:>12} {:>10.3}", size_kib(measured.dir.path()), began.elapsed().as_secs_f64());
    store.close();
}

/// What the files take, holes not counted.
fn size_kib(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(dir).expect("it is there");
    let size = |entry: fs::DirEntry| {
        let metadata = entry.metadata().expect("it is there");
        if metadata.is_dir() { size_kib(&entry.path()) } else { metadata.blocks() / 2 }
    };
    entries.map(|entry| size(entry.expect("it is there"))).sum()
}
