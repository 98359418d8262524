//! A member for tests: the real `rl agent` in a mount and pid namespace of its own, on an
//! overlay over this machine's root, reached through a TCP port that leads to its ssh socket.
//!
//! It needs root, as the machines of a pool do. When it is dropped nothing is left.

use std::fs;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ringleader::agent::link::{Applied, Link};
use ringleader::machine::Setup;

pub const SOON: Duration = Duration::from_secs(30);

/// Makes the root file system, then runs the agent again whenever it ends, as init does.
const BOOT: &str = r#"
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$1/root/tmp"
touch "$1/root/rl" && mount --bind "$2" "$1/root/rl"
while :; do chroot "$1/root" /rl agent --control-fd "$3" --ssh-fd "$4" || true; done
"#;

pub struct Member {
    pub directory: tempfile::TempDir,
    pub runtime: tokio::runtime::Runtime,
    pub link: Link,
    pub port: u16,
    boot: Child,
}

impl Member {
    /// Boots a member that `keys/id` may log in to, with this setup.
    pub fn boot(setup: &Setup) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests make mounts: run them as root");
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("disk")).expect("made");
        for key in ["id", "stranger"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path(key))
                .status();
            assert!(made.expect("ssh-keygen runs").success());
        }
        let [control, ssh] =
            ["control.sock", "ssh.sock"].map(|name| UnixListener::bind(path(name)).expect("bound"));
        for listener in [&control, &ssh] {
            rustix::io::fcntl_setfd(listener, rustix::io::FdFlags::empty()).expect("set");
        }
        let log = fs::File::create(path("log")).expect("made");
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", BOOT, "sh"]);
        unshare.arg(path("disk")).arg(env!("CARGO_BIN_EXE_rl"));
        unshare.arg(control.as_raw_fd().to_string()).arg(ssh.as_raw_fd().to_string());
        let boot =
            unshare.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("unshare runs");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let link = runtime.block_on(link(path("control.sock")));
        let known_hosts =
            link.agent().host_keys.iter().map(|key| format!("member {key}\n")).collect::<String>();
        fs::write(path("known_hosts"), known_hosts).expect("written");
        let port = forward(path("ssh.sock"));
        let member = Self { directory, runtime, link, port, boot };
        let applied = member.apply(1, &["id"], setup);
        assert_eq!((applied.keys, applied.setup), (Ok(()), Ok(())));
        member
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Lands the public keys of these key files, and a setup.
    pub fn apply(&self, revision: u64, keys: &[&str], setup: &Setup) -> Applied {
        let line = |key: &&str| {
            fs::read_to_string(self.path(&format!("{key}.pub"))).expect("read").trim().to_owned()
        };
        let keys: Vec<String> = keys.iter().map(line).collect();
        self.runtime.block_on(self.link.apply(revision, &keys, setup, SOON)).expect("applied")
    }

    /// A stock client, told nothing of this machine's own configuration.
    pub fn ssh(&self, options: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args([
            "-F",
            "/dev/null",
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "BatchMode=yes",
            "-o",
            "HostKeyAlias=member",
        ]);
        ssh.args(["-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR", "-p", &self.port.to_string()]);
        ssh.arg("-o").arg(format!("UserKnownHostsFile={}", self.path("known_hosts").display()));
        if !options.contains(&"-i") {
            ssh.arg("-i").arg(self.path("id"));
        }
        ssh.env_remove("SSH_AUTH_SOCK").args(options).stdin(Stdio::null());
        ssh
    }

    /// Runs a command and waits for it.
    pub fn run(&self, command: &str) -> Output {
        self.ssh(&["dev@127.0.0.1", command]).output().expect("ssh runs")
    }

    /// What a command printed; it must have succeeded.
    pub fn printed(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The agent's process id, as this machine sees it.
    pub fn agent_pid(&self) -> u32 {
        let child = |pid: u32| -> Option<u32> {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            children.split_whitespace().next()?.parse().ok()
        };
        until("the agent runs", || child(child(self.boot.id())?))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).expect("read")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the agent's log:\n{}", self.log());
        }
        self.boot.kill().and_then(|()| self.boot.wait()).expect("the member ends");
    }
}

/// Waits for a condition.
pub fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + SOON;
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(Instant::now() < give_up_at, "in time: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Opens a link to the agent behind a control socket.
pub async fn link(socket: PathBuf) -> Link {
    let stream = tokio::net::UnixStream::connect(socket).await.expect("connected");
    Link::open(stream, SOON).await.expect("a handshake")
}

/// A TCP port whose connections lead to the socket.
fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(agent)) = (client, UnixStream::connect(&socket)) else {
                return;
            };
            carry(client, agent);
        }
    });
    port
}

fn carry(client: TcpStream, agent: UnixStream) {
    let (mut client_in, mut agent_out) =
        (client.try_clone().expect("cloned"), agent.try_clone().expect("cloned"));
    let (mut client_out, mut agent_in) = (client, agent);
    thread::spawn(move || {
        let _ = io::copy(&mut client_in, &mut agent_out);
        let _ = agent_out.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut agent_in, &mut client_out);
        let _ = client_out.shutdown(Shutdown::Both);
    });
}
