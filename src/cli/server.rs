//! `rl status`, `rl version`: the daemon itself.

use clap::Args;

use super::failure::{Exit, usage};
use super::output::table::Table;
use super::output::{self, Format};
use super::session::Session;

/// How it is printed.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// table, json, yaml or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Format,
}

/// How much is asked.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Only that of this program: needs no daemon
    #[arg(long)]
    client: bool,
}

/// Shows how the daemon and its providers are; fails while it is not ready.
pub async fn status(session: &Session, args: StatusArgs) -> anyhow::Result<Exit> {
    let health = session.client.health().await?;
    let exit = if health.not_ready.is_empty() { Exit::DONE } else { Exit::FAILED };
    let console = &session.console;
    let value = serde_json::to_value(&health)?;
    match args.output {
        Format::Json => console.print(serde_json::to_string_pretty(&value)?)?,
        Format::Yaml => console.print_raw(&output::yaml(&value)?)?,
        Format::JsonPath(path) => console.print_raw(&path.render(&value))?,
        Format::Name => return Err(usage("-o name: a status has no name; write table, json or yaml")),
        Format::Table | Format::Wide => {
            console.print(format_args!("Server:    {}", session.client.server().await?))?;
            console.print(format_args!("Version:   {}", health.version))?;
            console.print(format_args!("Instance:  {}", health.instance))?;
            console.print(format_args!("Data:      {}", health.data_dir))?;
            match health.not_ready.as_slice() {
                [] => console.print("Ready:     yes")?,
                reasons => console.print(format_args!("Ready:     no: {}", reasons.join("; ")))?,
            }
            let mut table = Table::new(["provider", "state", "message"]);
            for provider in health.providers {
                table.row([provider.name, provider.state, provider.message]);
            }
            console.print("")?;
            table.lines().into_iter().try_for_each(|line| console.print(line))?;
        }
    }
    Ok(exit)
}

/// Shows both versions.
pub async fn version(session: &Session, args: VersionArgs) -> anyhow::Result<Exit> {
    let console = &session.console;
    console.print(format_args!("client {}", env!("CARGO_PKG_VERSION")))?;
    if !args.client {
        let health = session.client.health().await?;
        console.print(format_args!("server {} at {}", health.version, session.client.server().await?))?;
    }
    Ok(Exit::DONE)
}
