//! kill -9 under load and while opening, some hundred times on one directory: what was acknowledged
//! is there under its version, what any reader saw is there, lists and watches had no gap, and no
//! version was given twice.
//!
//! `RL_STORE_CRASH_ROUNDS` sets the number of rounds, for a longer run:
//!
//! ```text
//! RL_STORE_CRASH_ROUNDS=5000 cargo test --test store crash:: -- --nocapture
//! ```

mod child;
mod found;
mod judge;
mod script;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;

use found::Found;
use judge::{Heard, History, Opened as OpenedAs};
use script::Padding;

use super::space::SmallDisk;
use super::*;

const ROUNDS: u64 = 300;
const ROUNDS_WITH_LARGE_RECORDS: u64 = 40;
const DIRECTORY: &str = "RL_TEST_STORE_DIRECTORY";
const PADDING: &str = "RL_TEST_STORE_PADDING";
const ROLE: &str = "RL_TEST_STORE_ROLE";
const TEST: &str = "crash::every_acknowledged_write_survives_kill_9_and_nothing_else_was_ever_seen";

/// How long a child may take to come to the moment of its kill.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a child does with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Write,
    /// Opens it and waits to be killed.
    Open,
}

/// When a child is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// So long after it was started.
    Started(Duration),
    /// So long after it said that it opens the store.
    Opening(Duration),
    /// After so many acknowledgements.
    Acknowledged(usize),
}

// rule F5
// rule L20
// case 19 (garm#401, #635, #117)
#[test]
fn every_acknowledged_write_survives_kill_9_and_nothing_else_was_ever_seen() {
    if let Ok(dir) = std::env::var(DIRECTORY) {
        let variable = |name| std::env::var(name).expect("the parent sets them all");
        let padding = Padding { bytes: variable(PADDING).parse().expect("a number") };
        child::run_until_killed(Path::new(&dir), Role::of(&variable(ROLE)), padding);
    }
    let rounds = std::env::var("RL_STORE_CRASH_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let (_parent, dir) = fresh();
    let tally = Siege::of(&dir, Padding { bytes: 0 }, 500).run(rounds);
    assert!(tally.while_opening * 20 > tally.kills, "too few kills hit an opening: {tally:?}");
    assert!(tally.steps > rounds * 20, "the children wrote too little to prove anything: {tally:?}");
}

/// sled keeps what is large in files beside its log.
#[test]
fn large_records_survive_kill_9_too() {
    // In memory, where syncing them costs nothing: a kill does not lose what the kernel has.
    // sled removes such files late, so that a few MiB of records take hundreds: fewer are written.
    let disk = SmallDisk::of_mib(1024);
    let dir = disk.path.join("data");
    let tally = Siege::of(&dir, Padding { bytes: 150_000 }, 80).run(ROUNDS_WITH_LARGE_RECORDS);
    assert!(tally.steps > ROUNDS_WITH_LARGE_RECORDS, "{tally:?}");
}

#[test]
fn a_kill_while_a_new_store_is_made_leaves_one_that_opens() {
    // The directory, its lock, the proof of room, and what sled makes: a folder, blobs, conf, db.
    for files in 1..=7 {
        let (_parent, dir) = fresh();
        let mut child = spawn(&dir, Role::Write, Padding { bytes: 0 }, Stdio::null());
        while count_files(&dir) < files {
            assert_eq!(child.try_wait().expect("it can be asked"), None, "the child ended by itself");
            thread::yield_now();
        }
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        let opened = open(&dir);
        opened.load(OwnerId::Fleet("after".into())).0.write(vec![put(1, "ada", "")]);
    }
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Open => "open",
        }
    }

    fn of(word: &str) -> Self {
        let known = [Self::Write, Self::Open].into_iter().find(|role| role.word() == word);
        known.unwrap_or_else(|| panic!("no role {word:?}"))
    }
}

/// One directory, and what is known of it.
struct Siege<'a> {
    dir: &'a Path,
    padding: Padding,
    /// The latest moment of a kill.
    acknowledged_max: u64,
    seed: u64,
    random: u64,
    known: Found,
    tally: Tally,
}

/// What the rounds have met.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    while_opening: u64,
    half_snapshots: u64,
    /// Steps that somebody was told of.
    steps: u64,
    /// Steps that were durable and of which nobody was told: killed in between.
    untold: u64,
    looks: u64,
}

impl<'a> Siege<'a> {
    fn of(dir: &'a Path, padding: Padding, acknowledged_max: u64) -> Self {
        let seed = ringleader::clock::monotonic_ms() | 1;
        Self {
            dir,
            padding,
            acknowledged_max,
            seed,
            random: seed,
            known: Found::nothing(),
            tally: Tally::default(),
        }
    }

    fn run(mut self, rounds: u64) -> Tally {
        for round in 0..rounds {
            if let Err(wrong) = self.round() {
                panic!("round {round} of seed {}: {wrong}", self.seed);
            }
        }
        eprintln!("{rounds} rounds: {:?}", self.tally);
        self.tally
    }

