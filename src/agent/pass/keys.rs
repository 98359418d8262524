//! Step `keys`: the managed keys, and their block in the login user's `~/.ssh/authorized_keys`.
//!
//! The managed keys stand in a file of root's, which lets in whatever the user did to its home:
//! who owns the member is not locked out by whom it is lent to.
//!
//! The block stands between two marker lines and is rewritten whole; every other line is the
//! user's and is kept. The file is read and written with the user's rights only, never through a
//! link, and replaced by rename. The SSH server reads both files at every login, the user's by the same
//! rules: a file or directory that others can write lets nobody in (and a pass puts its modes
//! right). A line with options is not obeyed in part: this version carries out none of them, so
//! its key lets nobody in, and the log says so.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use russh::keys::PublicKey;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Failure, as_user};
use crate::agent::accounts::Account;
use crate::agent::place::Place;

const BEGIN: &str = "# ringleader: begin of the managed keys. Put your own above or below.";
const END: &str = "# ringleader: end of the managed keys.";
const MANAGED: &str = "etc/ringleader/authorized_keys";
const FILE: &str = "authorized_keys";
const FILE_NEW: &str = ".authorized_keys.ringleader";
const FILE_BYTES_MAX: u64 = 256 << 10;
const KEYS_MAX: usize = 1024;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The keys that let somebody in.
#[derive(Debug, Default)]
pub(in crate::agent) struct Authorized {
    pub keys: Vec<PublicKey>,
    /// How many lines were left out because they carry options.
    pub with_options: usize,
}

pub(super) fn settle(place: &Place, account: &Account, keys: &[String]) -> Result<(), Failure> {
    let failed = |message: String| Failure { reason: "KeysFailed", message: format!("keys: {message}") };
    let block = block(keys).map_err(failed)?;
    // First, so that a home that cannot be written keeps no key that was taken away in force here.
    let managed =
        if block.is_empty() { place.remove(MANAGED) } else { place.settle(MANAGED, &block, 0o600, 0o755) };
    managed.map_err(|error| failed(error.to_string()))?;
    let (home, uid) = (place.path(&account.home), account.user.uid);
    as_user(account, move || write(&home, uid, &block)).map_err(|error| failed(error.to_string()))
}

/// Reads the keys of the last pass.
pub(in crate::agent) fn read_managed(place: &Place) -> io::Result<Authorized> {
    Ok(parse(place.read(MANAGED)?.unwrap_or_default().as_bytes()))
}

/// Reads the keys that the user's own file lets in as this account. No file: nobody.
pub(in crate::agent) async fn read(place: &Place, account: &Account) -> io::Result<Authorized> {
    let (home, uid) = (place.path(&account.home), account.user.uid);
    let reading = crate::sys::session::as_user(&account.user, move || {
        match open_directory(&home, uid).and_then(|ssh| read_file(&ssh, uid)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Authorized::default()),
            text => text.map(|text| parse(&text)),
        }
    })?;
    reading.await.unwrap_or_else(|_| Err(io::Error::other("the reading broke off")))
}

/// The managed block. Every key is parsed and written anew, so no line can carry options, a
/// second line or a marker.
fn block(keys: &[String]) -> Result<String, String> {
    if keys.is_empty() {
        return Ok(String::new());
    }
    let mut block = format!("{BEGIN}\n");
    for (number, line) in keys.iter().enumerate() {
        let key = PublicKey::from_openssh(line).ok().filter(|_| !line.contains(char::is_control));
        let key = key.and_then(|key| key.to_openssh().ok());
        let key = key.ok_or_else(|| format!("key {} is no public key", number + 1))?;
        block.extend([key.trim_end(), "\n"]);
    }
    block.extend([END, "\n"]);
    Ok(block)
}

/// The text with its managed block replaced, or with the block at its end. A block without its
/// end is taken to reach to the end of the file: what was granted in it must be sure to go.
fn merge(text: &[u8], block: &str) -> Vec<u8> {
    let mut merged = Vec::with_capacity(text.len() + block.len());
    let mut in_block = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let shown = line.trim_ascii_end();
        if shown == BEGIN.as_bytes() {
            in_block = true;
        } else if in_block {
            in_block = shown != END.as_bytes();
        } else {
            merged.extend_from_slice(line);
        }
    }
    if merged.last().is_some_and(|byte| *byte != b'\n') {
        merged.push(b'\n');
    }
    merged.extend_from_slice(block.as_bytes());
    merged
}

