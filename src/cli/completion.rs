//! `rl completion SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::Exit;
use super::grammar::Grammar;
use super::session::Session;

/// Which shell.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// For bash: `source <(rl completion bash)`
    shell: Shell,
}

/// Prints the script.
pub fn run(session: &Session, args: CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Grammar::command(), "rl", &mut script);
    session.console.print_raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::DONE)
}
