//! How the stock OpenSSH client reaches a member: through `rl proxy`, with this device's key, and
//! with host keys that come from the API and from nowhere else.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use super::kinds;
use super::output::{name_of, text_at};
use super::session::Session;
use super::settings::write_whole;
use super::wait::failed;
use crate::client::{Server, Target};
use crate::object::POOL_LABEL;

/// The end of a host name that always means one of ours.
pub const SUFFIX: &str = ".rl";

/// A member as SSH sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "SSH calls them host keys")]
pub struct Host {
    /// The workstation's name.
    pub workstation: String,
    pub namespace: String,
    /// The member's login user.
    pub user: String,
    /// Type and key, as known_hosts has them.
    pub host_keys: Vec<String>,
}

impl Host {
    /// What stands in known_hosts for the name: unique over all namespaces.
    pub fn alias(&self) -> String {
        format!("{}.{}{SUFFIX}", self.workstation, self.namespace)
    }

    /// The lines of a known_hosts file under one name.
    pub fn known_hosts(&self, name: &str) -> String {
        self.host_keys.iter().map(|key| format!("{name} {key}\n")).collect()
    }

    /// Pins the host keys: writes them where only this host's are looked up.
    pub fn pin(&self, session: &Session) -> anyhow::Result<PathBuf> {
        let file = session.environment.config_dir()?.join("known_hosts").join(self.alias());
        write_whole(&file, &self.known_hosts(&self.alias()))?;
        Ok(file)
    }

    /// From an object's `status.ssh`, where it can be reached.
    pub fn of(workstation: &str, namespace: &str, object: &Value) -> Option<Self> {
        let ssh = object.pointer("/status/ssh")?;
        let host_keys: Vec<String> = ssh
            .get("hostKeys")?
            .as_array()?
            .iter()
            .filter_map(|key| key.as_str().map(str::to_owned))
            .collect();
        let user = text_at(ssh, "/user").to_owned();
        (!host_keys.is_empty() && !user.is_empty()).then(|| Self {
            workstation: workstation.to_owned(),
            namespace: namespace.to_owned(),
            user,
            host_keys,
        })
    }
}

/// A name as a person or OpenSSH gives it: `NAME`, `NAME.NAMESPACE`, either with `.rl`.
pub fn addressed(session: &Session, name: &str) -> (String, String) {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    match name.split_once('.') {
        Some((name, namespace)) => (name.to_owned(), namespace.to_owned()),
        None => (name.to_owned(), session.namespace.clone()),
    }
}

/// The member of that name, or the member of the lease of that name.
pub async fn host(session: &Session, name: &str) -> anyhow::Result<Host> {
    let (name, namespace) = addressed(session, name);
    let workstation = Target::new(kinds::workstations(&session.registry), &namespace, &name);
    if let Some(object) = session.client.find(&workstation).await? {
        return Host::of(&name, &namespace, &object)
            .with_context(|| unreachable_because(&workstation, &object));
    }
    let lease = Target::new(kinds::leases(&session.registry), &namespace, &name);
    match session.client.find(&lease).await? {
        Some(object) => {
            let member = text_at(&object, "/status/workstationName");
            Host::of(member, &namespace, &object).with_context(|| unreachable_because(&lease, &object))
        }
        None => bail!(nobody(&name, &namespace)),
    }
}

/// The workstation behind a name, for the door alone.
pub async fn member_of_lease(session: &Session, name: &str, namespace: &str) -> anyhow::Result<Target> {
    let lease = Target::new(kinds::leases(&session.registry), namespace, name);
    let Some(object) = session.client.find(&lease).await? else { bail!(nobody(name, namespace)) };
    match text_at(&object, "/status/workstationName") {
        "" => bail!(unreachable_because(&lease, &object)),
        member => Ok(Target::new(kinds::workstations(&session.registry), namespace, member)),
    }
}

fn nobody(name: &str, namespace: &str) -> String {
    format!(
        "no workstation and no lease {name:?} in namespace {namespace}: \
         `rl get workstation,workstationpoollease -n {namespace}` lists them"
    )
}

fn unreachable_because(target: &Target, object: &Value) -> String {
    let (kind, name) = (target.kind.singular, name_of(object));
    let phase = text_at(object, "/status/phase");
    match phase {
        "Failed" => format!("{target} {}", failed(object)),
        "Stopped" => match object.pointer("/metadata/labels").and_then(|labels| labels.get(POOL_LABEL)) {
            Some(pool) => format!(
                "{target} is an idle member: `rl workstationpool lease {}` lends you one",
                pool.as_str().unwrap_or_default()
            ),
            None => format!("{target} is Stopped: apply it with `stopped: false` in its spec"),
        },
        _ => {
            let phase = if phase.is_empty() { "Pending" } else { phase };
            let namespace = target.namespace.as_deref().unwrap_or_default();
            format!("{target} is {phase} and cannot be reached yet: `rl wait {kind} {name} -n {namespace}`")
        }
    }
}

/// The `ProxyCommand` for a host: this program by its absolute path, to the same daemon.
pub fn proxy_command(server: &Server, name: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot tell where `rl` itself is")?;
    Ok(format!(
        "{} proxy --server {} {name}",
        quoted(&program.to_string_lossy()),
        quoted(&server.to_string())
    ))
}

/// Quoted for the shell that OpenSSH runs commands with, and for OpenSSH's own `%` tokens.
fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@,=".contains(character);
    let text = text.replace('%', "%%");
    if text.chars().all(|character| plain(character) || character == '%') {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The options that make OpenSSH reach `host` and trust nothing but what is pinned.
pub fn options(host: &Host, proxy: &str, identity: &Path, known_hosts: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("User", host.user.clone()),
        ("ProxyCommand", proxy.to_owned()),
        ("HostKeyAlias", host.alias()),
        ("UserKnownHostsFile", in_config(known_hosts)),
        ("GlobalKnownHostsFile", "/dev/null".into()),
        ("StrictHostKeyChecking", "yes".into()),
        ("UpdateHostKeys", "no".into()),
        ("IdentityFile", in_config(identity)),
        ("IdentitiesOnly", "yes".into()),
        ("PreferredAuthentications", "publickey".into()),
    ]
}

/// A path as OpenSSH's configuration reads one: quoted where it has spaces, `%` doubled.
pub fn in_config(path: &Path) -> String {
    let text = path.to_string_lossy().replace('%', "%%");
    if text.contains(char::is_whitespace) { format!("\"{text}\"") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_is_reachable_once_its_host_keys_are_known() {
        let object = json!({"status": {"ssh": {"user": "dev", "hostKeys": ["ssh-ed25519 AAAA"]}}});
        let host = Host::of("p-1", "local", &object).expect("reachable");
        assert_eq!(host.known_hosts(&host.alias()), "p-1.local.rl ssh-ed25519 AAAA\n");
        assert_eq!(
            Host::of("p-1", "local", &json!({"status": {"ssh": {"user": "dev", "hostKeys": []}}})),
            None
        );
        assert_eq!(Host::of("p-1", "local", &json!({"status": {}})), None);
    }

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted("/usr/bin/rl"), "/usr/bin/rl");
        assert_eq!(quoted("/my tools/rl's"), r"'/my tools/rl'\''s'");
        assert_eq!(quoted("/100%/rl"), "/100%%/rl");
    }
}
