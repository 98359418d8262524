//! The process that is killed: eight writers with owners of every kind, and two readers. Each line
//! it says goes out in one write, so that a kill leaves whole lines.
//!
//! ```text
//! opening
//! opened 1234 17 0 4 ...         the version, and how far each writer came
//! acknowledged 1 17 1235         writer, step, its first version: in the order of the queue
//! saw 1235 user-1-0-0 17         a watcher: the version, the name, the text (- when removed)
//! looked 1236 40 48000           a list: its version, how many users, the sum of their versions
//! torn ...                       a list that shows half of a submission
//! ```

use std::sync::mpsc;
use std::thread;

use ringleader::object::CORE_GROUP;
use ringleader::view::Watch;

use super::super::*;
use super::Role;
use super::found::Found;
use super::script::{self, Padding, WRITERS};

/// Steps a writer submits before it waits.
const IN_FLIGHT: u64 = 4;
/// A writer loads its records again after so many steps.
const STEPS_PER_INCARNATION: u64 = 64;

pub fn run_until_killed(dir: &Path, role: Role, padding: Padding) -> ! {
    // The test harness leaves its own line unfinished.
    say("\nopening\n");
    let opened = open(dir);
    let found = Found::of(&opened.view).unwrap_or_else(|torn| panic!("the store opens torn: {torn}"));
    let steps: Vec<String> = found.steps.iter().map(u64::to_string).collect();
    say(&format!("opened {} {}\n", found.version, steps.join(" ")));
    if role == Role::Open {
        loop {
            thread::park();
        }
    }
    let watch = || {
        let watch = opened.view.watch(CORE_GROUP, "users", None, Some(found.version));
        watch.expect("nothing has happened since")
    };
    thread::scope(|scope| {
        let (watcher, looker, view) = (watch(), watch(), opened.view.clone());
        scope.spawn(move || read(watch_on(watcher)));
        scope.spawn(move || read(look_on(looker, view)));
        for (writer, done) in (0..WRITERS).zip(&found.steps) {
            let opened = &opened;
            scope.spawn(move || write(opened, writer, *done, padding));
        }
    });
    unreachable!("the writers go on until they are killed")
}

fn write(opened: &Opened, writer: usize, done: u64, padding: Padding) {
    let (said, hear) = mpsc::channel();
    let mut author = load(opened, writer, done);
    for step in done + 1.. {
        let [_, last] = script::names(writer, step);
        let said = said.clone();
        let effect: Effect = Box::new(move |committed| {
            let version = committed.resource(&user_key(&last)).expect("what was written").version;
            say(&format!("acknowledged {writer} {step} {}\n", version + 1 - script::WRITES_PER_STEP));
            said.send(()).expect("the writer waits");
        });
        author
            .submit(vec![], script::writes(writer, step, padding), vec![effect])
            .expect("nothing conflicts");
        if step - done > IN_FLIGHT {
            hear.recv().expect("the effect runs");
        }
        if step % STEPS_PER_INCARNATION == 0 {
            author = load(opened, writer, step);
        }
    }
}

/// A new incarnation finds exactly what the writer has submitted.
fn load(opened: &Opened, writer: usize, done: u64) -> Author<'_> {
    let (author, records) = opened.load(script::owner(writer));
    let pairs = (0..script::PAIRS).filter(|pair| script::text_after(done, *pair).is_some());
    assert_eq!(records.len(), pairs.count() * 2, "writer {writer} after step {done}");
    author
}

fn read(reading: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(reading);
}

async fn watch_on(mut watch: Watch) {
    while let Some(event) = watch.next().await {
        let event = event.expect("this watcher is quick");
        let text = match event.change {
            view::Change::Added | view::Change::Modified => super::found::text(&event.resource),
            view::Change::Deleted => "-",
        };
        say(&format!("saw {} {} {text}\n", event.resource.version, event.resource.key.name));
    }
}

async fn look_on(mut watch: Watch, view: View) {
    let mut seen = 0;
    while let Some(event) = watch.next().await {
        if event.expect("this watcher is quick").resource.version <= seen {
            continue;
        }
        let listing = view.list(CORE_GROUP, "users", None);
        seen = listing.version;
        if let Err(torn) = Found::of_listing(&listing) {
            say(&format!("torn {torn}\n"));
        }
        let sum: u64 = listing.items.iter().map(|user| user.version).sum();
        say(&format!("looked {seen} {} {sum}\n", listing.items.len()));
    }
}

fn say(line: &str) {
    // Below PIPE_BUF a write to a pipe is whole or not at all.
    let written = rustix::io::write(rustix::stdio::stdout(), line.as_bytes()).expect("the parent reads");
    assert_eq!(written, line.len());
}
