//! A daemon of the bench's own, and a client of it in this process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringleader::client::{Address, Client, Commit, ListOptions, Server, Target, Watch};
use ringleader::object::{Kind, Registry, registry};
use russh::ChannelMsg;
use russh::client;
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

const POOL: &str = "bench";
const NAMESPACE: &str = "local";

/// The daemon and what speaks to it.
pub struct House {
    client: Client,
    registry: Registry,
    key: Arc<PrivateKey>,
    daemon: Child,
    _dir: TempDir,
}

/// A watch that is read without thinking of its ends.
pub struct Events(Watch);

/// One event.
pub struct Event(Value);

impl House {
    /// Starts the daemon, registers a device, makes the pool, and waits until it is warm.
    pub async fn open() -> Self {
        let dir = tempfile::Builder::new().prefix("rl-bench-").tempdir_in("/tmp").expect("a directory");
        let images = scratch().join("images");
        let settings =
            format!("[images]\ndirectory = {:?}\n[log]\nlevel = \"warn\"\n", images.display().to_string());
        std::fs::write(dir.path().join("daemon.toml"), settings).expect("written");
        let socket = dir.path().join("rl.sock");
        let daemon = Command::new(env!("CARGO_BIN_EXE_rl"))
            .args(["daemon", "run", "--config"])
            .arg(dir.path().join("daemon.toml"))
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .arg("--socket")
            .arg(&socket)
            .stdin(Stdio::null())
            .spawn()
            .expect("the daemon starts");
        let client = Client::new(Address::Named(Server::Unix(socket)), Arc::new(|_| {}));
        while client.health().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let key = new_key();
        let house = Self { client, registry: registry(), key: Arc::new(key), daemon, _dir: dir };
        let public = house.key.public_key().to_openssh().expect("a public key");
        house.create("device", "bench", json!({"publicKey": public})).await;
        let size = json!({"template": {"spec": {}}, "size": {"max": 4}, "warm": {"running": 1}});
        house.create("workstationpool", POOL, size).await;
        house.floors_filled().await;
        house
    }

    /// Waits until a member is idle and no machine is being built or removed, so that nothing but
    /// the lease is at work.
    pub async fn floors_filled(&self) {
        loop {
            let pool = self.client.get(&self.target("workstationpool", POOL)).await.expect("the pool");
            let count = |name: &str| pool.pointer(&format!("/status/members/{name}")).and_then(Value::as_u64);
            if count("idleRunning") == Some(1) && count("building") == Some(0) && count("deleting") == Some(0)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn watch_leases(&self) -> Events {
        self.watch("workstationpoollease").await
    }

    pub async fn watch_workstations(&self) -> Events {
        self.watch("workstation").await
    }

    pub async fn lease(&self, name: &str) {
        let key = self.key.public_key().to_openssh().expect("a public key");
        let spec = json!({"workstationPoolRef": {"name": POOL}, "authorizedKeys": [key]});
        self.create("workstationpoollease", name, spec).await;
    }

    pub async fn release(&self, name: &str) {
        self.client.delete(&self.target("workstationpoollease", name)).await.expect("released");
    }

    pub async fn create_workstation(&self, name: &str, spec: &Value) {
        self.create("workstation", name, spec.clone()).await;
    }

    pub async fn delete_workstation(&self, name: &str) {
        let target = self.target("workstation", name);
        self.client.delete(&target).await.expect("deleted");
        while self.client.find(&target).await.expect("answered").is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs a command on a workstation over a new SSH connection, and returns what it writes.
    pub async fn exec(&self, name: &str, command: &str) -> String {
        let (stream, early) = self.client.ssh(&self.target("workstation", name)).await.expect("a door");
        let (reading, writing) = stream.into_split();
        let stream = tokio::io::join(std::io::Cursor::new(early).chain(reading), writing);
        let config = Arc::new(client::Config::default());
        let mut ssh = client::connect_stream(config, stream, AnyHost).await.expect("connected");
        let key = PrivateKeyWithHashAlg::new(Arc::clone(&self.key), None);
        assert!(ssh.authenticate_publickey("dev", key).await.expect("answered").success());
        let mut channel = ssh.channel_open_session().await.expect("opened");
        channel.exec(true, command).await.expect("asked");
        let mut output = Vec::new();
        while let Some(message) = channel.wait().await {
            if let ChannelMsg::Data { data } = message {
                output.extend_from_slice(&data);
            }
        }
        String::from_utf8(output).expect("text")
    }

    /// Removes everything and ends the daemon.
    pub async fn close(mut self) {
        let pool = self.target("workstationpool", POOL);
        self.client.delete(&pool).await.expect("deleted");
        while self.client.find(&pool).await.expect("answered").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.daemon.kill().expect("ended");
        self.daemon.wait().expect("reaped");
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let target = self.target(kind, name);
        let object = json!({
            "apiVersion": target.kind.api_version(),
            "kind": target.kind.kind,
            "metadata": {"name": name},
            "spec": spec,
        });
        self.client.create(&target, &object, Commit::Write).await.expect("created");
    }

    async fn watch(&self, kind: &str) -> Events {
        let all = Target::all(self.kind(kind), Some(NAMESPACE));
        let listed = self.client.list(&all, &ListOptions::default()).await.expect("listed");
        let watch = self.client.watch(&all, &ListOptions::default(), &listed.resource_version).await;
        Events(watch.expect("watched"))
    }

    fn target(&self, kind: &str, name: &str) -> Target {
        Target::new(self.kind(kind), NAMESPACE, name)
    }

    fn kind(&self, word: &str) -> &'static Kind {
        self.registry.by_word(word).expect("a kind")
    }
}

impl Events {
    pub async fn next(&mut self) -> Option<Event> {
        self.0.next().await.expect("the watch goes on").map(|event| Event(event.object))
    }
}

impl Event {
    /// Whether this is `name` in phase Ready.
    pub fn says_ready(&self, name: &str) -> bool {
        let text = |pointer| self.0.pointer(pointer).and_then(Value::as_str);
        text("/metadata/name") == Some(name) && text("/status/phase") == Some("Ready")
    }
}

struct AnyHost;

impl client::Handler for AnyHost {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        _: &russh::keys::PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

fn new_key() -> PrivateKey {
    let pair = ssh_key::private::Ed25519Keypair::from_seed(&[7; 32]);
    let text = ssh_key::PrivateKey::from(pair).to_openssh(ssh_key::LineEnding::LF).expect("a key");
    russh::keys::decode_secret_key(&text, None).expect("the same key")
}

/// A directory on the file system that is measured, kept between runs for the host image.
pub fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned()
}
