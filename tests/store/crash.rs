//! kill -9 under load: what was acknowledged is there, and nothing else is believed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::*;

const ROUNDS: usize = 20;
const WRITERS: u128 = 8;
const DIRECTORY: &str = "RL_TEST_STORE_DIRECTORY";
const OPENING: &str = "opening";
const ROUND: &str = "RL_TEST_STORE_ROUND";

/// What is known of one user: the last acknowledged state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// At least this revision is on disk.
    Revision(u64),
    Removed,
}

#[test]
fn every_acknowledged_write_survives_kill_9() {
    if let (Ok(dir), Ok(round)) = (std::env::var(DIRECTORY), std::env::var(ROUND)) {
        write_until_killed(Path::new(&dir), round.parse().expect("a number"));
    }
    let (_parent, dir) = fresh();
    let seed = ringleader::clock::entropy();
    let mut known = BTreeMap::new();
    let mut newest = 0;
    for round in 0..ROUNDS {
        // Every fourth kill hits the opening itself.
        let kill_after = usize::try_from((seed >> (round * 6)) % 64).expect("small") * (round % 4) * 4;
        newest = newest.max(run_and_kill(&dir, round, kill_after, &mut known));
        let opened = open(&dir);
        for (uid, known) in &known {
            check(&opened, *uid, *known).unwrap_or_else(|lost| panic!("round {round}, seed {seed}: {lost}"));
        }
        assert!(
            opened.view.version() >= newest,
            "round {round}, seed {seed}: a version could be given again"
        );
    }
    assert!(known.len() > 100, "the children wrote too little to prove anything: {}", known.len());
}

#[test]
fn a_kill_while_a_new_store_is_made_leaves_one_that_opens() {
    // The directory, its lock, and what sled makes: a folder, blobs, conf, db.
    for files in 1..=6 {
        let (_parent, dir) = fresh();
        let mut child = spawn(&dir, 0, Stdio::null());
        while count_files(&dir) < files {
            assert_eq!(child.try_wait().expect("it can be asked"), None, "the child ended by itself");
            thread::yield_now();
        }
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        let opened = open(&dir);
        opened.load(OwnerId::Catalog).0.write(vec![put(1, "ada", "")]);
    }
}

fn check(opened: &Opened, uid: u128, known: Known) -> Result<(), String> {
    let found = opened.view.by_uid(Ulid(uid));
    match (known, found) {
        // After revision 3 its removal may have been durable and not yet acknowledged.
        (Known::Removed | Known::Revision(3), None) => Ok(()),
        (Known::Removed, Some(_)) => Err(format!("user {uid} was removed and is back")),
        (Known::Revision(revision), None) => Err(format!("user {uid} was at {revision} and is lost")),
        (Known::Revision(revision), Some(found)) => {
            let text = found.value["spec"]["displayName"].as_str().unwrap_or_default();
            let there: u64 = text.parse().map_err(|_| format!("user {uid} has a torn state {text:?}"))?;
            let expected = revision..=revision + 1;
            expected
                .contains(&there)
                .then_some(())
                .ok_or(format!("user {uid}: {there} is none of {expected:?}"))
        }
    }
}

/// Starts a child, kills it when it opens and has acknowledged so many writes, and learns what it had acknowledged.
fn run_and_kill(dir: &Path, round: usize, kill_after: usize, known: &mut BTreeMap<u128, Known>) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("this test has a program"))
        .args([
            "--exact",
            "crash::every_acknowledged_write_survives_kill_9",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test's program starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let (mut heard, mut newest) = (0, 0);
    for line in output.lines() {
        let line = line.expect("text");
        if let Some((uid, state, version)) = acknowledgement(&line) {
            known.insert(uid, state);
            newest = newest.max(version);
            heard += 1;
        } else if line != OPENING {
            continue;
        }
        if heard == kill_after {
            child.kill().expect("it runs");
        }
    }
    let status = child.wait().expect("it ended");
    assert_eq!(status.code(), None, "round {round}: it ended by itself: {status}");
    newest
}

/// This test's own program, in the role of the child.
fn spawn(dir: &Path, round: usize, output: Stdio) -> Child {
    Command::new(std::env::current_exe().expect("this test has a program"))
        .args([
            "--exact",
            "crash::every_acknowledged_write_survives_kill_9",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .expect("this test's program starts")
}

/// All files and directories below `dir`, itself included.
fn count_files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return usize::from(dir.exists()) };
    1 + entries.flatten().map(|entry| count_files(&entry.path())).sum::<usize>()
}

fn acknowledgement(line: &str) -> Option<(u128, Known, u64)> {
    let mut words = line.strip_prefix("acknowledged ")?.strip_suffix(" .")?.split(' ');
    let uid = words.next()?.parse().ok()?;
    let state = match words.next()? {
        "removed" => Known::Removed,
        revision => Known::Revision(revision.parse().ok()?),
    };
    Some((uid, state, words.next()?.parse().ok()?))
}

/// The child: each writer creates users, changes each three times, and removes every other one.
fn write_until_killed(dir: &Path, round: u128) -> ! {
    // The test harness leaves its own line unfinished.
    println!("\n{OPENING}");
    let opened = open(dir);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let opened = &opened;
            scope.spawn(move || {
                let (author, _) = opened.load(OwnerId::Pool(Ulid(writer)));
                for number in 0_u128.. {
                    let uid = (round * WRITERS + writer) * 1_000_000 + number;
                    let name = format!("user-{uid}");
                    for revision in 1..=3_u64 {
                        let said = revision.to_string();
                        let versions = author.write(vec![put(uid, &name, &said)]);
                        acknowledge(uid, &said, versions);
                    }
                    if number % 2 == 0 {
                        let versions = author.write(vec![remove(uid)]);
                        acknowledge(uid, "removed", versions);
                    }
                }
            });
        }
    });
    unreachable!("the writers go on until they are killed")
}

fn acknowledge(uid: u128, state: &str, versions: Versions) {
    let line = format!("acknowledged {uid} {state} {} .\n", versions.last());
    std::io::stdout().write_all(line.as_bytes()).expect("the parent reads");
}
