//! `/etc` of the host image: made, not taken.
//!
//! Package defaults come in where they are still as the package brought them (dpkg knows their
//! checksums), so nothing that an administrator wrote does. What no package owns but every system
//! needs (accounts, PAM's common files, certificates, alternatives) is generated, or taken where it
//! holds nothing but what packages made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use md5::{Digest as _, Md5};

use super::tree::Tree;
use super::{alternatives, apt, defaults};

/// Above this, ids are people's.
const SYSTEM_ID_MAX: u32 = 999;
/// `nobody` and `nogroup`.
const NOBODY_ID: u32 = 65_534;

/// Fills `/etc` of `tree`.
pub fn take(host: &Path, tree: &mut Tree) -> io::Result<()> {
    tree.make("/etc", 0o755)?;
    package_defaults(host, tree)?;
    alternatives::take(host, tree)?;
    certificates(host, tree)?;
    accounts(host, tree)?;
    apt::take(host, tree)?;
    base(host, tree)?;
    pam(tree)?;
    defaults::fill_in(tree)
}

/// Files of packages that are still as the packages brought them.
fn package_defaults(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let status = fs::read(host.join("var/lib/dpkg/status"))?;
    for line in String::from_utf8_lossy(&status).lines() {
        // Within `Conffiles:`, one ` /etc/name checksum [obsolete]` a line.
        let Some((path, rest)) = line.strip_prefix(" /etc/").and_then(|line| line.split_once(' ')) else {
            continue;
        };
        let checksum = rest.split(' ').next().unwrap_or_default();
        let source = host.join("etc").join(path);
        let Ok(found) = source.symlink_metadata() else { continue };
        // Only root may read it: what is in it is nobody's business inside.
        if !found.is_file() || found.mode() & 0o004 == 0 || path.contains("..") {
            continue;
        }
        if hex(&Md5::digest(fs::read(&source)?)) == checksum {
            tree.copy_public(&source, &Path::new("/etc").join(path))?;
        }
    }
    Ok(())
}

/// Certificates of authorities are public; private keys (`/etc/ssl/private`) are not looked at.
fn certificates(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let folder = Path::new("/etc/ssl/certs");
    tree.make("/etc/ssl/certs", 0o755)?;
    let mut links = Vec::new();
    for entry in fs::read_dir(host.join("etc/ssl/certs")).into_iter().flatten() {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            let link = folder.join(entry.file_name());
            tree.take(&entry.path(), &link)?;
            links.push(link);
        }
    }
    // A name by hash is a link to a name by words, which is a link to the certificate: where that is
    // not taken (an administrator's in /usr/local, say), neither is.
    for link in links {
        tree.remove_if_dangling(&link)?;
    }
    // The last is the list that update-ca-certificates makes the bundle of.
    for path in
        ["etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/java/cacerts", "etc/ca-certificates.conf"]
    {
        tree.copy_public(&host.join(path), &Path::new("/").join(path))?;
    }
    Ok(())
}

/// The system's accounts, locked, and nobody else's.
fn accounts(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let of_system = |id: &str| id.parse::<u32>().is_ok_and(|id| id <= SYSTEM_ID_MAX || id == NOBODY_ID);
    let (mut passwd, mut shadow) = (String::new(), String::new());
    let mut names = BTreeSet::new();
    for line in fs::read_to_string(host.join("etc/passwd"))?.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, comment, home, shell] = fields[..] else { continue };
        if of_system(uid) {
            // One that did not come in would shut the account, root's too.
            let shell = match (shell.is_empty() || tree.leads_somewhere(Path::new(shell)), uid) {
                (true, _) => shell,
                (false, "0") => "/bin/sh",
                (false, _) => "/usr/sbin/nologin",
            };
            let _ = writeln!(passwd, "{name}:x:{uid}:{gid}:{comment}:{home}:{shell}");
            names.insert(name.to_owned());
            let _ = writeln!(shadow, "{name}:*:19000:0:99999:7:::");
        }
    }
    let (mut group, mut gshadow) = (String::new(), String::new());
    let mut shadow_gid = 0;
    for line in fs::read_to_string(host.join("etc/group"))?.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, members] = fields[..] else { continue };
        // Our own group lets people speak to the host's daemon; it means nothing inside.
        if of_system(gid) && name != "ringleader" {
            let members: Vec<&str> = members.split(',').filter(|member| names.contains(*member)).collect();
            let members = members.join(",");
            let _ = writeln!(group, "{name}:x:{gid}:{members}");
            let _ = writeln!(gshadow, "{name}:*::{members}");
        }
        if name == "shadow" {
            shadow_gid = gid.parse().unwrap_or(0);
        }
    }
    tree.write("/etc/passwd", 0o644, &passwd)?;
    tree.write("/etc/group", 0o644, &group)?;
    for (path, text) in [("/etc/shadow", &shadow), ("/etc/gshadow", &gshadow)] {
        tree.write(path, 0o640, text)?;
        chown(tree.at(Path::new(path)), Some(0), Some(shadow_gid))?;
    }
    tree.write("/etc/subuid", 0o644, "")?;
    tree.write("/etc/subgid", 0o644, "")
}

