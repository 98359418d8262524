//! The image of the very host that runs the tests, which must be root on Debian or Ubuntu.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::Instant;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use super::*;

/// One generation serves all that is asked of it: it takes seconds.
#[test]
fn the_host_image_is_a_whole_system_without_the_secrets_of_its_host() {
    assert!(rustix::process::geteuid().is_root(), "run this test as root");
    let dir = tempfile::tempdir().expect("a directory");
    let images = Images::open(ImageOptions {
        dir: dir.path().join("images"),
        named: BTreeMap::new(),
        default: HOST.into(),
        host_includes: Vec::new(),
    })
    .expect("opens");
    let start = Instant::now();
    let generation = images.generation(HOST).expect("taken");
    eprintln!("the host image took {:?}", start.elapsed());

    let root = &generation.root;
    let mut walk = Walk::default();
    walk.below(root, Path::new("/"));
    eprintln!("{} files of the host, {} links", walk.files, walk.links.len());
    assert!(walk.files > 1000, "a host has thousands of files");
    assert_eq!(walk.secrets, Vec::<PathBuf>::new(), "only root may read these on the host");
    assert_eq!(walk.odd, Vec::<PathBuf>::new(), "neither file, link nor directory");
    assert_eq!(
        walk.lost_links(root),
        Vec::<PathBuf>::new(),
        "these lead somewhere on the host and nowhere inside"
    );
    assert_accounts(root);
    assert_runs(root);
    assert_packages_are_whole(root);
}

/// Everything in the image, seen beside the host.
#[derive(Default)]
struct Walk {
    files: usize,
    links: Vec<PathBuf>,
    secrets: Vec<PathBuf>,
    odd: Vec<PathBuf>,
}

impl Walk {
    fn below(&mut self, root: &Path, path: &Path) {
        for entry in fs::read_dir(root.join(path.strip_prefix("/").expect("absolute"))).expect("a directory")
        {
            let entry = entry.expect("an entry");
            let (found, path) = (entry.metadata().expect("there"), path.join(entry.file_name()));
            if found.is_dir() {
                self.below(root, &path);
            } else if found.is_symlink() {
                self.links.push(path);
            } else if found.is_file() {
                self.file(&entry.path(), &path, &found);
            } else {
                self.odd.push(path);
            }
        }
    }

    /// A secret is what is the host's, byte for byte, and not for everybody there to read.
    fn file(&mut self, inside: &Path, path: &Path, found: &fs::Metadata) {
        self.files += 1;
        let Ok(host) = fs::metadata(path) else { return };
        let same_file = (host.dev(), host.ino()) == (found.dev(), found.ino());
        let closed = path
            .ancestors()
            .skip(1)
            .any(|above| fs::metadata(above).is_ok_and(|above| above.mode() & 1 == 0));
        if host.is_file()
            && (host.mode() & 0o004 == 0 || closed)
            && (same_file
                || (host.len() > 0 && fs::read(inside).expect("read") == fs::read(path).expect("read")))
        {
            self.secrets.push(path.to_owned());
        }
    }

    /// Links of /usr and /etc that end on the host at something that machines have too.
    fn lost_links(&self, root: &Path) -> Vec<PathBuf> {
        let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("the root");
        let inside = |path: &Path| {
            openat2(&root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT)
        };
        // What these lead to is the kernel's, or the machine's own, or made by hand on the host.
        let others = ["/proc", "/dev", "/sys", "/run", "/usr/local", "/var", "/opt", "/root", "/home"];
        let lost = self.links.iter().filter(|link| {
            inside(link).is_err()
                && fs::canonicalize(link).is_ok_and(|end| !others.iter().any(|other| end.starts_with(other)))
        });
        lost.cloned().collect()
    }
}

/// Nobody of the host's people, and no password.
fn assert_accounts(root: &Path) {
    let shadow = fs::read_to_string(root.join("etc/shadow")).expect("there");
    assert!(shadow.lines().all(|line| line.split(':').nth(1) == Some("*")), "an account is not locked");
    let passwd = fs::read_to_string(root.join("etc/passwd")).expect("there");
    for line in passwd.lines() {
        let uid: u32 = line.split(':').nth(2).and_then(|uid| uid.parse().ok()).expect("a uid");
        assert!(uid < 1000 || uid == 65_534, "{line}");
    }
    for absent in [
        "etc/machine-id",
        "var/lib/dbus/machine-id",
        "root/.ssh",
        "etc/ssh/ssh_host_ed25519_key",
        "etc/apt/auth.conf",
    ] {
        assert!(!root.join(absent).exists(), "{absent}");
    }
}

fn assert_runs(root: &Path) {
    let script = "id -u && /usr/bin/env awk 'BEGIN { print \"awk\" }' && getent passwd root >/dev/null && \
                  dpkg -l >/dev/null && dpkg --audit && if command -v sudo >/dev/null; then visudo -c >/dev/null; fi && \
                  su nobody -s /bin/sh -c 'id -un' && useradd -m person && su - person -c 'echo $HOME'";
    assert_eq!(inside(root, script), "0\nawk\nnobody\n/home/person\n");
}

/// dpkg inside misses no file that is on the host, but where the host's own is an administrator's.
fn assert_packages_are_whole(root: &Path) {
    let said = inside(root, "dpkg --verify | grep '^missing' | grep -v '^missing   c' || true");
    let paths: HashSet<&str> = said.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let lost: Vec<&&str> = paths
        .iter()
        .filter(|path| ["/usr", "/bin", "/sbin", "/lib", "/etc"].iter().any(|top| path.starts_with(top)))
        .filter(|path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0))
        // A package's link to what is not a package's stays out with what it leads to.
        .filter(|path| !(path.starts_with("/etc") && Path::new(path).is_symlink()))
        // Only in a closed directory is a file with such a mode no public one.
        .filter(|path| {
            Path::new(path)
                .ancestors()
                .skip(1)
                .all(|above| fs::metadata(above).is_ok_and(|above| above.mode() & 1 != 0))
        })
        .collect();
    assert!(lost.is_empty(), "on the host and not inside: {lost:?}");
}

fn inside(root: &Path, script: &str) -> String {
    let out =
        Command::new("chroot").arg(root).args(["/bin/bash", "-ec", script]).output().expect("chroot runs");
    assert!(
        out.status.success(),
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}
