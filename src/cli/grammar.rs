//! The grammar: what may be typed. One type a command; their meaning is in the files of the
//! families.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::{
    apply, auth, completion, daemon, delete, device, doctor, get, image, lease, namespace, pool, proxy,
    quickstart, server, shell, ssh_config, wait,
};
use crate::object::Registry;

/// One machine becomes a pool of ready workstations, lent out one at a time.
#[derive(Debug, Parser)]
#[command(
    name = "rl",
    version,
    disable_help_subcommand = true,
    after_help = "Begin with `rl quickstart`. Kinds may be written in singular, plural or short: \
                  workstationpool (wsp), workstationpoollease (wspl), workstation (ws)."
)]
pub struct Grammar {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// The daemon, as unix:///path [env: RL_SERVER] [default: the first that answers of
    /// $XDG_RUNTIME_DIR/ringleader/rl.sock and /run/ringleader/rl.sock]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The namespace [env: RL_NAMESPACE] [default: that of `rl namespace use`, else local]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// This device's SSH key, made where there is none [env: RL_IDENTITY] [default:
    /// ~/.config/ringleader/device_ed25519]
    #[arg(long, global = true, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Show no progress and no hints on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// Options of `Globals` that are followed by a value.
const GLOBALS_WITH_VALUE: [&str; 4] = ["--server", "--namespace", "-n", "--identity"];

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a pool and try the whole way once: lease, run a command, release
    Quickstart(quickstart::QuickstartArgs),
    /// Create or update what manifests declare
    Apply(apply::ApplyArgs),
    /// List objects, or print one: rl get KIND [NAME]
    Get {
        /// KIND [NAME…], KIND,KIND or KIND/NAME…
        #[arg(required = true, value_name = "KIND [NAME]")]
        objects: Vec<String>,
        #[command(flatten)]
        options: get::GetOptions,
    },
    /// Show an object with all that belongs to it: rl describe KIND [NAME]
    Describe {
        /// KIND [NAME…] or KIND/NAME…
        #[arg(required = true, value_name = "KIND [NAME]")]
        objects: Vec<String>,
    },
    /// Delete objects: rl delete KIND NAME…
    Delete {
        /// KIND NAME… or KIND/NAME…
        #[arg(required = true, value_name = "KIND [NAME]")]
        objects: Vec<String>,
        #[command(flatten)]
        options: delete::DeleteOptions,
    },
    /// Wait until an object is as it should be: rl wait KIND NAME
    Wait {
        /// KIND NAME or KIND/NAME
        #[arg(required = true, value_name = "KIND NAME")]
        objects: Vec<String>,
        #[command(flatten)]
        options: wait::WaitOptions,
    },

    /// Pools: create, lease, usage, get, describe, delete, wait
    #[command(subcommand, name = "workstationpool", visible_alias = "wsp")]
    Pool(pool::PoolVerb),
    /// Leases: release, renew, get, describe, delete, wait
    #[command(subcommand, name = "workstationpoollease", visible_alias = "wspl")]
    Lease(lease::LeaseVerb),
    /// Workstations, pool members among them: get, describe, delete, wait
    #[command(subcommand, visible_alias = "ws")]
    Workstation(CommonVerb),
    /// Namespaces: use, get, describe, delete
    #[command(subcommand, visible_alias = "ns")]
    Namespace(namespace::NamespaceVerb),
    /// This person's devices: list, add, remove
    #[command(subcommand)]
    Device(device::DeviceVerb),
    /// Users: get, describe, delete
    #[command(subcommand)]
    User(CommonVerb),
    /// Events: get, describe
    #[command(subcommand)]
    Event(CommonVerb),

    /// Open a shell on a member or run a command there, by the member's or the lease's name
    Shell(shell::ShellArgs),
    /// Connect stdin and stdout to a member's SSH server (an OpenSSH ProxyCommand)
    Proxy(proxy::ProxyArgs),
    /// Print an OpenSSH configuration that reaches members and leases by name
    SshConfig(ssh_config::SshConfigArgs),

    /// Who the daemon takes you for
    #[command(subcommand)]
    Auth(auth::AuthVerb),
    /// Show how the daemon and its providers are
    Status(server::StatusArgs),
    /// Show the versions of rl and of the daemon
    Version(server::VersionArgs),
    /// Check what of this machine stands in the way, each with its cure
    Doctor(doctor::DoctorArgs),
    /// The daemon's images: list, refresh
    #[command(subcommand)]
    Image(image::ImageVerb),
    /// The daemon: run
    #[command(subcommand)]
    Daemon(daemon::DaemonVerb),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
}

/// What can be done with objects of every kind.
#[derive(Debug, Subcommand)]
pub enum CommonVerb {
    /// List them, or print those named
    Get {
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        options: get::GetOptions,
    },
    /// Show one with all that belongs to it
    Describe {
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Delete them
    Delete {
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        options: delete::DeleteOptions,
    },
    /// Wait until one is as it should be
    Wait {
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        options: wait::WaitOptions,
    },
}

/// Brings what was typed into the one form that `Grammar` reads: a kind is written in its
/// singular, and `VERB KIND` becomes `KIND VERB` where only the kind has the verb.
pub fn normalised(args: impl IntoIterator<Item = OsString>, registry: &Registry) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let Some(first) = next_word(&args, 1) else { return args };
    if let Some(kind) = kind_of(registry, &args[first]) {
        args[first] = kind.into();
        return args;
    }
    let is_command =
        args[first].to_str().is_some_and(|word| Grammar::command().find_subcommand(word).is_some());
    if is_command {
        return args;
    }
    if let Some(second) = next_word(&args, first + 1)
        && let Some(kind) = kind_of(registry, &args[second])
    {
        args[second] = kind.into();
        args.swap(first, second);
    }
    args
}

fn kind_of(registry: &Registry, word: &OsStr) -> Option<&'static str> {
    registry.by_word(word.to_str()?).map(|kind| kind.singular)
}

/// Where the next argument stands that is neither a global flag nor its value.
fn next_word(args: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let word = args.get(at)?.to_str()?;
        match word {
            "--" => return None,
            flag if GLOBALS_WITH_VALUE.contains(&flag) => at += 2,
            flag if flag.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::registry;

    fn typed(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        let words = normalised(args, &registry());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_grammar_contradicts_itself_nowhere() {
        Grammar::command().debug_assert();
    }

    #[test]
    fn a_kind_is_known_in_every_way_to_write_it() {
        for word in
            ["workstationpool", "workstationpools", "wsp", "WorkstationPool", "WORKSTATIONPOOLS", "WSP"]
        {
            assert_eq!(typed(&format!("rl {word} lease p")), "rl workstationpool lease p");
        }
        assert_eq!(typed("rl ns use x"), "rl namespace use x");
    }

    #[test]
    fn both_orders_of_verb_and_kind_mean_the_same() {
        assert_eq!(typed("rl lease wsp p --wait"), "rl workstationpool lease p --wait");
        assert_eq!(typed("rl -n x create workstationpools p"), "rl -n x workstationpool create p");
        assert_eq!(typed("rl release --quiet wspl a b"), "rl workstationpoollease --quiet release a b");
        assert_eq!(typed("rl get wsp p"), "rl get wsp p");
    }

    #[test]
    fn what_is_no_kind_is_left_to_the_grammar() {
        assert_eq!(typed("rl shell workstation"), "rl shell workstation");
        assert_eq!(typed("rl nonsense thing"), "rl nonsense thing");
        assert_eq!(typed("rl --server"), "rl --server");
    }
}
