//! `rl shell`: a shell on a member, or a command there, by the system's OpenSSH client.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::Context;
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::failure::Exit;
use super::interrupt::{Interrupt, Interrupts};
use super::key;
use super::session::Session;
use super::ssh;

/// What ssh exits with when it failed itself. A remote command may exit with it too.
const SSH_FAILED: u8 = 255;

/// Where, and what to run there.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// A workstation's or a lease's name
    name: String,
    /// Run this instead of a login shell; the words are joined and read by the remote shell
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl ShellArgs {
    /// `command` on `name`.
    pub fn new(name: &str, command: &str) -> Self {
        Self { name: name.to_owned(), command: vec![command.into()] }
    }
}

/// Runs the shell or the command, and passes its exit code on.
pub async fn run(session: &Session, args: ShellArgs) -> anyhow::Result<Exit> {
    let host = ssh::host(session, &args.name).await?;
    let key = key::ensure(session).await?;
    let proxy = ssh::proxy_command(&session.client.server().await?, &host.alias())?;
    let known_hosts = host.pin(session)?;
    let connected = Connected::new().context("cannot make a pipe")?;

    let mut command = Command::new("ssh");
    // The person's own configuration is for their own hosts.
    command.args([
        "-F",
        "none",
        if io::stdin().is_terminal() && io::stdout().is_terminal() { "-t" } else { "-T" },
    ]);
    let private = [
        ("IdentityAgent", "none".to_owned()),
        ("LogLevel", "ERROR".to_owned()),
        ("PermitLocalCommand", "yes".to_owned()),
        ("LocalCommand", connected.local_command()),
    ];
    for (option, value) in ssh::options(&host, &proxy, &key.file, &known_hosts).into_iter().chain(private) {
        command.args(["-o", &format!("{option}={value}")]);
    }
    command.arg("--").arg(host.alias()).args(&args.command);
    // OpenSSH runs the proxy and the local command with this shell; the plainest starts fastest.
    command.env("SHELL", "/bin/sh");

    let mut interrupts = Interrupts::take()?;
    let child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "the OpenSSH client `ssh` is not installed: `sudo apt-get install openssh-client`"
        ),
        _ => anyhow::Error::new(error).context("cannot start ssh"),
    })?;
    let status = wait(child, &mut interrupts).await?;
    Ok(exit_of(status, connected))
}

/// Waits for ssh, which gets every signal that is meant to end us.
async fn wait(mut child: Child, interrupts: &mut Interrupts) -> io::Result<ExitStatus> {
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    loop {
        let interrupt = tokio::select! {
            status = child.wait() => return status,
            interrupt = interrupts.next() => interrupt,
        };
        let signal = match interrupt {
            Interrupt::Interrupt => Signal::INT,
            Interrupt::Terminate => Signal::TERM,
            Interrupt::HangUp => Signal::HUP,
        };
        if let Some(id) = id {
            // It may have ended this very moment; then `wait` says so next.
            let _ = kill_process(id, signal);
        }
    }
}

fn exit_of(status: ExitStatus, connected: Connected) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(SSH_FAILED) if !connected.was_reached() => Exit::OWN_FAILURE,
        Some(code) => Exit(code),
        None => Exit::OWN_FAILURE,
    }
}

/// Whether ssh got in. OpenSSH runs its `LocalCommand` once it has; ours writes into a pipe of
/// this process, so that a remote 255 can be told from ssh's own.
struct Connected {
    read: PipeReader,
    write: PipeWriter,
}

impl Connected {
    fn new() -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        Ok(Self { read, write })
    }

    fn local_command(&self) -> String {
        format!("echo >/proc/{}/fd/{}", std::process::id(), self.write.as_raw_fd())
    }

    /// To be asked once ssh has ended: nobody writes any more then.
    fn was_reached(mut self) -> bool {
        drop(self.write);
        self.read.read(&mut [0; 1]).is_ok_and(|count| count == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_255_is_told_from_sshs_own() {
        let failed = ExitStatus::from_raw(255 << 8);
        assert_eq!(exit_of(failed, Connected::new().expect("a pipe")), Exit::OWN_FAILURE);
        let connected = Connected::new().expect("a pipe");
        let ran = std::process::Command::new("/bin/sh").args(["-c", &connected.local_command()]).status();
        assert!(ran.expect("a shell").success());
        assert_eq!(exit_of(failed, connected), Exit(255));
    }

    #[test]
    fn every_other_code_is_passed_on() {
        let exit = |raw| exit_of(ExitStatus::from_raw(raw), Connected::new().expect("a pipe"));
        assert_eq!(exit(7 << 8), Exit(7));
        assert_eq!(exit(0), Exit::DONE);
        assert_eq!(exit(15), Exit(143));
    }
}
