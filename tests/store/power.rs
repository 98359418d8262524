//! Honest about power cuts: a real process is traced, and the order of its system calls shows that
//! each commit's bytes were written and synced before anybody was told. What a disk does with a
//! sync is the disk's word.

use std::process::Stdio;
use std::thread;

use super::trace::{Trace, traced};
use super::*;

const WRITERS: u128 = 4;
const WRITES: u128 = 25;
const DIRECTORY: &str = "RL_TEST_STORE_TRACED";
const TEST: &str = "power::every_commit_is_written_and_synced_before_it_is_acknowledged";

// rule F5
// case 19 (garm#401, #635, #117)
#[test]
fn every_commit_is_written_and_synced_before_it_is_acknowledged() {
    if let Ok(dir) = std::env::var(DIRECTORY) {
        return write_and_tell(Path::new(&dir));
    }
    let (parent, dir) = fresh();
    let dir = dir.join("deeper");
    let file = parent.path().join("trace");
    let output = traced(&file, std::env::current_exe().expect("this test has a program"))
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, &dir)
        .stdout(Stdio::piped())
        .output()
        .expect("strace is there: scripts/setup installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "strace may not trace here, or the child failed: {said}");
    let trace = Trace::read(&file);
    let syncs = ["fsync", "fdatasync"];
    for (writer, write) in (0..WRITERS).flat_map(|writer| (0..WRITES).map(move |write| (writer, write))) {
        let text = marker(writer, write);
        let told = trace.synced_before_said(&text, "/sled/db>", &syncs, &acknowledgement(&text));
        told.unwrap_or_else(|lie| panic!("{lie}"));
    }
    let large = marker(WRITERS, 0);
    // What sled keeps beside its log, it does not sync: the whole file system is.
    let told = trace.synced_before_said(&large, "/sled/blobs/", &["syncfs"], &acknowledgement(&large));
    told.unwrap_or_else(|lie| panic!("{lie}"));
    // The names of the files, and those of the directories made for them, outlast a power cut too.
    let first = acknowledgement(&marker(WRITERS, 1));
    let parents = [parent.path(), dir.parent().expect("made for it"), &dir];
    for path in parents.into_iter().chain([&*dir.join("sled"), &dir.join("sled/conf")]) {
        trace.path_synced_before_said(path, &first).unwrap_or_else(|lie| panic!("{lie}"));
    }
}

fn write_and_tell(dir: &Path) {
    let opened = open(dir);
    let tell = |author: &Author, uid: u128, text: String, filling: usize| {
        let acknowledged = acknowledgement(&text);
        let effect: Effect = Box::new(move |_| {
            rustix::io::write(rustix::stdio::stdout(), acknowledged.as_bytes()).expect("the parent reads");
        });
        let write = put(uid, &format!("user-{uid}"), &format!("{text}{}", "x".repeat(filling)));
        author.submit(vec![], vec![write], vec![effect]).expect("nothing conflicts");
    };
    let (catalog, _) = opened.load(OwnerId::Catalog);
    tell(&catalog, 1, marker(WRITERS, 1), 0);
    opened.settle();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let opened = &opened;
            scope.spawn(move || {
                let (author, _) = opened.load(OwnerId::Pool(Ulid(writer)));
                for write in 0..WRITES {
                    tell(&author, (writer + 1) * 1000 + write, marker(writer, write), 0);
                    if write % 3 == 0 {
                        opened.settle();
                    }
                }
            });
        }
    });
    tell(&catalog, 2, marker(WRITERS, 0), 300_000);
    opened.settle();
}

fn marker(writer: u128, write: u128) -> String {
    format!("write-{write}-of-{writer}.")
}

fn acknowledgement(marker: &str) -> String {
    format!("acknowledged {marker}")
}