    /// Kills a child, then up to two more while they open what it left, and opens it here.
    fn round(&mut self) -> Result<(), String> {
        let kill = self.draw_kill();
        let heard = self.run_and_kill(Role::Write, kill)?;
        if let Some(opened) = &heard.opened
            && (opened.version, &opened.steps) != (self.known.version, &self.known.steps)
        {
            return Err(format!("it opened as {opened:?}, known was {:?}", self.known));
        }
        let history = History::of(&self.known, &heard)?;
        self.tally.steps += history.len() as u64;
        self.tally.looks += heard.looked.len() as u64;
        let mut opened_as = None;
        for _ in 0..self.draw(3) {
            let within = Duration::from_micros(self.draw(8_000));
            let Some(opened) = self.run_and_kill(Role::Open, Kill::Opening(within))?.opened else { continue };
            history.check_progress(opened.version, &opened.steps)?;
            if opened_as.get_or_insert_with(|| opened.clone()) != &opened {
                return Err(format!("opened twice, as {opened_as:?} and as {opened:?}"));
            }
        }
        let found = Found::of(&open(self.dir).view)?;
        let settled = OpenedAs { version: found.version, steps: found.steps.clone() };
        if opened_as.is_some_and(|opened| opened != settled) {
            return Err(format!("it settled as {settled:?}, and was opened as another before"));
        }
        history.check(&found)?;
        self.tally.untold += (found.version - history.end()) / script::WRITES_PER_STEP;
        self.known = found;
        Ok(())
    }

    fn run_and_kill(&mut self, role: Role, kill: Kill) -> Result<Heard, String> {
        let mut child = spawn(self.dir, role, self.padding, Stdio::piped());
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (reached, moment) = mpsc::channel();
        let listener = thread::spawn(move || listen(output, kill, &reached));
        let (waits, delay) = match kill {
            Kill::Started(delay) => (false, delay),
            Kill::Opening(delay) => (true, delay),
            Kill::Acknowledged(_) => (true, Duration::ZERO),
        };
        // Without the moment the child has ended by itself, which its status tells, or hangs.
        let hangs = waits && moment.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        thread::sleep(delay);
        child.kill().expect("it is not reaped yet");
        let status = child.wait().expect("it ended");
        let lines = listener.join().expect("lines are read");
        if hangs {
            return Err(format!("the child hung before {kill:?}; it ended with {:?}", lines.last()));
        }
        if status.code().is_some() {
            return Err(format!("the child ended by itself: {status}: {:?}", lines.last()));
        }
        let heard = Heard::of(&lines)?;
        self.tally.kills += 1;
        let opening = lines.iter().any(|line| line == "opening");
        self.tally.while_opening += u64::from(opening && heard.opened.is_none());
        self.tally.half_snapshots += u64::from(has_half_snapshot(self.dir));
        Ok(heard)
    }

    fn draw_kill(&mut self) -> Kill {
        match self.draw(4) {
            0 => Kill::Started(Duration::from_micros(self.draw(30_000))),
            1 => Kill::Opening(Duration::from_micros(self.draw(20_000))),
            _ => Kill::Acknowledged(1 + usize::try_from(self.draw(self.acknowledged_max)).expect("small")),
        }
    }

    /// The next random number below `below` (xorshift, Marsaglia 2003).
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }
}

/// All lines of a child; tells when the moment of the kill has come.
fn listen(output: impl BufRead, kill: Kill, reached: &mpsc::Sender<()>) -> Vec<String> {
    let mut acknowledged = 0;
    let mut lines = Vec::new();
    for line in output.lines() {
        let line = line.expect("text");
        let is_acknowledgement = line.starts_with("acknowledged ");
        acknowledged += usize::from(is_acknowledgement);
        let now = match kill {
            Kill::Started(_) => false,
            Kill::Opening(_) => line == "opening",
            Kill::Acknowledged(count) => is_acknowledgement && acknowledged == count,
        };
        if now {
            // Nobody listens any more when the child is already being killed.
            let _ = reached.send(());
        }
        lines.push(line);
    }
    lines
}

/// This test's own program, in the role of the child.
fn spawn(dir: &Path, role: Role, padding: Padding, output: Stdio) -> Child {
    Command::new(std::env::current_exe().expect("this test has a program"))
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, dir)
        .env(PADDING, padding.bytes.to_string())
        .env(ROLE, role.word())
        .stdout(output)
        .spawn()
        .expect("this test's program starts")
}

fn has_half_snapshot(dir: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(dir.join("sled")) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(".generating"))
}

/// All files and directories below `dir`, itself included.
fn count_files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return usize::from(dir.exists()) };
    1 + entries.flatten().map(|entry| count_files(&entry.path())).sum::<usize>()
}
