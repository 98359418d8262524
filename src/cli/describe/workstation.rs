//! A workstation; of a member, also what it is to its pool.

use serde_json::Value;

use super::page::Page;
use crate::cli::output::text_at;

pub fn describe(page: &mut Page, workstation: &Value) {
    let text = |pointer: &str| text_at(workstation, pointer);
    let pool = text("/metadata/labels/pools.ringleader.dev~1pool");
    if !pool.is_empty() {
        let annotation =
            |name: &str| text_at(workstation, &format!("/metadata/annotations/pools.ringleader.dev~1{name}"));
        page.field("Pool", pool);
        page.field("State", annotation("state"));
        page.field("Lease", annotation("lease"));
        let cordoned = workstation.pointer("/spec/cordoned").and_then(Value::as_bool).unwrap_or(false);
        page.field("Cordoned", if cordoned { "yes" } else { "no" });
        page.field("Reuses", annotation("reuses"));
        page.field("Template", annotation("template-hash"));
    }
    page.field("Phase", text("/status/phase"));
    page.field("Message", text("/status/message"));
    page.field("Provider", text("/status/provider"));
    page.field("Machine", text("/status/machine/id"));
    page.field("Address", text("/status/machine/address"));
    page.time("Started", workstation.pointer("/status/machine/startedAt"));
    page.field("Image", text("/status/machine/image"));
    page.field("Agent", text("/status/agent/version"));
    page.field("Login user", text("/status/ssh/user"));
    let sessions = workstation.pointer("/status/sessions").and_then(Value::as_u64);
    page.field("SSH sessions", sessions.unwrap_or(0));
}
