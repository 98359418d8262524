//! Commands as they are typed, against a small server: what they print, what they exit with, and
//! what they ask of the API.

mod commands;
mod refusals;
mod usage;

use std::sync::{Arc, Mutex, PoisonError};

use super::console::{Console, Look};
use super::settings::Environment;
use super::{Check, Exit, Hooks, Program, read};
use crate::client::fake::Fake;

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    exit: u8,
    out: String,
    err: String,
}

/// The variables of a person who uses this server.
fn environment(fake: &Fake) -> Environment {
    let (home, socket) = (fake.home(), format!("unix://{}", fake.socket().display()));
    Environment::from_pairs(&[("HOME", home.to_str().expect("an UTF-8 path")), ("RL_SERVER", &socket)])
}

/// Runs what is typed; words are parted by single spaces.
async fn typed(fake: &Fake, line: &str) -> Ran {
    run(environment(fake), line).await
}

async fn run(environment: Environment, line: &str) -> Ran {
    let program = match read(line.split(' ').map(Into::into)) {
        Ok(program) => program,
        Err(error) => {
            return Ran { exit: Exit::USAGE.0, out: String::new(), err: error.render().to_string() };
        }
    };
    let Program::Client(invocation) = program else { panic!("{line} is no client command") };
    let (out, err) = (Arc::new(Mutex::new(Vec::<u8>::new())), Arc::new(Mutex::new(Vec::<u8>::new())));
    let look = if invocation.globals.quiet { Look::Quiet } else { Look::Lines };
    let console = Console::captured(out.clone(), err.clone(), look);
    let exit = invocation.run_in(environment, console, Hooks { checks: no_checks }).await;
    Ran { exit: exit.0, out: text(&out), err: text(&err) }
}

fn no_checks() -> Vec<Check> {
    Vec::new()
}

fn text(sink: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&sink.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

/// The objects the tests work with.
mod objects {
    use serde_json::{Value, json};

    use crate::client::fake::Store;

    pub fn pool(name: &str) -> Value {
        json!({
            "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPool",
            "metadata": {"name": name, "namespace": "local", "generation": 1,
                "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {"template": {"spec": {}}, "size": {"max": 6}, "lease": {"maxTerm": "24h"}},
            "status": {"phase": "Ready", "capacity": {"max": 6, "members": 2, "room": 4},
                "members": {"idleRunning": 1, "idleStopped": 0, "leased": 1}, "leases": {"pending": 0}},
        })
    }

    pub fn member(name: &str, pool: &str) -> Value {
        json!({
            "apiVersion": "workstations.ringleader.dev/v1", "kind": "Workstation",
            "metadata": {"name": name, "namespace": "local",
                "labels": {"pools.ringleader.dev/pool": pool},
                "annotations": {"pools.ringleader.dev/state": "Leased", "pools.ringleader.dev/lease": "my-build",
                    "pools.ringleader.dev/reuses": "0"}},
            "spec": {},
            "status": {"phase": "Ready", "ssh": ssh()},
        })
    }

    pub fn lease(name: &str, pool: &str, status: &Value) -> Value {
        json!({
            "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPoolLease",
            "metadata": {"name": name, "namespace": "local", "labels": {"pools.ringleader.dev/pool": pool}},
            "spec": {"workstationPoolRef": {"name": pool}, "state": "Needed"},
            "status": status,
        })
    }

    pub fn ssh() -> Value {
        json!({"user": "dev", "hostKeys": ["ssh-ed25519 AAAAhost"]})
    }

    /// Serves each new lease at once with the member `agents-linux-e5f6a7b8`, and lets released
    /// ones go.
    pub fn serve_leases(store: &mut Store, written: &Value) {
        if written["kind"] != "WorkstationPoolLease" {
            return;
        }
        let mut lease = written.clone();
        match (lease["spec"]["state"].as_str(), lease["status"]["phase"].as_str()) {
            (Some("Done" | "Recycle"), _) => store.remove(&lease),
            (_, None) => {
                lease["status"] = json!({"phase": "Starting", "workstationName": "agents-linux-e5f6a7b8"});
                store.put(lease.clone());
                lease["status"]["phase"] = "Ready".into();
                lease["status"]["ssh"] = ssh();
                lease["status"]["holder"] = json!({"kind": "User", "name": "local"});
                store.put(lease);
            }
            _ => {}
        }
    }

    /// Lets each new lease wait, and lets cancelled ones go.
    pub fn let_leases_wait(store: &mut Store, written: &Value) {
        if written["kind"] != "WorkstationPoolLease" {
            return;
        }
        let mut lease = written.clone();
        match (lease["spec"]["state"].as_str(), lease["status"]["phase"].as_str()) {
            (Some("Done"), _) => store.remove(&lease),
            (_, None) => {
                lease["status"] =
                    json!({"phase": "Pending", "queuePosition": 2, "message": "every member is leased"});
                store.put(lease);
            }
            _ => {}
        }
    }
}