fn parse(text: &[u8]) -> Authorized {
    let mut authorized = Authorized::default();
    let text = String::from_utf8_lossy(text);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match PublicKey::from_openssh(line) {
            Ok(key) if authorized.keys.len() < KEYS_MAX => authorized.keys.push(key),
            Ok(_) => {}
            Err(_) => authorized.with_options += 1,
        }
    }
    authorized
}

fn write(home: &Path, uid: u32, block: &str) -> io::Result<()> {
    let home = open_home(home)?;
    match rustix::fs::mkdirat(&home, ".ssh", Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let ssh = open_below(&home, ".ssh", OFlags::DIRECTORY, uid, "~/.ssh")?;
    rustix::fs::fchmod(&ssh, Mode::RWXU)?;
    let text = match open_below(&ssh, FILE, OFlags::NONBLOCK, uid, "~/.ssh/authorized_keys") {
        Ok(file) => text_of(file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let merged = merge(&text, block);
    // A file that others can write lets nobody in: then it is replaced for its mode alone.
    if merged == text && (text.is_empty() || read_file(&ssh, uid).is_ok()) {
        return Ok(());
    }
    let _ = rustix::fs::unlinkat(&ssh, FILE_NEW, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(&ssh, FILE_NEW, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(&merged)?;
    Ok(rustix::fs::renameat(&ssh, FILE_NEW, &ssh, FILE)?)
}

/// The text of the file, if nobody else could have written it.
fn read_file(ssh: &OwnedFd, uid: u32) -> io::Result<Vec<u8>> {
    let file = open_below(ssh, FILE, OFlags::NONBLOCK, uid, "~/.ssh/authorized_keys")?;
    refuse_writable(&file, "~/.ssh/authorized_keys")?;
    text_of(file)
}

fn text_of(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::from(file).take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "~/.ssh/authorized_keys is longer than {FILE_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

/// `~/.ssh`, if nobody else could have put files there.
fn open_directory(home: &Path, uid: u32) -> io::Result<OwnedFd> {
    let home = open_home(home)?;
    refuse_writable(&home, "the home")?;
    let ssh = open_below(&home, ".ssh", OFlags::DIRECTORY, uid, "~/.ssh")?;
    refuse_writable(&ssh, "~/.ssh")?;
    Ok(ssh)
}

fn open_home(home: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, home, flags, Mode::empty())
        .map_err(|errno| io::Error::new(errno.kind(), format!("the home cannot be opened: {errno}")))
}

/// Opens an entry that must be the user's own, and a directory or a regular file: no link.
fn open_below(directory: impl AsFd, name: &str, flags: OFlags, uid: u32, shown: &str) -> io::Result<OwnedFd> {
    let all = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, all, Mode::empty())
        .map_err(|errno| io::Error::new(errno.kind(), format!("{shown} cannot be opened: {errno}")))?;
    let stat = rustix::fs::fstat(&opened)?;
    let wanted = if flags.contains(OFlags::DIRECTORY) { FileType::Directory } else { FileType::RegularFile };
    if FileType::from_raw_mode(stat.st_mode) != wanted || stat.st_uid != uid {
        return Err(io::Error::other(format!("{shown} is not a {} of the user's", kind(wanted))));
    }
    Ok(opened)
}

fn refuse_writable(opened: &OwnedFd, shown: &str) -> io::Result<()> {
    if rustix::fs::fstat(opened)?.st_mode & WRITABLE_BY_OTHERS != 0 {
        return Err(io::Error::other(format!("{shown} can be written by others")));
    }
    Ok(())
}

fn kind(file_type: FileType) -> &'static str {
    if file_type == FileType::Directory { "directory" } else { "regular file" }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn home() -> (tempfile::TempDir, u32) {
        let home = tempfile::tempdir().expect("a directory");
        let uid = std::fs::metadata(home.path()).expect("there").uid();
        (home, uid)
    }

    fn block_of(keys: &[&str]) -> String {
        block(&keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>()).expect("keys")
    }

    fn merged(text: &str, keys: &[&str]) -> String {
        let block = if keys.is_empty() { String::new() } else { block_of(keys) };
        String::from_utf8(merge(text.as_bytes(), &block)).expect("text")
    }

    #[test]
    fn the_block_is_replaced_and_whatever_else_stands_there_is_kept() {
        let mine = "# mine\nssh-rsa AAAA mine\n\n";
        let once = merged(mine, &[KEY]);
        assert_eq!(once, format!("{mine}{BEGIN}\n{KEY}\n{END}\n"));
        assert_eq!(merged(&once, &[KEY]), once);
        assert_eq!(merged(&format!("{once}last"), &[]), format!("{mine}last\n"));
        assert_eq!(merged(&once.replace('\n', "\r\n"), &[]), mine.replace('\n', "\r\n"));
        assert_eq!(merge(b"\xff\n", ""), b"\xff\n");
    }

    #[test]
    fn a_block_that_lost_its_end_still_goes_whole() {
        let damaged = format!("mine\n{BEGIN}\n{KEY}\nand more\n");
        assert_eq!(merged(&damaged, &[]), "mine\n");
    }

    #[test]
    fn a_key_cannot_bring_options_or_a_second_line_or_pass_for_a_marker() {
        for line in
            [format!("command=\"x\" {KEY}"), format!("{KEY} a\n{KEY}"), BEGIN.to_owned(), String::new()]
        {
            assert_eq!(block(&[KEY.to_owned(), line]).expect_err("refused"), "key 2 is no public key");
        }
        assert_eq!(
            block_of(&[&format!("{KEY} me@here")]).lines().nth(1),
            Some(format!("{KEY} me@here").as_str())
        );
    }

    #[test]
    fn lines_with_options_let_nobody_in_and_are_counted() {
        let authorized = parse(format!("# note\n{KEY} a\nfrom=\"10.0.0.0/8\" {KEY}\n").as_bytes());
        assert_eq!((authorized.keys.len(), authorized.with_options), (1, 1));
    }

    #[test]
    fn a_link_in_the_place_of_the_file_or_the_directory_is_not_followed() {
        let (home, uid) = home();
        let elsewhere = home.path().join("elsewhere");
        std::fs::write(&elsewhere, "precious").expect("written");
        write(home.path(), uid, &block_of(&[KEY])).expect("written");
        let file = home.path().join(".ssh/authorized_keys");
        std::fs::remove_file(&file).expect("removed");
        symlink(&elsewhere, &file).expect("linked");
        assert!(write(home.path(), uid, &block_of(&[])).is_err());
        let ssh = open_directory(home.path(), uid).expect("opened");
        assert!(read_file(&ssh, uid).is_err());
        assert_eq!(std::fs::read_to_string(&elsewhere).expect("read"), "precious");
        std::fs::remove_dir_all(home.path().join(".ssh")).expect("removed");
        symlink(home.path(), home.path().join(".ssh")).expect("linked");
        assert!(write(home.path(), uid, &block_of(&[KEY])).is_err());
    }

    #[test]
    fn a_file_that_others_can_write_lets_nobody_in_until_a_pass_puts_it_right() {
        let (home, uid) = home();
        write(home.path(), uid, &block_of(&[KEY])).expect("written");
        let path = home.path().join(".ssh/authorized_keys");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).expect("set");
        let ssh = open_directory(home.path(), uid).expect("opened");
        let refused = read_file(&ssh, uid).expect_err("refused");
        assert_eq!(refused.to_string(), "~/.ssh/authorized_keys can be written by others");
        write(home.path(), uid, &block_of(&[KEY])).expect("written");
        assert!(!read_file(&ssh, uid).expect("read").is_empty());
    }

    #[test]
    fn an_unchanged_file_is_not_written_again() {
        let (home, uid) = home();
        write(home.path(), uid, &block_of(&[KEY])).expect("written");
        let inode = || std::fs::metadata(home.path().join(".ssh/authorized_keys")).expect("there").ino();
        let before = inode();
        write(home.path(), uid, &block_of(&[KEY])).expect("kept");
        assert_eq!(inode(), before);
        write(home.path(), uid, "").expect("written");
        assert_ne!(inode(), before);
    }
}
