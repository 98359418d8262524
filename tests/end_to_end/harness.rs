//! One daemon of the test's own, and everything that is typed at it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything may take before a test gives up on it. Generous: the machine is shared.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// A daemon on a directory of its own, ended with its machines when the test is over.
pub struct Daemon {
    dir: TempDir,
    process: Option<Child>,
}

impl Daemon {
    /// Starts one and waits until it answers.
    pub fn start() -> Self {
        // One host image for all tests: making it takes seconds.
        let images = Path::new(env!("CARGO_TARGET_TMPDIR")).join("images");
        let mut daemon = Self::prepare();
        daemon.settle(&format!("[images]\ndirectory = {:?}\n", images.display().to_string()));
        daemon.run();
        daemon
    }

    /// A directory for a daemon, which does not run yet.
    pub fn prepare() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "the end-to-end tests make real machines and need root: run them with scripts/test"
        );
        // The socket's path must fit into 108 bytes, so it stays near the root.
        let dir = tempfile::Builder::new().prefix("rl-e2e-").tempdir_in("/tmp").expect("a directory");
        fs::create_dir(dir.path().join("home")).expect("a home");
        let daemon = Self { dir, process: None };
        daemon.settle("");
        daemon
    }

    /// Writes `daemon.toml`: what the next start or SIGHUP reads.
    pub fn settle(&self, settings: &str) {
        fs::write(self.dir.path().join("daemon.toml"), settings).expect("settings");
    }

    /// A daemon with the pool of `config/examples/pool.yaml` whose warm floors are filled.
    pub fn with_pool() -> Self {
        let daemon = Self::start();
        daemon.ok(&["apply", "-f", &example_pool()]);
        daemon.ok(&["wait", "workstationpool", "agents-linux", "--timeout", "90s"]);
        daemon
    }

    /// Starts the process (again) and waits until it answers.
    pub fn run(&mut self) {
        self.run_with(&[]);
    }

    /// The same with these variables in its environment.
    pub fn run_with(&mut self, variables: &[(&str, &str)]) {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let child = Command::new(rl())
            .args(["daemon", "run", "--config"])
            .arg(self.dir.path().join("daemon.toml"))
            .arg("--data-dir")
            .arg(self.data())
            .arg("--socket")
            .arg(self.socket())
            .env("HOME", self.home())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("rl daemon run starts");
        self.process = Some(child);
        self.until("the daemon answers", || self.rl(&["status"]).status.success());
    }

    /// SIGKILL, in the middle of whatever it does.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("killed");
        process.wait().expect("reaped");
    }

    /// SIGHUP: it reads its settings again.
    pub fn reload(&self) {
        let pid = rustix::process::Pid::from_child(self.process.as_ref().expect("it runs"));
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("told to reload");
    }

    /// SIGTERM, and the exit code.
    pub fn stop(&mut self) -> i32 {
        let mut process = self.process.take().expect("it runs");
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told to stop");
        process.wait().expect("it ends").code().expect("it was not killed")
    }

    /// `rl` with these words.
    pub fn rl(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("rl runs")
    }

    /// `rl` with these words, not started yet.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(rl());
        command
            .args(words)
            .env("HOME", self.home())
            .env("RL_SERVER", format!("unix://{}", self.socket().display()))
            .env_remove("RL_NAMESPACE")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// What `rl` with these words prints; it must succeed.
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.rl(words);
        assert!(
            output.status.success(),
            "rl {} failed ({}): {}{}\nthe daemon's log ends:\n{}",
            words.join(" "),
            output.status,
            text(&output.stdout),
            text(&output.stderr),
            self.log_tail()
        );
        text(&output.stdout)
    }

    /// What a failing `rl` says: its exit code and its stderr.
    pub fn fails(&self, words: &[&str]) -> (i32, String) {
        let output = self.rl(words);
        assert!(!output.status.success(), "rl {} succeeded: {}", words.join(" "), text(&output.stdout));
        (output.status.code().expect("it ended by itself"), text(&output.stderr))
    }

    /// A lease that is Ready, and its member.
    pub fn lease(&self, name: &str) -> String {
        let line = self.ok(&[
            "workstationpool",
            "lease",
            "agents-linux",
            "--name",
            name,
            "--wait",
            "--timeout",
            "90s",
        ]);
        let start = format!("workstationpoollease/{name} Ready on ");
        line.trim().strip_prefix(&start).unwrap_or_else(|| panic!("an unexpected line: {line}")).to_owned()
    }

    /// One value of an object, by kubectl's JSONPath.
    pub fn value(&self, kind: &str, name: &str, path: &str) -> String {
        self.ok(&["get", kind, name, "-o", &format!("jsonpath={path}")])
    }

    /// Names of all objects of a kind.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let output = self.ok(&["get", kind, "-o", "name"]);
        output.lines().filter_map(|line| line.split_once('/')).map(|(_, name)| name.to_owned()).collect()
    }

    /// An OpenSSH configuration for every member.
    pub fn ssh_config(&self) -> PathBuf {
        let path = self.dir.path().join("ssh_config");
        fs::write(&path, self.ok(&["ssh-config"])).expect("written");
        path
    }

    /// The stock OpenSSH client, with nothing but what `rl ssh-config` printed.
    pub fn ssh(&self, config: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(config).args(["-o", "BatchMode=yes"]).args(words);
        command.env("HOME", self.home()).stdin(Stdio::null());
        command
    }

    /// Waits for a condition, or fails with the daemon's last words.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "waited in vain until {what}; the daemon's log ends:\n{}",
                self.log_tail()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("rl.sock")
    }

    /// Deletes every pool and waits until every machine is gone.
    pub fn clear(&self) {
        for pool in self.names("workstationpool") {
            self.ok(&["delete", "workstationpool", &pool, "-y"]);
        }
        for lease in self.names("workstationpoollease") {
            self.rl(&["workstationpoollease", "release", &lease]);
        }
        for workstation in self.names("workstation") {
            self.rl(&["delete", "workstation", &workstation, "-y"]);
        }
        self.until("every machine is gone", || self.names("workstation").is_empty());
    }

    /// Whether the log has this text.
    pub fn has_logged(&self, text: &str) -> bool {
        fs::read_to_string(self.log_path()).unwrap_or_default().contains(text)
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Lines of the log at this level.
    pub fn logged(&self, level: &str) -> Vec<String> {
        let log = fs::read_to_string(self.log_path()).unwrap_or_default();
        log.lines().filter(|line| line.contains(&format!(" {level} "))).map(str::to_owned).collect()
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("daemon.log")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.process.is_none() && !std::thread::panicking() {
            return;
        }
        if self.process.is_some() {
            // Best effort: a test that failed must not leave its machines to the others.
            for pool in text(&self.rl(&["get", "workstationpool", "-o", "name"]).stdout).lines() {
                self.rl(&["delete", pool, "-y"]);
            }
            for lease in text(&self.rl(&["get", "workstationpoollease", "-o", "name"]).stdout).lines() {
                self.rl(&["delete", lease, "-y"]);
            }
            for station in text(&self.rl(&["get", "workstation", "-o", "name"]).stdout).lines() {
                self.rl(&["delete", station, "-y"]);
            }
            let deadline = Instant::now() + Duration::from_secs(20);
            while Instant::now() < deadline
                && !self.rl(&["get", "workstation", "-o", "name"]).stdout.is_empty()
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("the daemon's log ends:\n{}", self.log_tail());
        }
    }
}

/// The program under test.
pub fn rl() -> &'static str {
    env!("CARGO_BIN_EXE_rl")
}

/// The pool of the README.
pub fn example_pool() -> String {
    format!("{}/config/examples/pool.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
