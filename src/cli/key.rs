//! This device's SSH key: made on first use, and registered as a device of its person.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{HashAlg, LineEnding, PrivateKey, PublicKey};

use super::kinds;
use super::output::text_at;
use super::session::Session;
use super::settings::write_whole;
use crate::client::{Commit, Target};
use crate::clock;

/// A key pair of this device.
#[derive(Clone, Debug)]
pub struct DeviceKey {
    /// The file with the private half.
    pub file: PathBuf,
    /// The public half, as one line of OpenSSH.
    pub public: String,
    /// What it is registered as.
    pub device: String,
}

/// The key, made where there is none, and registered with the daemon.
pub async fn ensure(session: &Session) -> anyhow::Result<DeviceKey> {
    let key = find_or_make(&session.identity()?, &host_name())?;
    register(session, &key).await?;
    Ok(key)
}

/// Whom this device belongs to: the person that the daemon takes us for.
pub async fn owner(session: &Session) -> anyhow::Result<String> {
    let key = find_or_make(&session.identity()?, &host_name())?;
    match register(session, &key).await? {
        Some(device) => Ok(text_at(&device, "/spec/owner").to_owned()),
        None => bail!("the daemon lets you register no device, so that it is not known who you are"),
    }
}

/// The device as the daemon has it; nothing for those who may have none (service accounts).
async fn register(session: &Session, key: &DeviceKey) -> anyhow::Result<Option<Value>> {
    let target = device(session, &key.device);
    if let Some(known) = session.client.find(&target).await? {
        return Ok(Some(known));
    }
    let object = device_object(&target, &key.public);
    match session.client.create(&target, &object, Commit::Write).await {
        Ok(device) => Ok(Some(device)),
        // Another `rl` on this device was faster.
        Err(error) if error.is_already_exists() => Ok(session.client.find(&target).await?),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The address of a device.
pub fn device(session: &Session, name: &str) -> Target {
    session.target(kinds::known(&session.registry, "device"), name)
}

/// A device to be registered; the server fills in whose it is.
pub fn device_object(target: &Target, public_key: &str) -> Value {
    json!({
        "apiVersion": target.kind.api_version(),
        "kind": target.kind.kind,
        "metadata": {"name": target.name},
        "spec": {"publicKey": public_key},
    })
}

/// Reads the key at `file`, or makes it. Of two that make it at once, both get the one that won.
fn find_or_make(file: &Path, host: &str) -> anyhow::Result<DeviceKey> {
    if !file.exists() {
        make(file, host).with_context(|| format!("cannot make this device's key {}", file.display()))?;
    }
    let public = public_half(file)?;
    let parsed = PublicKey::from_openssh(&public).context("the device's key is not understood")?;
    Ok(DeviceKey { file: file.to_owned(), device: device_name(host, &parsed), public })
}

fn make(file: &Path, host: &str) -> anyhow::Result<()> {
    let mut seed = [0_u8; 32];
    seed[..16].copy_from_slice(&clock::entropy().to_be_bytes());
    seed[16..].copy_from_slice(&clock::entropy().to_be_bytes());
    let pair = KeypairData::from(Ed25519Keypair::from_seed(&seed));
    let key = PrivateKey::new(pair, format!("rl@{host}"))?;
    if let Some(dir) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let draft = file.with_extension(format!("draft-{}", std::process::id()));
    let mut writing = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    writing.set_permissions(Permissions::from_mode(0o600))?;
    writing.write_all(key.to_openssh(LineEnding::LF)?.as_bytes())?;
    writing.sync_all()?;
    // A link never replaces what another process has put there meanwhile.
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let public = PrivateKey::read_openssh_file(file)?.public_key().to_openssh()?;
    write_whole(&with_pub(file), &format!("{public}\n"))
}

/// The public line of a key file: of a public one itself, of a private one its other half. The
/// private half is never sent.
pub fn public_half(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read the key {}", file.display()))?;
    if !text.contains("PRIVATE KEY") {
        let line = text.trim();
        crate::object::public_key::check(line).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
        return Ok(line.to_owned());
    }
    if let Ok(key) = PrivateKey::from_openssh(&text) {
        return Ok(key.public_key().to_openssh()?);
    }
    // An older format of private keys: only ssh-keygen's other file tells the public half.
    let public = with_pub(file);
    match fs::read_to_string(&public) {
        Ok(line) => Ok(line.trim().to_owned()),
        Err(_) => bail!(
            "{} does not tell its public half: `ssh-keygen -y -f {0} > {}`",
            file.display(),
            public.display()
        ),
    }
}

fn with_pub(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// `HOST-FINGERPRINT`: the host for people, eight hex digits of the key so that it is unique.
fn device_name(host: &str, key: &PublicKey) -> String {
    let print = key.fingerprint(HashAlg::Sha256);
    let digits = print.as_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    let host: String = host
        .to_ascii_lowercase()
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .take(40)
        .collect();
    match host.trim_matches('-') {
        "" => format!("device-{digits}"),
        host => format!("{host}-{digits}"),
    }
}

fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("deep/device_ed25519");
        let first = find_or_make(&file, "Build.Box").expect("made");
        let again = find_or_make(&file, "Build.Box").expect("found");
        assert_eq!(first.public, again.public);
        assert!(first.public.starts_with("ssh-ed25519 ") && first.public.ends_with(" rl@Build.Box"));
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(public_half(&with_pub(&file)).expect("its line"), first.public);
        let names: Vec<_> = fs::read_dir(dir.path().join("deep")).expect("a directory").collect();
        assert_eq!(names.len(), 2, "no draft is left behind");
    }

    #[test]
    fn a_device_is_named_after_its_host_and_its_key() {
        let key = PublicKey::from_openssh(
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti",
        )
        .expect("a key");
        let name = device_name("Build_Box", &key);
        assert!(name.starts_with("build-box-") && name.len() == "build-box-".len() + 8);
        assert!(device_name("…", &key).starts_with("device-"));
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_cure() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("notes");
        fs::write(&file, "hello").expect("written");
        let error = public_half(&file).expect_err("no key").to_string();
        assert!(error.contains("not an OpenSSH public key"), "{error}");
    }
}
