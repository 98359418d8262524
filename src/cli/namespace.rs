//! `rl namespace …`: use.

use clap::Subcommand;

use super::failure::Exit;
use super::grammar::CommonVerb;
use super::kinds;
use super::session::Session;
use super::settings::Settings;

/// What can be done with namespaces.
#[derive(Debug, Subcommand)]
pub enum NamespaceVerb {
    /// Work in this namespace from now on, where no -n says another
    Use { name: String },
    #[command(flatten)]
    Common(CommonVerb),
}

/// Runs one verb.
pub async fn run(session: &Session, verb: NamespaceVerb) -> anyhow::Result<Exit> {
    let kind = kinds::known(&session.registry, "namespace");
    match verb {
        NamespaceVerb::Use { name } => {
            session.client.get(&session.target(kind, &name)).await?;
            let file = Settings::set(&session.environment, "namespace", &name)?;
            session
                .console
                .print(format_args!("namespace/{name} is used from now on ({})", file.display()))?;
            Ok(Exit::DONE)
        }
        NamespaceVerb::Common(verb) => super::common(session, kind, verb).await,
    }
}
