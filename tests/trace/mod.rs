//! What a process asked of the kernel, and in which order: read from strace's output, and asked
//! whether something was said before it was on the disk.
//!
//! Used by the tests of the store and of the whole daemon. Without strace, or where tracing is not
//! allowed, they fail and say so: `scripts/setup` installs it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Longer than any write: what is written has to be found in the trace.
const BYTES_SHOWN: &str = "4194304";
const CALLS: &str =
    "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,syncfs,rename,renameat2";

/// `program` under strace, which writes to `trace`. Arguments follow.
pub fn traced(trace: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", BYTES_SHOWN, "-e", CALLS, "-o"]).arg(trace).arg("--").arg(program);
    command
}

/// A finished system call.
#[derive(Debug)]
struct Call {
    /// `write(1<pipe:[7]>, "text", 4`
    text: String,
    /// Where in the order of events it began and returned.
    began: usize,
    returned: usize,
    failed: bool,
}

/// A whole trace.
#[derive(Debug)]
pub struct Trace(Vec<Call>);

impl Trace {
    /// Reads what strace wrote.
    pub fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).expect("strace ran: it wrote a trace (scripts/setup installs it)");
        Self::of(&String::from_utf8_lossy(&bytes))
    }

    fn of(text: &str) -> Self {
        let mut under_way: Vec<(&str, &str, usize)> = Vec::new();
        let mut calls = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let Some((process, event)) = line.split_once(' ') else { continue };
            let event = event.trim_start();
            if let Some(begun) = event.strip_suffix(" <unfinished ...>") {
                under_way.push((process, begun, at));
            } else if event.starts_with("<... ") {
                let Some(begun) = under_way.iter().position(|(of, _, _)| *of == process) else { continue };
                let (_, begun, began) = under_way.swap_remove(begun);
                calls.push(Call { text: begun.into(), began, returned: at, failed: has_failed(event) });
            } else if event.contains('(') {
                calls.push(Call { text: event.into(), began: at, returned: at, failed: has_failed(event) });
            }
        }
        Self(calls)
    }

    /// That what contains `text` went into `file` (a part of its path), was then synced by one of
    /// `syncs`, which returned, and that only then began the call that contains `said`.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn synced_before_said(
        &self,
        text: &str,
        file: &str,
        syncs: &[&str],
        said: &str,
    ) -> Result<(), String> {
        let is_write = |call: &&Call| call.text.starts_with("pwrite") || call.text.starts_with("write");
        let written = self
            .0
            .iter()
            .filter(is_write)
            .find(|call| !call.failed && names_file(&call.text, file) && call.text.contains(text));
        let written = written.ok_or_else(|| format!("{text} was never written to {file}"))?;
        let told = self.began(said).ok_or_else(|| format!("{said} was never said"))?;
        let synced = self.0.iter().find(|call| {
            let is_sync = syncs.iter().any(|sync| call.text.starts_with(&format!("{sync}(")));
            // A whole file system is synced through whichever of its files.
            let covers = call.text.starts_with("syncfs(") || call.text.contains(file);
            is_sync && covers && !call.failed && call.began > written.returned && call.returned < told
        });
        synced.map(drop).ok_or_else(|| format!("{text} was not synced between its write and {said:?}"))
    }

    /// That `path` itself was synced before `said` was said.
    ///
    /// # Errors
    /// When it was not.
    pub fn path_synced_before_said(&self, path: &Path, said: &str) -> Result<(), String> {
        let told = self.began(said).ok_or_else(|| format!("{said} was never said"))?;
        let named = format!("<{}>", path.display());
        let synced = self.0.iter().any(|call| {
            call.text.starts_with("fsync(")
                && call.text.contains(&named)
                && !call.failed
                && call.returned < told
        });
        synced.then_some(()).ok_or_else(|| format!("{} was not synced before {said}", path.display()))
    }

    /// When the first write to a pipe or socket began that contains the text.
    fn began(&self, said: &str) -> Option<usize> {
        let is_out = |call: &&Call| {
            ["<pipe:", "<socket:", "<UNIX-STREAM:", "<UNIX:"].iter().any(|kind| call.text.contains(kind))
        };
        self.0.iter().filter(is_out).find(|call| call.text.contains(said)).map(|call| call.began)
    }
}

/// Whether the descriptor's path, which stands before the first comma, has this part.
fn names_file(call: &str, file: &str) -> bool {
    call.split_once(',').is_some_and(|(descriptor, _)| descriptor.contains(file))
}

fn has_failed(event: &str) -> bool {
    event.rsplit_once(" = ").is_none_or(|(_, result)| result.starts_with('-') || result.starts_with('?'))
}

#[test]
fn an_answer_before_its_sync_is_found_out() {
    let write = "7 pwrite64(5</d/sled/db>, \"..ada..\", 7, 0) = 7";
    let sync = "7 fsync(6</d/sled/db>) = 0";
    let answer = "8 write(1<pipe:[9]>, \"said ada\", 8) = 8";
    let honest = |lines: &[&str]| {
        let trace = Trace::of(&lines.join("\n"));
        trace.synced_before_said("ada", "/sled/db>", &["fsync", "fdatasync"], "said ada").is_ok()
    };
    assert!(honest(&[write, sync, answer]));
    assert!(!honest(&[write, answer]), "no sync");
    assert!(!honest(&[write, answer, sync]), "the sync comes late");
    assert!(!honest(&[sync, write, answer]), "the sync was of what came before");
    assert!(
        !honest(&[write, "7 fsync(6</d/sled/db>) = -1 EIO (Input/output error)", answer]),
        "the sync failed"
    );
    assert!(!honest(&[write, "7 fsync(6</d/witness>) = 0", answer]), "the sync of another file");
    let (begun, resumed) = ("7 fsync(6</d/sled/db> <unfinished ...>", "7 <... fsync resumed>) = 0");
    assert!(honest(&[write, begun, resumed, answer]));
    assert!(!honest(&[write, begun, answer, resumed]), "the sync has not returned");
    let (begun, resumed) =
        ("7 pwrite64(5</d/sled/db>, \"ada\", 3, 0 <unfinished ...>", "7 <... pwrite64 resumed>) = 3");
    assert!(
        !honest(&[begun, sync.replace('7', "6").as_str(), resumed, answer]),
        "synced before it was written"
    );
}
