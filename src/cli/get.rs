//! `rl get`: lists and single objects, as tables or for programs, once or followed.

use clap::Args;
use serde_json::Value;

use super::failure::{Exit, usage};
use super::key;
use super::kinds::{self, Selection, labels};
use super::output::table::{Breadth, KindTable, Namespaces};
use super::output::{Format, Shape, print_values, text_at};
use super::session::Session;
use crate::client::{Change, Follow, ListOptions, ObjectList, Target};
use crate::clock;
use crate::object::Kind;

/// Which objects, and how they are printed.
#[derive(Clone, Debug, Default, Args)]
pub struct GetOptions {
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only those with these labels, such as app=web,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = labels)]
    selector: Option<String>,
    /// Go on and print every change
    #[arg(short, long)]
    watch: bool,
    /// table, wide, json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Format,
    /// Leases: only those you hold
    #[arg(long)]
    mine: bool,
    /// Leave the table's head out
    #[arg(long)]
    no_headers: bool,
}

/// What was found of one kind.
struct Found {
    kind: &'static Kind,
    list: ObjectList,
    /// What the list was read with, so that a watch goes on from it.
    target: Target,
    options: ListOptions,
}

/// Prints what was selected.
pub async fn run(session: &Session, selections: Vec<Selection>, options: GetOptions) -> anyhow::Result<Exit> {
    check(session, &selections, &options)?;
    let holder = if options.mine { Some(key::owner(session).await?) } else { None };
    let mut found = Vec::new();
    for selection in &selections {
        let mut one = find(session, selection, &options).await?;
        one.list.items.retain(|object| holds(holder.as_deref(), object));
        found.push(one);
    }
    let several = selections.iter().any(|other| !std::ptr::eq(other.kind, selections[0].kind));
    let follow = options.watch.then(|| found.pop()).flatten();
    if let Some(found) = follow {
        return watch(session, found, &options, holder.as_deref()).await;
    }
    match options.output {
        Format::Table | Format::Wide => print_tables(session, &found, &options, several)?,
        _ => {
            let named = selections.len() == 1 && selections[0].names.len() == 1;
            let shape = if named { Shape::One } else { Shape::List };
            let items: Vec<(&Kind, Value)> = found
                .into_iter()
                .flat_map(|found| found.list.items.into_iter().map(move |object| (found.kind, object)))
                .collect();
            print_values(&session.console, &options.output, shape, &items)?;
        }
    }
    Ok(Exit::DONE)
}

fn check(session: &Session, selections: &[Selection], options: &GetOptions) -> anyhow::Result<()> {
    let leases = kinds::leases(&session.registry);
    if options.mine && selections.iter().any(|selection| !std::ptr::eq(selection.kind, leases)) {
        return Err(usage("--mine is about leases: `rl get workstationpoollease --mine`"));
    }
    let named = selections.iter().any(|selection| !selection.names.is_empty());
    if named && options.all_namespaces {
        return Err(usage(
            "a name is looked up in one namespace: leave -A out, or name the namespace with -n",
        ));
    }
    if named && options.selector.is_some() {
        return Err(usage("write either names or -l, not both"));
    }
    if options.watch && (selections.len() > 1 || selections[0].names.len() > 1) {
        return Err(usage("-w follows one kind or one object at a time"));
    }
    Ok(())
}

async fn find(session: &Session, selection: &Selection, options: &GetOptions) -> anyhow::Result<Found> {
    let kind = selection.kind;
    let namespace = (!options.all_namespaces).then_some(session.namespace.as_str());
    let target = Target::all(kind, namespace);
    if selection.names.is_empty() {
        let options = ListOptions { labels: options.selector.clone(), fields: None };
        let list = session.client.list(&target, &options).await?;
        return Ok(Found { kind, list, target, options });
    }
    let mut list = ObjectList::default();
    for name in &selection.names {
        let object = session.client.get(&session.target(kind, name)).await?;
        text_at(&object, "/metadata/resourceVersion").clone_into(&mut list.resource_version);
        list.items.push(object);
    }
    Ok(Found { kind, list, target, options: ListOptions::named(&selection.names[0]) })
}

