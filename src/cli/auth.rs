//! `rl auth …`: status.

use clap::Subcommand;

use super::failure::Exit;
use super::key;
use super::session::Session;

/// What can be asked about access.
#[derive(Debug, Subcommand)]
pub enum AuthVerb {
    /// Who the daemon takes you for, and by which device
    Status,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: AuthVerb) -> anyhow::Result<Exit> {
    match verb {
        AuthVerb::Status => {
            let owner = key::owner(session).await?;
            let key = key::ensure(session).await?;
            let console = &session.console;
            console.print(format_args!("Server:     {}", session.client.server().await?))?;
            console.print(format_args!("User:       {owner}"))?;
            console.print(format_args!("Device:     {} ({})", key.device, key.file.display()))?;
            console.print(format_args!("Namespace:  {}", session.namespace))?;
            Ok(Exit::DONE)
        }
    }
}
