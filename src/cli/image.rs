//! `rl image …`: list, refresh.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::failure::Exit;
use super::output::table::Table;
use super::output::{self, Format, text_at};
use super::session::Session;

/// What can be done with images.
#[derive(Debug, Subcommand)]
pub enum ImageVerb {
    /// List the images that members are made from
    List(ListArgs),
    /// Take images anew; members keep the generation they have
    Refresh {
        /// Which ones [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

/// How they are printed.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// table, json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Format,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: ImageVerb) -> anyhow::Result<Exit> {
    match verb {
        ImageVerb::List(args) => list(session, args).await,
        ImageVerb::Refresh { names } => refresh(session, names).await,
    }
}

async fn list(session: &Session, args: ListArgs) -> anyhow::Result<Exit> {
    let (console, images) = (&session.console, session.client.images().await?);
    match args.output {
        Format::Json => console.print(serde_json::to_string_pretty(&images)?)?,
        Format::Yaml => console.print_raw(&output::yaml(&images)?)?,
        Format::JsonPath(path) => console.print_raw(&path.render(&images))?,
        Format::Name => {
            items(&images).try_for_each(|image| console.print(format_args!("image/{}", name(image))))?;
        }
        Format::Table | Format::Wide => {
            let mut table = Table::new(["name", "distribution", "version", "default", "generation", "taken"]);
            items(&images).for_each(|image| table.row(row(image)));
            table.lines().into_iter().try_for_each(|line| console.print(line))?;
        }
    }
    Ok(Exit::DONE)
}

async fn refresh(session: &Session, mut names: Vec<String>) -> anyhow::Result<Exit> {
    if names.is_empty() {
        names.extend(items(&session.client.images().await?).map(|image| name(image).to_owned()));
    }
    for name in names {
        session.console.note(format!("taking image/{name} anew: members keep the generation they have"));
        let image = session.client.refresh_image(&name).await?;
        session.console.print(format_args!("image/{name} is {}", text_at(&image, "/generation")))?;
    }
    Ok(Exit::DONE)
}

fn items(images: &Value) -> impl Iterator<Item = &Value> {
    images.get("items").and_then(Value::as_array).into_iter().flatten()
}

fn name(image: &Value) -> &str {
    text_at(image, "/name")
}

fn row(image: &Value) -> [&str; 6] {
    let default = if image["default"] == true { "yes" } else { "no" };
    // The first machine made from an image takes it.
    let taken = |pointer, not_yet| match text_at(image, pointer) {
        "" => not_yet,
        text => text,
    };
    [
        name(image),
        text_at(image, "/distribution"),
        text_at(image, "/version"),
        default,
        taken("/generation", "-"),
        taken("/takenAt", "not yet"),
    ]
}
