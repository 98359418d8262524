//! Which program this is: client, daemon, launcher, init or agent.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agent", "--control-fd", control, "--ssh-fd", ssh] => agent(control, ssh),
        _ => {
            eprintln!("rl: not built yet");
            ExitCode::from(2)
        }
    }
}

fn agent(control: &str, ssh: &str) -> ExitCode {
    let (Ok(control), Ok(ssh)) = (control.parse(), ssh.parse()) else {
        eprintln!("rl agent: a descriptor is a number");
        return ExitCode::from(2);
    };
    match ringleader::agent::main(control, ssh) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rl agent: {error}");
            ExitCode::FAILURE
        }
    }
}