fn holds(holder: Option<&str>, lease: &Value) -> bool {
    holder.is_none_or(|holder| text_at(lease, "/status/holder/name") == holder)
}

fn print_tables(
    session: &Session,
    found: &[Found],
    options: &GetOptions,
    several: bool,
) -> anyhow::Result<()> {
    // What was named one by one stands in one table for its kind.
    let mut tables: Vec<(&'static Kind, KindTable)> = Vec::new();
    for one in found.iter().filter(|one| !one.list.items.is_empty()) {
        let at = tables.iter().position(|(kind, _)| std::ptr::eq(*kind, one.kind)).unwrap_or_else(|| {
            tables.push((one.kind, new_table(one.kind, options, several)));
            tables.len() - 1
        });
        let now = clock::now();
        one.list.items.iter().for_each(|object| tables[at].1.add(object, now));
    }
    if tables.is_empty() {
        session.console.note(nothing(session, found, options));
    }
    for (index, (_, table)) in tables.iter_mut().enumerate() {
        if index > 0 {
            session.console.print("")?;
        }
        let skipped = usize::from(options.no_headers);
        for line in table.table.lines().into_iter().skip(skipped) {
            session.console.print(line)?;
        }
    }
    Ok(())
}

fn new_table(kind: &'static Kind, options: &GetOptions, several: bool) -> KindTable {
    let breadth = if matches!(options.output, Format::Wide) { Breadth::Wide } else { Breadth::Usual };
    let namespaces = if options.all_namespaces { Namespaces::All } else { Namespaces::One };
    let prefix = if several { format!("{}/", kind.singular) } else { String::new() };
    KindTable::new(kind, breadth, namespaces, prefix)
}

fn nothing(session: &Session, found: &[Found], options: &GetOptions) -> String {
    let kinds: Vec<&str> = found.iter().map(|found| found.kind.plural).collect();
    let namespaced = found.iter().any(|found| found.kind.namespaced);
    let place = match (namespaced, options.all_namespaces) {
        (true, false) => format!(" in namespace {}", session.namespace),
        (true, true) | (false, _) => String::new(),
    };
    format!("no {}{place}", kinds.join(", "))
}

async fn watch(
    session: &Session,
    found: Found,
    options: &GetOptions,
    holder: Option<&str>,
) -> anyhow::Result<Exit> {
    let kind = found.kind;
    let mut table = new_table(kind, options, false);
    let tabular = matches!(options.output, Format::Table | Format::Wide);
    let print = |table: &mut KindTable, objects: &[Value]| -> anyhow::Result<()> {
        if !tabular {
            let print_one = |object: &Value| {
                print_values(&session.console, &options.output, Shape::One, &[(kind, object.clone())])
            };
            return objects.iter().try_for_each(print_one);
        }
        let now = clock::now();
        for object in objects {
            table.add(object, now);
        }
        Ok(table.table.take_rows().into_iter().try_for_each(|line| session.console.print(line))?)
    };
    if tabular {
        let now = clock::now();
        found.list.items.iter().for_each(|object| table.add(object, now));
        let skipped = usize::from(options.no_headers);
        for line in table.table.lines().into_iter().skip(skipped) {
            session.console.print(line)?;
        }
    } else {
        print(&mut table, &found.list.items)?;
    }
    let mut follow = Follow::new(&session.client, found.target, found.options, &found.list);
    loop {
        let event = follow.next().await?;
        let shown = match event.change {
            Change::Added | Change::Modified | Change::Deleted => holds(holder, &event.object),
            Change::Bookmark | Change::Error => false,
        };
        if shown {
            print(&mut table, &[event.object])?;
        }
    }
}
