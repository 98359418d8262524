//! How long people wait: for a warm member, and for a cold one.
//!
//! `cargo bench --bench lending`, as root. A real daemon with real machines; the client is in this
//! process, so that no start of a program is measured. Each figure stands beside its physical
//! reference from the same run: a warm lease cannot be had without one durable append, and a cold
//! machine not without namespaces. No figure is an assertion: these machines are shared.
//!
//! `LENDING_SAMPLES=100` changes how many of each are taken (default 60 warm, a third of it cold).

#[path = "lending/house.rs"]
mod house;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use house::{House, scratch};
use serde_json::json;

fn main() {
    if std::env::args().any(|word| word == "--list") {
        return;
    }
    assert!(rustix::process::geteuid().is_root(), "this makes real machines and needs root");
    let samples = std::env::var("LENDING_SAMPLES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let house = House::open().await;
        let append = Series::of((0..samples).map(|_| append()).collect());
        let clone = Series::of((0..samples / 3).map(|_| empty_clone()).collect());
        let warm = warm(&house, samples).await;
        let cold = cold(&house, samples / 3).await;
        house.close().await;
        println!("\n{:<52} {:>9} {:>9} {:>9}", "", "median", "p90", "max");
        append.print("reference: one append of 4 KiB and its fdatasync");
        warm.print("warm lease: asked for -> Ready at the watch");
        println!("{:<52} {:>8.1}x", "  ratio of the medians", warm.median() / append.median());
        clone.print("reference: empty namespaces, overlay, exec of true");
        cold.print("cold workstation: create -> an SSH exec answered");
        println!("{:<52} {:>8.1}x", "  ratio of the medians", cold.median() / clone.median());
    });
}

/// From the POST of a lease to the watch event that says Ready, with an idle running member there.
async fn warm(house: &House, samples: usize) -> Series {
    let mut times = Vec::new();
    for number in 0..samples {
        house.floors_filled().await;
        let name = format!("warm-{number}");
        let mut watch = house.watch_leases().await;
        let began = Instant::now();
        house.lease(&name).await;
        while !watch.next().await.is_some_and(|event| event.says_ready(&name)) {}
        times.push(began.elapsed());
        house.release(&name).await;
    }
    Series::of(times)
}

/// From the POST of a Workstation to the answer of a command run on it over SSH.
async fn cold(house: &House, samples: usize) -> Series {
    let mut times = Vec::new();
    for number in 0..samples {
        let name = format!("cold-{number}");
        let mut watch = house.watch_workstations().await;
        let began = Instant::now();
        house.create_workstation(&name, &json!({})).await;
        while !watch.next().await.is_some_and(|event| event.says_ready(&name)) {}
        assert_eq!(house.exec(&name, "echo answered").await.trim(), "answered");
        times.push(began.elapsed());
        house.delete_workstation(&name).await;
    }
    Series::of(times)
}

/// What no durable answer can do without.
fn append() -> Duration {
    let path = scratch().join("append");
    let mut log = OpenOptions::new().create(true).append(true).open(path).expect("a file");
    let began = Instant::now();
    log.write_all(&[7; 4096]).expect("room");
    log.sync_data().expect("a working disk");
    began.elapsed()
}

/// What no machine can do without: its namespaces and a root of its own.
fn empty_clone() -> Duration {
    let dir = tempfile::tempdir_in(scratch()).expect("a directory");
    for part in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(dir.path().join(part)).expect("made");
    }
    let script = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && exec true";
    let began = Instant::now();
    let status = Command::new("unshare")
        .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "sh", "-c", script])
        .current_dir(dir.path())
        .status()
        .expect("unshare (util-linux) is installed");
    assert!(status.success());
    began.elapsed()
}

/// Measured times, in order.
struct Series(Vec<Duration>);

impl Series {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    fn at(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a few hundred samples"
        )]
        let index = ((self.0.len() - 1) as f64 * share).round() as usize;
        self.0[index].as_secs_f64() * 1000.0
    }

    fn median(&self) -> f64 {
        self.at(0.5)
    }

    fn print(&self, what: &str) {
        println!("{what:<52} {:>6.2} ms {:>6.2} ms {:>6.2} ms", self.median(), self.at(0.9), self.at(1.0));
    }
}