/// What every system needs and no package owns.
fn base(host: &Path, tree: &mut Tree) -> io::Result<()> {
    tree.link("/etc/os-release", "../usr/lib/os-release")?;
    tree.link("/etc/mtab", "../proc/self/mounts")?;
    tree.write("/etc/hostname", 0o644, "localhost\n")?;
    tree.write("/etc/hosts", 0o644, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")?;
    tree.write("/etc/fstab", 0o644, "")?;
    tree.write("/etc/environment", 0o644, "")?;
    tree.write(
        "/etc/nsswitch.conf",
        0o644,
        "passwd: files\ngroup: files\nshadow: files\ngshadow: files\n\nhosts: files dns\nnetworks: files\n\n\
         protocols: db files\nservices: db files\nethers: db files\nrpc: db files\n",
    )?;
    let shells =
        ["/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/dash", "/bin/zsh", "/usr/bin/zsh", "/usr/bin/fish"];
    let there = shells.iter().filter(|shell| tree.leads_somewhere(Path::new(shell)));
    let there: String = there.map(|shell| format!("{shell}\n")).collect();
    tree.write("/etc/shells", 0o644, &there)?;
    if host.join("usr/bin/sudo").is_file() {
        tree.write(
            "/etc/sudoers",
            0o440,
            "Defaults env_reset\nDefaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n\
             Defaults !fqdn\nroot ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n",
        )?;
        tree.make("/etc/sudoers.d", 0o750)?;
    }
    for (default, path) in
        [("profile", "/etc/profile"), ("dot.bashrc", "/root/.bashrc"), ("dot.profile", "/root/.profile")]
    {
        let source = host.join("usr/share/base-files").join(default);
        if source.is_file() && !tree.has(Path::new(path)) {
            tree.copy(&source, Path::new(path))?;
        }
    }
    for path in ["etc/ld.so.cache", "etc/timezone"] {
        tree.copy_public(&host.join(path), &Path::new("/").join(path))?;
    }
    let zone = host.join("etc/localtime");
    if zone.is_symlink() {
        tree.take(&zone, Path::new("/etc/localtime"))?;
        tree.remove_if_dangling(Path::new("/etc/localtime"))
    } else {
        tree.copy_public(&zone, Path::new("/etc/localtime"))
    }
}

/// PAM's common files, as `pam-auth-update` makes them on a system with local accounts alone.
fn pam(tree: &mut Tree) -> io::Result<()> {
    if !tree.has(Path::new("/etc/pam.d")) {
        return Ok(());
    }
    for (name, lines) in [
        (
            "account",
            "account [success=1 new_authtok_reqd=done default=ignore] pam_unix.so\naccount requisite pam_deny.so\naccount required pam_permit.so\n",
        ),
        (
            "auth",
            "auth [success=1 default=ignore] pam_unix.so\nauth requisite pam_deny.so\nauth required pam_permit.so\n",
        ),
        (
            "password",
            "password [success=1 default=ignore] pam_unix.so obscure yescrypt\npassword requisite pam_deny.so\npassword required pam_permit.so\n",
        ),
        (
            "session",
            "session [default=1] pam_permit.so\nsession requisite pam_deny.so\nsession required pam_permit.so\nsession required pam_unix.so\n",
        ),
        (
            "session-noninteractive",
            "session [default=1] pam_permit.so\nsession requisite pam_deny.so\nsession required pam_permit.so\nsession required pam_unix.so\n",
        ),
    ] {
        tree.write(&format!("/etc/pam.d/common-{name}"), 0o644, lines)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
