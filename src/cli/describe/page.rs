//! What a description is made of: fields, maps, blocks and tables, one below the other.

use std::fmt::Display;

use serde_json::Value;

use crate::cli::output::table::Table;
use crate::cli::output::{age, text_at};
use crate::clock;
use crate::object::Time;

/// How many events are shown, the newest.
const EVENTS_SHOWN: usize = 20;

/// The text of one description.
pub struct Page {
    lines: Vec<String>,
    now: Time,
}

impl Page {
    /// An empty page, as of now.
    pub fn new() -> Self {
        Self { lines: Vec::new(), now: clock::now() }
    }

    /// `Name:   value`; left out where there is none.
    pub fn field(&mut self, name: &str, value: impl Display) {
        let value = value.to_string();
        if !value.is_empty() {
            let name = format!("{}{}:", name[..1].to_uppercase(), &name[1..]);
            self.lines.push(format!("{name:<18}{value}"));
        }
    }

    /// A point in time, and how far from now it is.
    pub fn time(&mut self, name: &str, value: Option<&Value>) {
        let Some(text) = value.and_then(Value::as_str) else { return };
        match Time::parse(text) {
            Ok(time) if time > self.now => {
                self.field(name, format!("{text} ({})", age::relative(time, self.now)));
            }
            Ok(time) => self.field(name, format!("{text} ({} ago)", age::relative(time, self.now))),
            Err(_) => self.field(name, text),
        }
    }

    /// The pairs of a map, but for keys with these beginnings.
    pub fn map(&mut self, name: &str, value: Option<&Value>, hidden: &[&str]) {
        let pairs = value.and_then(Value::as_object).into_iter().flatten();
        let shown = pairs.filter(|(key, _)| !hidden.iter().any(|hidden| key.starts_with(hidden)));
        for (index, (key, value)) in shown.enumerate() {
            let pair = format!("{key}={}", value.as_str().unwrap_or_default());
            if index == 0 { self.field(name, pair) } else { self.lines.push(format!("{:<18}{pair}", "")) }
        }
    }

    /// Several lines under a heading.
    pub fn block(&mut self, heading: &str, text: &str) {
        self.lines.push(format!("{}{}:", heading[..1].to_uppercase(), &heading[1..]));
        self.lines.extend(text.lines().map(|line| format!("  {line}")));
    }

    /// A table under a heading; `none` where it has no rows.
    pub fn table(&mut self, heading: &str, mut table: Table) {
        if table.is_empty() {
            self.field(heading, "none");
        } else {
            self.block(heading, &table.lines().join("\n"));
        }
    }

    /// How long ago something was.
    pub fn age(&self, value: &Value, pointer: &str) -> String {
        Time::parse(text_at(value, pointer)).map_or_else(|_| "-".into(), |time| age::relative(time, self.now))
    }

    /// The object's conditions, where it has any.
    pub fn conditions(&mut self, object: &Value) {
        let mut table = Table::new(["type", "status", "reason", "since", "message"]);
        for condition in object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
        {
            let field = |name: &str| text_at(condition, name).to_owned();
            let since = self.age(condition, "/lastTransitionTime");
            table.row([field("/type"), field("/status"), field("/reason"), since, field("/message")]);
        }
        if !table.is_empty() {
            self.table("Conditions", table);
        }
    }

    /// The newest of these events, oldest first.
    pub fn events<'a>(&mut self, events: impl Iterator<Item = &'a Value>) {
        let mut events: Vec<&Value> = events.collect();
        let last = |event: &Value| Time::parse(text_at(event, "/lastTimestamp")).unwrap_or_default();
        events.sort_by_key(|event| last(event));
        let mut table = Table::new(["age", "type", "reason", "message"]);
        for event in events.iter().skip(events.len().saturating_sub(EVENTS_SHOWN)) {
            let count = event.get("count").and_then(Value::as_u64).filter(|count| *count > 1);
            let times = count.map(|count| format!(" (x{count})")).unwrap_or_default();
            let age = self.age(event, "/lastTimestamp") + &times;
            let field = |name: &str| text_at(event, name).to_owned();
            table.row([age, field("/type"), field("/reason"), field("/message")]);
        }
        self.table("Events", table);
    }

    /// The whole text.
    pub fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }
}
