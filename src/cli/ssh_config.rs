//! `rl ssh-config`: an OpenSSH configuration for members and leases by name.
//!
//! It has a block for each that can be reached now, with pinned host keys, and one for `*.rl`,
//! which asks the daemon for the host keys at each connection: new members work by that name at
//! once, without writing the configuration anew.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use serde_json::Value;

use super::failure::Exit;
use super::key;
use super::kinds;
use super::output::{name_of, text_at};
use super::session::Session;
use super::ssh::{self, Host, SUFFIX};
use crate::client::ListOptions;

/// The login user of members whose pool sets no other.
const USUAL_USER: &str = "dev";

/// What to print.
#[derive(Debug, Args)]
pub struct SshConfigArgs {
    /// Print the host keys of one host, for OpenSSH's KnownHostsCommand
    #[arg(long, hide = true, value_name = "HOST")]
    known_hosts: Option<String>,
}

/// Prints the configuration.
pub async fn run(session: &Session, args: SshConfigArgs) -> anyhow::Result<Exit> {
    if let Some(name) = args.known_hosts {
        let host = ssh::host(session, &name).await?;
        session.console.print_raw(&host.known_hosts(&name))?;
        return Ok(Exit::DONE);
    }
    let key = key::ensure(session).await?;
    let server = session.client.server().await?;
    let mut text = String::from(
        "# Written by `rl ssh-config`. Use it with `ssh -F FILE NAME`, or `Include` it in ~/.ssh/config.\n",
    );
    for (names, host) in hosts(session).await? {
        let proxy = ssh::proxy_command(&server, &host.alias())?;
        let known_hosts = host.pin(session)?;
        block(&mut text, &names.join(" "), &ssh::options(&host, &proxy, &key.file, &known_hosts));
    }
    text.push_str("\n# Any other by NAME.rl or NAME.NAMESPACE.rl\n");
    block(&mut text, &format!("*{SUFFIX}"), &any(session, &server, &key.file)?);
    session.console.print_raw(&text)?;
    Ok(Exit::DONE)
}

/// Every member that can be reached, and with it the leases it is held by.
async fn hosts(session: &Session) -> anyhow::Result<Vec<(Vec<String>, Host)>> {
    let namespace = &session.namespace;
    let every = ListOptions::default();
    let members = session.all(kinds::workstations(&session.registry));
    let members = session.client.list(&members, &every).await?.items;
    let leases = session.all(kinds::leases(&session.registry));
    let leases = session.client.list(&leases, &every).await?.items;
    let mut hosts: Vec<(Vec<String>, Host)> = members
        .iter()
        .filter_map(|member| {
            let name = name_of(member);
            Some((vec![name.to_owned()], Host::of(name, namespace, member)?))
        })
        .collect();
    for lease in leases.iter().filter(|lease| text_at(lease, "/status/phase") == "Ready") {
        add_lease(&mut hosts, namespace, lease);
    }
    Ok(hosts)
}

/// A lease's name stands for its member, also where the member itself may not be read.
fn add_lease(hosts: &mut Vec<(Vec<String>, Host)>, namespace: &str, lease: &Value) {
    let member = text_at(lease, "/status/workstationName");
    let taken = hosts.iter().any(|(names, _)| names.iter().any(|name| name == name_of(lease)));
    let names: Vec<String> = if taken { Vec::new() } else { vec![name_of(lease).to_owned()] };
    if let Some((present, _)) = hosts.iter_mut().find(|(_, host)| host.workstation == member) {
        present.extend(names);
    } else {
        let all = std::iter::once(member.to_owned()).chain(names).collect();
        hosts.extend(Host::of(member, namespace, lease).map(|host| (all, host)));
    }
}

fn any(
    session: &Session,
    server: &crate::client::Server,
    identity: &Path,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let wildcard = Host {
        workstation: String::new(),
        namespace: session.namespace.clone(),
        user: USUAL_USER.into(),
        host_keys: Vec::new(),
    };
    let proxy = ssh::proxy_command(server, "%n")?;
    let lookup = proxy.replacen(" proxy ", " ssh-config ", 1).replace(" %n", " --known-hosts %n");
    let options = ssh::options(&wildcard, &proxy, identity, Path::new("/dev/null"));
    let kept = options.into_iter().filter(|(option, _)| *option != "HostKeyAlias");
    Ok(kept.chain([("HostKeyAlias", "%n".to_owned()), ("KnownHostsCommand", lookup)]).collect())
}

fn block(text: &mut String, names: &str, options: &[(&'static str, String)]) {
    let written = (|| {
        writeln!(text, "\nHost {names}")?;
        options.iter().try_for_each(|(option, value)| writeln!(text, "  {option} {value}"))
    })();
    written.expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_is_another_name_of_its_member() {
        let ssh = json!({"user": "dev", "hostKeys": ["ssh-ed25519 AAAA"]});
        let member = json!({"metadata": {"name": "p-1"}, "status": {"ssh": ssh}});
        let lease = |name: &str, member: &str| json!({"metadata": {"name": name}, "status": {"workstationName": member, "ssh": ssh}});
        let mut hosts = vec![(vec!["p-1".to_owned()], Host::of("p-1", "local", &member).expect("reachable"))];
        add_lease(&mut hosts, "local", &lease("my-build", "p-1"));
        add_lease(&mut hosts, "local", &lease("other", "p-2"));
        let names: Vec<&[String]> = hosts.iter().map(|(names, _)| names.as_slice()).collect();
        assert_eq!(names, [["p-1", "my-build"], ["p-2", "other"]]);
    }
}
