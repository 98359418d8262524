//! How long a machine takes to be made, beside what the kernel alone takes in the same run.
//!
//! `cargo bench --bench machines`, as root. The reference is `unshare` of the same namespaces with
//! an overlay mounted in them and `true` executed: no id map of its own, no records, no agent.

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/sandbox/house.rs"]
mod house;

use std::process::Command;

use divan::Bencher;
use house::{House, fresh_id, spec};
use ringleader::provider::Provider;
use tokio::runtime::Runtime;
use ulid::Ulid;

fn main() {
    divan::main();
}

/// One empty clone of the namespaces.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn reference_empty_namespaces(bencher: Bencher) {
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for part in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(base.path().join(part)).expect("made");
    }
    let script = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && exec true";
    bencher.bench_local(|| {
        let status = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "sh", "-c", script])
            .current_dir(base.path())
            .status()
            .expect("unshare (util-linux) is installed");
        assert!(status.success());
    });
}

/// From the call to `rl init` executing: directory and record on the disk, namespaces, id map,
/// idmapped image, overlay, mounts.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn create(bencher: Bencher) {
    let (house, runtime) = (House::new(), Runtime::new().expect("a runtime"));
    bencher.with_inputs(|| Gone::later(&house, &runtime)).bench_local_values(|machine| {
        runtime.block_on(house.sandbox.create(machine.id, &spec("bench"))).expect("made");
        machine
    });
}

/// Booting a stopped machine.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn start(bencher: Bencher) {
    let (house, runtime) = (House::new(), Runtime::new().expect("a runtime"));
    bencher
        .with_inputs(|| {
            let machine = Gone::later(&house, &runtime);
            runtime.block_on(house.sandbox.create(machine.id, &spec("bench"))).expect("made");
            runtime.block_on(house.sandbox.stop(machine.id)).expect("stopped");
            machine
        })
        .bench_local_values(|machine| {
            runtime.block_on(house.sandbox.start(machine.id)).expect("started");
            machine
        });
}

/// Removing a running machine, up to where nothing of it is left but files in the trash.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn delete(bencher: Bencher) {
    let (house, runtime) = (House::new(), Runtime::new().expect("a runtime"));
    bencher
        .with_inputs(|| {
            let id = fresh_id();
            runtime.block_on(house.sandbox.create(id, &spec("bench"))).expect("made");
            id
        })
        .bench_local_values(|id| runtime.block_on(house.sandbox.delete(id)).expect("deleted"));
}

/// A machine that is deleted when the timed part is over.
struct Gone<'a> {
    id: Ulid,
    house: &'a House,
    runtime: &'a Runtime,
}

impl<'a> Gone<'a> {
    fn later(house: &'a House, runtime: &'a Runtime) -> Self {
        Self { id: fresh_id(), house, runtime }
    }
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.runtime.block_on(self.house.sandbox.delete(self.id)).expect("deleted");
    }
}
