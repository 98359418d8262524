//! `rl describe`: an object with all that belongs to it, for people.
//!
//! One file for each kind that has more to say than its fields; every other kind is printed as it is.

mod lease;
mod page;
mod pool;
mod workstation;

use serde_json::Value;

use self::page::Page;
use super::apply::LAST_APPLIED;
use super::failure::Exit;
use super::kinds::Selection;
use super::output::{self, name_of, text_at};
use super::session::Session;
use crate::client::{ListOptions, Target};

/// Describes what was selected; without names, all of it.
pub async fn run(session: &Session, selections: Vec<Selection>) -> anyhow::Result<Exit> {
    let mut pages = Vec::new();
    for Selection { kind, names } in &selections {
        let mut objects = Vec::new();
        if names.is_empty() {
            objects = session.client.list(&session.all(kind), &ListOptions::default()).await?.items;
        }
        for name in names {
            objects.push(session.client.get(&session.target(kind, name)).await?);
        }
        for object in objects {
            let target = session.target(kind, name_of(&object));
            pages.push(describe(session, &target, &object).await?);
        }
    }
    if pages.is_empty() {
        session.console.note("nothing to describe");
    }
    session.console.print_raw(&pages.join("\n\n"))?;
    Ok(Exit::DONE)
}

async fn describe(session: &Session, target: &Target, object: &Value) -> anyhow::Result<String> {
    let mut page = Page::new();
    head(&mut page, target, object);
    match target.kind.singular {
        "workstationpool" => pool::describe(session, &mut page, target, object).await?,
        "workstationpoollease" => lease::describe(&mut page, object),
        "workstation" => workstation::describe(&mut page, object),
        _ => generic(&mut page, object)?,
    }
    page.conditions(object);
    if target.kind.namespaced {
        let events =
            Target::all(super::kinds::known(&session.registry, "event"), target.namespace.as_deref());
        let list = session.client.list(&events, &ListOptions::default()).await?;
        let uid = text_at(object, "/metadata/uid");
        page.events(list.items.iter().filter(|event| text_at(event, "/regarding/uid") == uid));
    }
    Ok(page.text())
}

fn head(page: &mut Page, target: &Target, object: &Value) {
    page.field("Name", name_of(object));
    if let Some(namespace) = &target.namespace {
        page.field("Namespace", namespace);
    }
    page.map("Labels", object.pointer("/metadata/labels"), &[]);
    page.map(
        "Annotations",
        object.pointer("/metadata/annotations"),
        &[LAST_APPLIED, crate::object::SERVER_PREFIX],
    );
    page.time("Created", object.pointer("/metadata/creationTimestamp"));
    page.time("Deleting since", object.pointer("/metadata/deletionTimestamp"));
}

fn generic(page: &mut Page, object: &Value) -> anyhow::Result<()> {
    let fields = object.as_object().into_iter().flatten();
    for (field, value) in
        fields.filter(|(field, _)| !["apiVersion", "kind", "metadata"].contains(&field.as_str()))
    {
        match value {
            Value::Object(_) | Value::Array(_) => page.block(field, &output::yaml(value)?),
            Value::String(text) => page.field(field, text),
            other => page.field(field, other.to_string()),
        }
    }
    Ok(())
}
