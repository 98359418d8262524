//! The files that make a machine this machine: its name, its id, its resolver, its time zone.
//!
//! They are written once, into the disk that nobody has used yet. Afterwards the disk is the
//! member's, and the host never writes a path below it again.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use ulid::Ulid;

use super::launcher::Network;

/// Writes `upper/etc/…` for a machine whose uid 0 is the host's `owner`.
///
/// # Errors
/// When the disk cannot be written.
pub fn write(upper: &Path, owner: u32, id: Ulid, hostname: &str, network: Network) -> io::Result<()> {
    let etc = upper.join("etc");
    fs::create_dir(&etc)?;
    fs::set_permissions(&etc, Permissions::from_mode(0o755))?;
    chown(&etc, Some(owner), Some(owner))?;
    let file = |name: &str, content: &str| {
        let path = etc.join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        chown(&path, Some(owner), Some(owner))
    };
    file("hostname", &format!("{hostname}\n"))?;
    file("hosts", &hosts(hostname))?;
    file("resolv.conf", &resolver(network))?;
    file("machine-id", &format!("{:032x}\n", u128::from(id)))?;
    if let Some(zone) = host_zone() {
        let link = etc.join("localtime");
        symlink(format!("{ZONES}{zone}"), &link)?;
        lchown(&link, Some(owner), Some(owner))?;
        file("timezone", &format!("{zone}\n"))?;
    }
    Ok(())
}

fn hosts(hostname: &str) -> String {
    format!(
        "127.0.0.1 localhost\n127.0.1.1 {hostname}\n::1 localhost ip6-localhost ip6-loopback\n\
         ff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
    )
}

fn resolver(network: Network) -> String {
    match network {
        Network::None => "# This machine has no network but loopback.\n".into(),
        Network::Host => fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
    }
}

const ZONES: &str = "/usr/share/zoneinfo/";

/// The host's time zone, where it is one of the named ones.
fn host_zone() -> Option<String> {
    let target = fs::canonicalize("/etc/localtime").ok()?;
    Some(target.to_str()?.strip_prefix(ZONES)?.to_owned())
}
