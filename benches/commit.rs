//! How long a decision takes to become durable and visible, beside what the disk itself takes.
//!
//! `cargo bench --bench commit`. `reference` appends as much as a commit's record and calls
//! fdatasync, on the same file system in the same run; a commit cannot be faster than that, and
//! many writers at once should together be many times faster.

mod store;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use divan::counter::ItemsCount;
use store::{Measured, put, scratch};

fn main() {
    divan::main();
}

static STORE: LazyLock<Measured> = LazyLock::new(Measured::new);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// One append and one fdatasync.
#[divan::bench(sample_count = 500)]
fn reference(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir_in(scratch()).expect("the build directory can be written");
    let path = dir.path().join("log");
    let mut log = OpenOptions::new().create(true).append(true).open(path).expect("a new file");
    bencher.bench_local(|| {
        log.write_all(&[7; 512]).expect("room");
        log.sync_data().expect("a working disk");
    });
}

/// One submission after another, each awaited, by one writer and by 64 at once. Each thread's time
/// is what its caller waits; all together do 64 commits in it.
#[divan::bench(threads = [1, 64], sample_count = 640, sample_size = 10)]
fn commit(bencher: Bencher<'_, '_>) {
    let store = &*STORE;
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        store.commit(vec![put(u128::from(number % 1000), number)]);
    });
}

/// The short lock alone: what `submit` costs its caller, encoding included.
#[divan::bench(sample_count = 100, sample_size = 100)]
fn submit(bencher: Bencher<'_, '_>) {
    let store = &*STORE;
    bencher
        .with_inputs(|| put(u128::from(NEXT.fetch_add(1, Ordering::Relaxed) % 1000), 1))
        .bench_values(|write| store.submit(vec![write], vec![]));
}

/// Listing 10 000 objects in one look.
#[divan::bench]
fn list_10_000(bencher: Bencher<'_, '_>) {
    let measured = Measured::new();
    for uid in 0..10_000 {
        measured.submit(vec![put(uid, 1)], vec![]);
    }
    measured.store.barrier().blocking_recv().expect("the committer passes");
    let group = ringleader::object::CORE_GROUP;
    bencher.bench_local(|| measured.view.list(group, "devices", None));
}
