//! A provider for tests and benches, over a small image made of this host's programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ringleader::machine::MachineSpec;
use ringleader::provider::sandbox::{Sandbox, SandboxOptions, launcher};
use ringleader::provider::{Availability, Inspection, Provider};
use tempfile::TempDir;
use ulid::Ulid;

/// A provider on a data directory of its own, over a small made-up image.
pub struct House {
    pub sandbox: Arc<Sandbox>,
    sweeper: Sweeper,
    pub data: TempDir,
    pub instance: Ulid,
    image: &'static str,
}

impl House {
    /// # Panics
    /// When machines cannot be made here: these tests prove nothing then.
    pub fn new() -> Self {
        Self::on("tiny")
    }

    /// Over the image of that name: `tiny`, or `host` for this host's own packages.
    ///
    /// # Panics
    /// As `new`.
    pub fn on(image: &'static str) -> Self {
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a data directory");
        let instance = Ulid::from(ringleader::clock::entropy());
        let sandbox = Arc::new(open(data.path(), instance, image));
        Self { sweeper: Sweeper(Some(Arc::clone(&sandbox))), sandbox, data, instance, image }
    }

    /// Another daemon's life on the same data, as after a restart.
    pub fn reopened(mut self) -> Self {
        self.sweeper.0 = None;
        let sandbox = Arc::new(open(self.data.path(), self.instance, self.image));
        Self { sweeper: Sweeper(Some(Arc::clone(&sandbox))), sandbox, ..self }
    }

    pub fn directory(&self, id: Ulid) -> PathBuf {
        self.data.path().join("machines").join(id.to_string())
    }

    /// The host's pid of the machine's first process.
    pub fn init_pid(&self, id: Ulid) -> i32 {
        let boot = fs::read(self.directory(id).join("boot.json")).expect("a boot record");
        let boot: serde_json::Value = serde_json::from_slice(&boot).expect("JSON");
        boot["init"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid")
    }

    pub fn first_id(&self, id: Ulid) -> u32 {
        let record = fs::read(self.directory(id).join("machine.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        record["first_id"].as_u64().and_then(|id| u32::try_from(id).ok()).expect("an id")
    }

    /// Runs a shell command as root of the machine.
    pub fn inside(&self, id: Ulid, command: &str) -> Output {
        let pid = self.init_pid(id).to_string();
        Command::new("nsenter")
            .args(["--target", &pid, "--user", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"])
            .args(["--root", "--wd=/", "/bin/sh", "-c", command])
            .output()
            .expect("nsenter (util-linux) is installed")
    }

    /// What a command that must succeed printed.
    pub fn said(&self, id: Ulid, command: &str) -> String {
        let output = self.inside(id, command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub async fn is_running(&self, id: Ulid) -> bool {
        matches!(self.sandbox.inspect(id).await.expect("an answer"), Inspection::Running { .. })
    }
}

/// Deletes the machines of a test that failed, before their directory goes.
struct Sweeper(Option<Arc<Sandbox>>);

impl Drop for Sweeper {
    fn drop(&mut self) {
        let Some(sandbox) = self.0.take() else { return };
        // A thread of its own: the test's runtime cannot wait here.
        let sweep = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                for id in sandbox.list().await.unwrap_or_default() {
                    // The test has failed already; this is to leave nothing running.
                    drop(sandbox.delete(id).await);
                }
            });
            std::io::Result::Ok(())
        });
        drop(sweep.join());
    }
}

fn open(data: &Path, instance: Ulid, image: &str) -> Sandbox {
    assert!(rustix::process::geteuid().is_root(), "the sandbox tests make real machines: run them as root");
    let launcher = launcher::spawn_program(Path::new(env!("CARGO_BIN_EXE_rl"))).expect("a launcher");
    let mut options = SandboxOptions::new(instance, data.to_owned());
    options.images_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandbox-images");
    options.images.insert("tiny".into(), tiny_root().to_owned());
    options.default_image = image.into();
    options.stop_grace = Duration::from_secs(2);
    let sandbox = Sandbox::new(options, launcher).expect("the provider opens");
    assert_eq!(sandbox.availability(), Availability::Available);
    sandbox
}

pub fn spec(name: &str) -> MachineSpec {
    MachineSpec {
        provider: "sandbox".into(),
        name: name.into(),
        namespace: "local".into(),
        sudo: true,
        ..MachineSpec::default()
    }
}

/// A machine id that nobody else has.
pub fn fresh_id() -> Ulid {
    Ulid::from(ringleader::clock::entropy())
}

/// Waits until `holds`, at most ten seconds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within ten seconds: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A root file system with a shell and a few programs, made of this host's.
fn tiny_root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandbox-tiny");
        if root.join("complete").exists() {
            return root;
        }
        let unfinished = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory").keep();
        for directory in ["etc", "usr/bin", "usr/lib", "usr/lib64", "home", "root", "tmp", "var"] {
            fs::create_dir_all(unfinished.join(directory)).expect("made");
        }
        for directory in ["bin", "lib", "lib64"] {
            symlink(format!("usr/{directory}"), unfinished.join(directory)).expect("linked");
        }
        for program in [
            "sh", "cat", "id", "ls", "hostname", "stat", "sleep", "setsid", "test", "kill", "mkdir", "mount",
            "ps", "readlink",
        ] {
            bring(&unfinished, &which(program));
        }
        fs::write(unfinished.join("etc/os-release"), "ID=tiny\nVERSION_ID=1\n").expect("written");
        fs::write(unfinished.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").expect("written");
        fs::write(unfinished.join("etc/group"), "root:x:0:\ntty:x:5:\n").expect("written");
        fs::write(unfinished.join("complete"), "").expect("written");
        // Tests run in several processes at once: the first rename wins.
        if fs::rename(&unfinished, &root).is_err() {
            fs::remove_dir_all(&unfinished).expect("removed");
        }
        root
    })
}

fn which(program: &str) -> PathBuf {
    let found = ["/usr/bin", "/bin", "/usr/sbin"].iter().map(|place| Path::new(place).join(program));
    let found = found.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{program} is not installed"))
}

/// Copies a program and the libraries it is linked with.
fn bring(root: &Path, program: &Path) {
    let name = program.file_name().expect("a file");
    fs::copy(program, root.join("usr/bin").join(name)).expect("copied");
    let linked = Command::new("ldd").arg(program).output().expect("ldd is installed");
    for word in
        String::from_utf8_lossy(&linked.stdout).split_whitespace().filter(|word| word.starts_with('/'))
    {
        let library = Path::new(word);
        let relative = library.strip_prefix("/").expect("absolute");
        let place = root.join("usr").join(relative.strip_prefix("usr").unwrap_or(relative));
        fs::create_dir_all(place.parent().expect("a directory")).expect("made");
        fs::copy(library, place).expect("copied");
    }
}
