//! What a killed child has said, held against what it found and what is found after it.

use std::collections::BTreeMap;

use super::found::Found;
use super::script::{self, PAIRS, WRITERS, WRITES_PER_STEP};

/// All that one child said.
#[derive(Debug, Default)]
pub struct Heard {
    pub opened: Option<Opened>,
    /// Writer, step, first version.
    pub acknowledged: Vec<(usize, u64, u64)>,
    /// Version, name, text.
    pub saw: Vec<(u64, String, String)>,
    /// Version, users, sum of their versions.
    pub looked: Vec<(u64, u64, u64)>,
}

/// What a child found when it opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub version: u64,
    pub steps: Vec<u64>,
}

impl Heard {
    /// Reads the lines of a child; those of the test harness are passed over.
    pub fn of(lines: &[String]) -> Result<Self, String> {
        let mut heard = Self::default();
        for line in lines {
            heard.hear(line).ok_or_else(|| format!("an unexpected line: {line:?}"))?;
        }
        Ok(heard)
    }

    fn hear(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().ok();
        match words.as_slice() {
            ["opened", version, steps @ ..] => {
                let steps: Option<Vec<u64>> = steps.iter().map(|step| number(step)).collect();
                self.opened = Some(Opened { version: number(version)?, steps: steps? });
            }
            ["acknowledged", writer, step, first] => {
                self.acknowledged.push((writer.parse().ok()?, number(step)?, number(first)?));
            }
            ["saw", version, name, text] => {
                self.saw.push((number(version)?, (*name).to_owned(), (*text).to_owned()));
            }
            ["looked", version, users, sum] => {
                self.looked.push((number(version)?, number(users)?, number(sum)?));
            }
            ["torn", ..] => return None,
            _ => {}
        }
        Some(())
    }
}

/// The steps in the order of their versions, as far as anybody was told of them.
#[derive(Debug)]
pub struct History {
    start: Found,
    steps: Vec<(usize, u64)>,
}

impl History {
    /// Of a child that began at `start`. What it acknowledged and what its readers saw is one
    /// history without a gap.
    pub fn of(start: &Found, heard: &Heard) -> Result<Self, String> {
        let mut history = Self { start: start.clone(), steps: Vec::new() };
        let mut done = start.steps.clone();
        let mut push = |steps: &mut Vec<(usize, u64)>, writer: usize| {
            done[writer] += 1;
            steps.push((writer, done[writer]));
            done[writer]
        };
        for (writer, step, first) in &heard.acknowledged {
            let due = history.end() + 1;
            if *first != due || push(&mut history.steps, *writer) != *step {
                return Err(format!(
                    "writer {writer} step {step} was acknowledged as {first} where {due} was due"
                ));
            }
        }
        for (nth, (version, name, text)) in (0_u64..).zip(&heard.saw) {
            let due = start.version + 1 + nth;
            if *version != due {
                return Err(format!("the watcher saw {version} where {due} was due"));
            }
            if *version > history.end() {
                let writer = script::writer_of(name).ok_or_else(|| format!("{name} is nobody's"))?;
                push(&mut history.steps, writer);
            }
            let (due_name, due_text) = history.event(*version);
            if (name, text) != (&due_name, &due_text) {
                return Err(format!("the watcher saw {name} {text} as {version}, not {due_name} {due_text}"));
            }
        }
        history.check_looks(heard).map(|()| history)
    }

    /// The newest version that anybody was told of, of whole submissions.
    pub fn end(&self) -> u64 {
        self.start.version + self.steps.len() as u64 * WRITES_PER_STEP
    }

    /// How many steps were told of.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether what is found after the kill holds all that was told of, and nothing that was not
    /// submitted: each version belongs to one write of one step.
    pub fn check(&self, found: &Found) -> Result<(), String> {
        self.check_progress(found.version, &found.steps)?;
        let told = self.users_at(self.end());
        let mut told_steps = self.start.steps.clone();
        for (writer, step) in &self.steps {
            told_steps[*writer] = *step;
        }
        for (writer, pair) in (0..WRITERS).flat_map(|writer| (0..PAIRS).map(move |pair| (writer, pair))) {
            let [left, right] = [0, 1].map(|side| script::name(writer, pair, side));
            let untold =
                script::last_of(found.steps[writer], pair).is_some_and(|last| last > told_steps[writer]);
            let versions = (found.users.get(&left).copied(), found.users.get(&right).copied());
            let right_versions = match versions {
                (Some(left), Some(right)) if untold => {
                    left > self.end() && right == left + 1 && right <= found.version
                }
                (None, None) if untold => true,
                _ => versions == (told.get(&left).copied(), told.get(&right).copied()),
            };
            if !right_versions {
                return Err(format!("{left} and its twin are there as of {versions:?}"));
            }
        }
        Ok(())
    }

    /// The same of what a killed opening said.
    pub fn check_progress(&self, version: u64, steps: &[u64]) -> Result<(), String> {
        if version < self.end() {
            return Err(format!("it opened at {version}, and {} was told", self.end()));
        }
        for (writer, step) in &self.steps {
            if steps[*writer] < *step {
                return Err(format!("step {step} of writer {writer} was told and is lost"));
            }
        }
        let taken: u64 = steps.iter().zip(&self.start.steps).map(|(now, then)| now - then).sum();
        let given = version - self.start.version;
        if taken * WRITES_PER_STEP != given {
            return Err(format!("{given} versions were given to {taken} steps of {WRITES_PER_STEP}"));
        }
        Ok(())
    }

    /// Every list shows all of the history up to its version, and nothing else.
    fn check_looks(&self, heard: &Heard) -> Result<(), String> {
        let mut before = self.start.version;
        for (version, users, sum) in &heard.looked {
            if *version < before || !(version - self.start.version).is_multiple_of(WRITES_PER_STEP) {
                return Err(format!("a list showed {version} after {before}"));
            }
            before = *version;
            if *version <= self.end() {
                let due = self.users_at(*version);
                if (due.len() as u64, due.values().sum()) != (*users, *sum) {
                    return Err(format!(
                        "the list as of {version} shows {users} users, sum {sum}; due: {due:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Name and text of the write that took this version.
    fn event(&self, version: u64) -> (String, String) {
        let nth = version - self.start.version - 1;
        let (writer, step) = self.steps[usize::try_from(nth / WRITES_PER_STEP).expect("few")];
        let [left, right] = script::names(writer, step);
        let text = script::text_after(step, script::pair_of(step));
        let name = if nth.is_multiple_of(WRITES_PER_STEP) { left } else { right };
        (name, text.map_or_else(|| "-".to_owned(), |step| step.to_string()))
    }

    fn users_at(&self, version: u64) -> BTreeMap<String, u64> {
        let mut users = self.start.users.clone();
        for version in self.start.version + 1..=version {
            let (name, text) = self.event(version);
            if text == "-" {
                users.remove(&name);
            } else {
                users.insert(name, version);
            }
        }
        users
    }
}
