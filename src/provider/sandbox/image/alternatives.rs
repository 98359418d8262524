//! The names that `update-alternatives` gives to programs: no package owns them.
//!
//! A name such as /usr/bin/awk is a link to /etc/alternatives/awk, which is a link to what the
//! name means on this host. Both come in where the end of the chain did, and neither otherwise:
//! what an administrator built below /usr/local, say, stays out, and so do its names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::tree::Tree;

/// Where the links to the programs are.
const CHOICES: &str = "/etc/alternatives";

/// Takes every alternative in whose program is in `tree`. To be called when the packages are.
pub fn take(host: &Path, tree: &mut Tree) -> io::Result<()> {
    tree.make(CHOICES, 0o755)?;
    let mut names = Vec::new();
    for database in fs::read_dir(host.join("var/lib/dpkg/alternatives")).into_iter().flatten() {
        let database = database?;
        let master = database.file_name().to_string_lossy().into_owned();
        names.extend(parse(&master, &String::from_utf8_lossy(&fs::read(database.path())?)));
    }
    for Name { choice, link } in &names {
        let on_host = |path: &Path| host.join(path.strip_prefix("/").unwrap_or(path));
        if fs::read_link(on_host(link)).is_ok_and(|target| target == *choice) {
            tree.take(&on_host(choice), choice)?;
            tree.take(&on_host(link), link)?;
        }
    }
    // Only now: one alternative may lead through another.
    for Name { choice, link } in &names {
        tree.remove_if_dangling(link)?;
        tree.remove_if_dangling(choice)?;
    }
    Ok(())
}

/// One link of an alternative, be it the main one or one that follows it, such as a manual page.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    /// In /etc/alternatives.
    choice: PathBuf,
    /// Where people call it.
    link: PathBuf,
}

/// The first lines of a file of /var/lib/dpkg/alternatives: the mode, the main link, then a name
/// and its link each, up to an empty line. What follows are the candidates.
fn parse(master: &str, text: &str) -> Vec<Name> {
    let name = |choice: &str, link: &str| Name { choice: Path::new(CHOICES).join(choice), link: link.into() };
    let mut lines = text.lines().skip(1);
    let Some(link) = lines.next() else { return Vec::new() };
    let mut names = vec![name(master, link)];
    while let (Some(follower), Some(link)) = (lines.next().filter(|line| !line.is_empty()), lines.next()) {
        names.push(name(follower, link));
    }
    names.retain(|name| is_plain(&name.choice) && is_plain(&name.link));
    names
}

fn is_plain(path: &Path) -> bool {
    path.has_root() && !path.components().any(|part| part == std::path::Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_main_link_and_its_followers_are_read_and_the_candidates_are_not() {
        let text = "auto\n/usr/bin/awk\nawk.1.gz\n/usr/share/man/man1/awk.1.gz\n\n/usr/bin/mawk\n5\n\n";
        let links: Vec<_> = parse("awk", text).into_iter().map(|name| name.link).collect();
        assert_eq!(links, [Path::new("/usr/bin/awk"), Path::new("/usr/share/man/man1/awk.1.gz")]);
    }

    #[test]
    fn a_name_comes_in_with_its_program_and_not_without() {
        let dir = tempfile::tempdir().expect("a directory");
        let host = dir.path().join("host");
        for folder in ["var/lib/dpkg/alternatives", "etc/alternatives", "usr/bin"] {
            fs::create_dir_all(host.join(folder)).expect("made");
        }
        for (name, program) in [("awk", "/usr/bin/mawk"), ("vi", "/usr/local/bin/myvi")] {
            let database = host.join("var/lib/dpkg/alternatives").join(name);
            fs::write(database, format!("auto\n/usr/bin/{name}\n\n{program}\n5\n")).expect("written");
            symlink(program, host.join("etc/alternatives").join(name)).expect("linked");
            symlink(format!("{CHOICES}/{name}"), host.join("usr/bin").join(name)).expect("linked");
        }
        fs::write(host.join("usr/bin/mawk"), "awk").expect("written");
        let mut tree = Tree::new(&dir.path().join("tree")).expect("a tree");
        tree.take(&host.join("usr/bin/mawk"), Path::new("/usr/bin/mawk")).expect("taken");
        take(&host, &mut tree).expect("taken");
        assert!(tree.leads_somewhere(Path::new("/usr/bin/awk")));
        assert!(!tree.has(Path::new("/usr/bin/vi")) && !tree.has(Path::new("/etc/alternatives/vi")));
    }
}
