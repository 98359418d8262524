//! The command line: one file a command family.
//!
//! `parse` reads what was typed; `main` runs the daemon itself, and hands everything else to
//! `Invocation::run`. Results go to stdout and nothing else does; progress, hints and errors go
//! to stderr; the exit codes are those of `failure::Exit`.
//!
//! To add a command: a file with its arguments and its `run`, a line in `grammar::Command`, and a
//! line in `dispatch` below.

mod apply;
mod auth;
mod completion;
mod console;
mod daemon;
mod delete;
mod describe;
mod device;
mod doctor;
mod failure;
mod get;
mod grammar;
mod image;
mod interrupt;
mod key;
mod kinds;
mod lease;
mod leasing;
mod manifest;
mod namespace;
mod output;
mod pool;
mod proxy;
mod quickstart;
mod server;
mod session;
mod settings;
mod shell;
mod ssh;
mod ssh_config;
#[cfg(test)]
mod tests;
mod usage;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use self::console::Console;
pub use self::daemon::DaemonRun;
pub use self::doctor::{Check, Finding};
use self::failure::{Exit, exit_of, is_broken_pipe};
use self::grammar::{Command, CommonVerb, Globals, Grammar};
use self::kinds::Selection;
use self::session::Session;
use self::settings::Environment;
use crate::object::{Kind, registry};

/// Which program was asked for.
#[derive(Debug)]
pub enum Program {
    /// `rl daemon run`.
    Daemon(DaemonRun),
    /// Everything a client does.
    Client(Box<Invocation>),
}

/// What `main` lends to the commands that need more than the API.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// What of this machine stands in the way of a daemon: for `rl doctor` and `rl quickstart`.
    pub checks: fn() -> Vec<Check>,
}

/// Reads the arguments, the program's name first. What is wrong with them (or the help that was
/// asked for) has been printed when this returns an exit code.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Program, ExitCode> {
    read(args).map_err(|error| {
        // Nothing better can be done where the stream is closed.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(Exit::USAGE.0) } else { ExitCode::SUCCESS }
    })
}

fn read(args: impl IntoIterator<Item = OsString>) -> Result<Program, clap::Error> {
    let grammar = Grammar::try_parse_from(grammar::normalised(args, &registry()))?;
    Ok(match grammar.command {
        Command::Daemon(daemon::DaemonVerb::Run(run)) => Program::Daemon(run),
        command => Program::Client(Box::new(Invocation { globals: grammar.globals, command })),
    })
}

/// One client command with its flags.
#[derive(Debug)]
pub struct Invocation {
    globals: Globals,
    command: Command,
}

impl Invocation {
    /// Runs the command to its end.
    #[must_use]
    pub fn run(self, hooks: Hooks) -> ExitCode {
        let console = Console::of_process(self.globals.quiet);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let exit = match runtime {
            Ok(runtime) => {
                let exit = runtime.block_on(self.run_in(Environment::of_process(), console, hooks));
                // A read of stdin that nobody waits for any more must not keep the process.
                runtime.shutdown_background();
                exit
            }
            Err(error) => {
                console.complain(format_args!("error: cannot start: {error}"));
                Exit::FAILED
            }
        };
        ExitCode::from(exit.0)
    }

    /// Runs the command with these variables and streams, and reports its failure.
    async fn run_in(self, environment: Environment, console: Console, hooks: Hooks) -> Exit {
        // These pass the remote command's exit code on, so that their own failure needs another.
        let own_failure = matches!(self.command, Command::Shell(_)).then_some(Exit::OWN_FAILURE);
        let outcome = async {
            let session = Session::new(self.globals, environment, console.clone())?;
            dispatch(&session, self.command, hooks).await
        };
        match outcome.await {
            Ok(exit) => exit,
            Err(error) if is_broken_pipe(&error) => Exit::FAILED,
            Err(error) => {
                console.complain(format_args!("error: {error:#}"));
                own_failure.unwrap_or_else(|| exit_of(&error))
            }
        }
    }
}

async fn dispatch(session: &Session, command: Command, hooks: Hooks) -> anyhow::Result<Exit> {
    match command {
        Command::Quickstart(args) => quickstart::run(session, args, hooks).await,
        Command::Apply(args) => apply::run(session, args).await,
        Command::Get { objects, options } => {
            get::run(session, kinds::select(&session.registry, &objects)?, options).await
        }
        Command::Describe { objects } => {
            describe::run(session, kinds::select(&session.registry, &objects)?).await
        }
        Command::Delete { objects, options } => {
            delete::run(session, kinds::select(&session.registry, &objects)?, options).await
        }
        Command::Wait { objects, options } => {
            wait::run(session, kinds::select(&session.registry, &objects)?, options).await
        }
        Command::Pool(verb) => pool::run(session, verb).await,
        Command::Lease(verb) => lease::run(session, verb).await,
        Command::Workstation(verb) => common(session, kinds::workstations(&session.registry), verb).await,
        Command::Namespace(verb) => namespace::run(session, verb).await,
        Command::Device(verb) => device::run(session, verb).await,
        Command::User(verb) => common(session, kinds::known(&session.registry, "user"), verb).await,
        Command::Event(verb) => common(session, kinds::known(&session.registry, "event"), verb).await,
        Command::Shell(args) => shell::run(session, args).await,
        Command::Proxy(args) => proxy::run(session, args).await,
        Command::SshConfig(args) => ssh_config::run(session, args).await,
        Command::Auth(verb) => auth::run(session, verb).await,
        Command::Status(args) => server::status(session, args).await,
        Command::Version(args) => server::version(session, args).await,
        Command::Doctor(args) => doctor::run(session, args, hooks).await,
        Command::Image(verb) => image::run(session, verb).await,
        Command::Daemon(daemon::DaemonVerb::Run(_)) => unreachable!("`parse` gives this to main"),
        Command::Completion(args) => completion::run(session, args),
    }
}

/// `rl <kind> get|describe|delete|wait`: the same as `rl get|… <kind>`.
async fn common(session: &Session, kind: &'static Kind, verb: CommonVerb) -> anyhow::Result<Exit> {
    let of = |names| vec![Selection { kind, names }];
    match verb {
        CommonVerb::Get { names, options } => get::run(session, of(names), options).await,
        CommonVerb::Describe { names } => describe::run(session, of(names)).await,
        CommonVerb::Delete { names, options } => delete::run(session, of(names), options).await,
        CommonVerb::Wait { names, options } => wait::run(session, of(names), options).await,
    }
}
