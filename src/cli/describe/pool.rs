//! A pool: its size and rules, then its members and leases by name (rule S3).

use serde_json::Value;

use super::page::Page;
use crate::cli::kinds;
use crate::cli::output::table::Table;
use crate::cli::output::{name_of, text_at};
use crate::cli::session::Session;
use crate::client::{ListOptions, Target};
use crate::object::POOL_LABEL;

pub async fn describe(
    session: &Session,
    page: &mut Page,
    target: &Target,
    pool: &Value,
) -> anyhow::Result<()> {
    page.field("Owner", text_at(pool, "/status/owner/name"));
    page.field("Phase", text_at(pool, "/status/phase"));
    page.field("Message", text_at(pool, "/status/message"));
    let number = |pointer: &str| pool.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    page.field(
        "Capacity",
        format!(
            "{} of {} members, room for {}",
            number("/status/capacity/members"),
            number("/spec/size/max"),
            number("/status/capacity/room")
        ),
    );
    page.field(
        "Warm",
        format!("{} running, {} stopped", number("/spec/warm/running"), number("/spec/warm/stopped")),
    );
    page.field("Recycle", recycle(pool.pointer("/spec/recycle")));
    page.field("Longest lease", text_at(pool, "/spec/lease/maxTerm"));
    page.field("Template", text_at(pool, "/status/templateHash"));

    let labelled = ListOptions::labelled(format!("{POOL_LABEL}={}", target.name));
    let namespace = target.namespace.as_deref();
    let members = Target::all(kinds::workstations(&session.registry), namespace);
    let members = session.client.list(&members, &labelled).await?;
    let table = members_table(page, &members.items);
    page.table("Members", table);
    let leases = Target::all(kinds::leases(&session.registry), namespace);
    let leases = session.client.list(&leases, &labelled).await?;
    let table = leases_table(page, &leases.items);
    page.table("Leases", table);
    Ok(())
}

fn recycle(block: Option<&Value>) -> String {
    match block {
        None | Some(Value::Null) => "no: every released member is deleted".into(),
        Some(block) => format!(
            "up to {} times, each within {}",
            block.get("maxReuses").and_then(Value::as_u64).unwrap_or(0),
            text_at(block, "/timeout")
        ),
    }
}

fn members_table(page: &Page, members: &[Value]) -> Table {
    let mut table = Table::new(["name", "state", "phase", "lease", "reuses", "cordoned", "age"]);
    for member in members {
        let annotation = |name: &str| {
            or_dash(text_at(member, &format!("/metadata/annotations/pools.ringleader.dev~1{name}")))
        };
        let cordoned = member.pointer("/spec/cordoned").and_then(Value::as_bool).unwrap_or(false);
        table.row([
            name_of(member).to_owned(),
            annotation("state"),
            or_dash(text_at(member, "/status/phase")),
            annotation("lease"),
            annotation("reuses"),
            if cordoned { "yes".into() } else { "no".into() },
            page.age(member, "/metadata/creationTimestamp"),
        ]);
    }
    table
}

fn leases_table(page: &Page, leases: &[Value]) -> Table {
    let mut table = Table::new(["name", "phase", "holder", "member", "expires", "age"]);
    for lease in leases {
        let text = |pointer: &str| or_dash(text_at(lease, pointer));
        table.row([
            name_of(lease).to_owned(),
            text("/status/phase"),
            text("/status/holder/name"),
            text("/status/workstationName"),
            page.age(lease, "/spec/expiresAt"),
            page.age(lease, "/metadata/creationTimestamp"),
        ]);
    }
    table
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".into() } else { text.to_owned() }
}
