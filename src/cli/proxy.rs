//! `rl proxy`: stdin and stdout become a stream to a member's SSH server.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use clap::Args;

use super::failure::Exit;
use super::kinds;
use super::session::Session;
use super::ssh;
use crate::client::Target;

/// A pipe holds so much, and a socket about three times that.
const BUFFER_BYTES: usize = 64 * 1024;

/// Where to.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// A workstation's or a lease's name; .NAMESPACE and .rl may follow
    name: String,
}

/// Connects, and carries bytes both ways until the member ends the stream.
pub async fn run(session: &Session, args: ProxyArgs) -> anyhow::Result<Exit> {
    let (name, namespace) = ssh::addressed(session, &args.name);
    let workstation = Target::new(kinds::workstations(&session.registry), &namespace, &name);
    let (stream, first) = match session.client.ssh(&workstation).await {
        Ok(door) => door,
        // Most names are members'; only for others is the lease looked up.
        Err(error) if error.is_not_found() => {
            let member = ssh::member_of_lease(session, &name, &namespace).await?;
            session.client.ssh(&member).await?
        }
        Err(error) => return Err(error.into()),
    };
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    carry(&stream, &first, input, output)?;
    Ok(Exit::DONE)
}

/// Copies both ways, blocking, a thread each: nothing is scheduled per packet.
fn carry(stream: &UnixStream, first: &[u8], mut input: File, mut output: File) -> io::Result<()> {
    output.write_all(first)?;
    let mut sending = stream.try_clone()?;
    thread::spawn(move || {
        // A stream that broke ends the other direction too, which is the one that reports it.
        let _ = pump(&mut input, &mut sending);
        let _ = sending.shutdown(Shutdown::Write);
    });
    match pump(&mut &*stream, &mut output) {
        Ok(()) => Ok(()),
        // Whoever asked has gone: so are we.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(error),
    }
}

/// Read and write, and never `io::copy`: between a socket and a pipe that splices, and a splice
/// that waits for the socket keeps the pipe locked, so that whoever reads it (ssh) waits for ever
/// for what is in it already.
fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_both_ways_and_what_came_early_goes_first() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        let (input, mut typing) = io::pipe().expect("a pipe");
        let (mut reading, output) = io::pipe().expect("a pipe");
        let (input, output) =
            (File::from(std::os::fd::OwnedFd::from(input)), File::from(std::os::fd::OwnedFd::from(output)));
        let carrying = thread::spawn(move || carry(&ours, b"early ", input, output));
        typing.write_all(b"request").expect("written");
        drop(typing);
        let mut request = String::new();
        theirs.read_to_string(&mut request).expect("the end of what was sent");
        assert_eq!(request, "request");
        theirs.write_all(b"late").expect("written");
        drop(theirs);
        let mut answer = String::new();
        reading.read_to_string(&mut answer).expect("the end of what came");
        assert_eq!(answer, "early late");
        carrying.join().expect("no panic").expect("carried");
    }
}
