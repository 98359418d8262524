//! A lease: who holds what until when, and what became of it.

use serde_json::Value;

use super::page::Page;
use crate::cli::output::text_at;

pub fn describe(page: &mut Page, lease: &Value) {
    let text = |pointer: &str| text_at(lease, pointer);
    page.field("Pool", text("/spec/workstationPoolRef/name"));
    page.field("Holder", text("/status/holder/name"));
    page.field("State", text("/spec/state"));
    page.field("Phase", text("/status/phase"));
    page.field("Reason", text("/status/reason"));
    page.field("Message", text("/status/message"));
    if let Some(position) = lease.pointer("/status/queuePosition").and_then(Value::as_u64) {
        page.field("Queue position", position);
    }
    page.field("Member", text("/status/workstationName"));
    page.time("Expires", lease.pointer("/spec/expiresAt"));
    page.time("Bound", lease.pointer("/status/boundAt"));
    page.time("Ready", lease.pointer("/status/readyAt"));
    page.time("Ended", lease.pointer("/status/endedAt"));
    let keys = lease.pointer("/spec/authorizedKeys").and_then(Value::as_array).map_or(0, Vec::len);
    page.field("Keys", keys);
    page.field("Shell", text("/status/ssh/command"));
    page.field("Release", release(lease.pointer("/status/release")));
}

fn release(release: Option<&Value>) -> String {
    let Some(release) = release else { return String::new() };
    let words =
        ["requested", "outcome", "reason", "message"].map(|field| text_at(release, &format!("/{field}")));
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}
