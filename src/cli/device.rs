//! `rl device …`: list, add, remove.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::delete::{self, DeleteOptions};
use super::failure::Exit;
use super::get::{self, GetOptions};
use super::grammar::CommonVerb;
use super::key;
use super::kinds::{self, Selection};
use super::session::Session;
use crate::client::Commit;

/// What can be done with devices.
#[derive(Debug, Subcommand)]
pub enum DeviceVerb {
    /// List the devices
    List(GetOptions),
    /// Register this device, or another by its public key
    Add(AddArgs),
    /// Remove devices: their keys open no new shells
    Remove {
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    #[command(flatten)]
    Common(CommonVerb),
}

/// Which device.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// What to call the other device
    #[arg(requires = "key")]
    name: Option<String>,
    /// The other device's public key [default: this device's]
    #[arg(long, value_name = "FILE", requires = "name")]
    key: Option<PathBuf>,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: DeviceVerb) -> anyhow::Result<Exit> {
    let kind = kinds::known(&session.registry, "device");
    match verb {
        DeviceVerb::List(options) => {
            get::run(session, vec![Selection { kind, names: Vec::new() }], options).await
        }
        DeviceVerb::Add(args) => add(session, args).await,
        DeviceVerb::Remove { names } => {
            delete::run(session, vec![Selection { kind, names }], DeleteOptions::default()).await
        }
        DeviceVerb::Common(verb) => super::common(session, kind, verb).await,
    }
}

async fn add(session: &Session, args: AddArgs) -> anyhow::Result<Exit> {
    let (Some(name), Some(file)) = (args.name, args.key) else {
        let key = key::ensure(session).await?;
        session.console.print(format_args!("device/{} is registered", key.device))?;
        return Ok(Exit::DONE);
    };
    let target = key::device(session, &name);
    let object = key::device_object(&target, &key::public_half(&file)?);
    session.client.create(&target, &object, Commit::Write).await?;
    session.console.print(format_args!("{target} created"))?;
    Ok(Exit::DONE)
}
