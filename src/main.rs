//! Which program this is: client, daemon, launcher, init or agent.

use std::ffi::OsString;
use std::process::ExitCode;

use ringleader::cli::{self, Check, Finding, Hooks, Program};
use ringleader::provider::sandbox::{doctor, launcher};
use ringleader::{agent, daemon};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let words: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // These three are started by the daemon, by the launcher and by init, never by a person.
    match words.first().map(String::as_str) {
        Some("launcher") => return code(launcher::main()),
        Some("init") => return code(agent::init::main(&words[1..])),
        Some("agent") => return run_agent(&words[1..]),
        Some(_) | None => {}
    }
    match cli::parse(arguments) {
        Ok(Program::Daemon(run)) => daemon::run(run),
        Ok(Program::Client(invocation)) => invocation.run(Hooks { checks }),
        Err(exit) => exit,
    }
}

fn run_agent(words: &[String]) -> ExitCode {
    let descriptors = match words {
        [control_flag, control, ssh_flag, ssh]
            if control_flag == "--control-fd" && ssh_flag == "--ssh-fd" =>
        {
            control.parse().ok().zip(ssh.parse().ok())
        }
        _ => None,
    };
    let Some((control, ssh)) = descriptors else {
        eprintln!("rl agent is started by `rl init`: --control-fd N --ssh-fd N");
        return ExitCode::from(2);
    };
    match agent::main(control, ssh) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rl agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// What of this machine stands in the way of a daemon.
fn checks() -> Vec<Check> {
    let finding = |state| match state {
        doctor::State::Good => Finding::Fine,
        doctor::State::Limited => Finding::Warning,
        doctor::State::Missing => Finding::Blocking,
    };
    let of = |check: doctor::Check| Check {
        name: check.name.to_owned(),
        finding: finding(check.state),
        message: check.message,
        cure: check.cure.unwrap_or_default(),
    };
    doctor::checks().into_iter().map(of).collect()
}
