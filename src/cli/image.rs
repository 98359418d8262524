//! `rl image …`: list, refresh.

use clap::Subcommand;
use serde_json::Value;

use super::failure::Exit;
use super::output::table::Table;
use super::output::text_at;
use super::session::Session;
use crate::client::Refresh;

/// What can be done with images.
#[derive(Debug, Subcommand)]
pub enum ImageVerb {
    /// List the images that members are made from
    List,
    /// Take the images anew; members keep the generation they have
    Refresh,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: ImageVerb) -> anyhow::Result<Exit> {
    let refresh = match verb {
        ImageVerb::List => Refresh::No,
        ImageVerb::Refresh => Refresh::Yes,
    };
    let answer = session.client.images(refresh).await?;
    let mut table = Table::new(["name", "generation", "distribution", "version", "state"]);
    for image in answer.get("items").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| text_at(image, &format!("/{name}")).to_owned();
        table.row(["name", "generation", "distribution", "version", "state"].map(field));
    }
    if table.is_empty() {
        session.console.note("no images yet: the first is taken when the first member is built");
        return Ok(Exit::DONE);
    }
    table.lines().into_iter().try_for_each(|line| session.console.print(line))?;
    Ok(Exit::DONE)
}
