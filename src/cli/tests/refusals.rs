//! Wrong commands, and exactly what they are answered.

use serde_json::json;

use super::objects::{lease, let_leases_wait, member, pool};
use super::{Environment, run, typed};
use crate::client::fake::Fake;

/// The first line of each answer (what clap adds below, its usage, is clap's).
const WRONG: &[(&str, u8, &str)] = &[
    (
        "rl get worstationpool",
        2,
        "error: no kind \"worstationpool\": did you mean workstationpool? The kinds are KINDS",
    ),
    ("rl get pod", 2, "error: no kind \"pod\": the kinds are KINDS"),
    ("rl get", 2, "error: the following required arguments were not provided:"),
    ("rl aply -f x", 2, "error: unrecognized subcommand 'aply'"),
    ("rl apply", 2, "error: the following required arguments were not provided:"),
    (
        "rl apply -f nowhere.yaml",
        1,
        "error: cannot read nowhere.yaml: No such file or directory (os error 2)",
    ),
    (
        "rl apply -f https://example.com/pool.yaml",
        1,
        "error: https://example.com/pool.yaml: this version reads files: fetch it first, as in \
         `curl -fsSL https://example.com/pool.yaml | rl apply -f -`",
    ),
    (
        "rl get wsp nope",
        1,
        "error: workstationpool/nope not found in namespace local: `rl get workstationpool -n local` lists those \
         that are there",
    ),
    (
        "rl get wsp p -A",
        2,
        "error: a name is looked up in one namespace: leave -A out, or name the namespace with -n",
    ),
    ("rl get wsp --mine", 2, "error: --mine is about leases: `rl get workstationpoollease --mine`"),
    (
        "rl get wsp -o xml",
        2,
        "error: invalid value 'xml' for '--output <FORMAT>': write table, wide, json, yaml, name or jsonpath=TEMPLATE",
    ),
    (
        "rl get wsp -o jsonpath={.a",
        2,
        "error: invalid value 'jsonpath={.a' for '--output <FORMAT>': a brace in \"{.a\" is not closed",
    ),
    ("rl get wsp,ws p", 2, "error: several kinds cannot share a name: write KIND/NAME…"),
    ("rl get wsp a/b", 2, "error: \"a/b\" names its kind already: write either KIND NAME… or KIND/NAME…"),
    (
        "rl delete wspl",
        2,
        "error: say which workstationpoolleases to delete: write names, -l SELECTOR or --all, one of them",
    ),
    (
        "rl delete wsp agents-linux",
        2,
        "error: this would delete workstationpool/agents-linux and its 2 members, machines and disks: pass -y to do so",
    ),
    ("rl wspl release", 2, "error: say which leases to release: write names or -l SELECTOR, one of them"),
    (
        "rl wspl release nope",
        1,
        "error: workstationpoollease/nope not found in namespace local: `rl get workstationpoollease -n local` lists \
         those that are there",
    ),
    (
        "rl wsp lease agents-linux --timeout soon --wait",
        2,
        "error: invalid value 'soon' for '--timeout <DURATION>': \"soon\" is not a duration: write a number and a \
         unit, such as 90s, 10m, 1h30m or 7d",
    ),
    (
        "rl wsp lease agents-linux --timeout 1m",
        2,
        "error: the following required arguments were not provided:",
    ),
    (
        "rl wsp lease agents-linux --key k --no-key",
        2,
        "error: the argument '--key <FILE>' cannot be used with '--no-key'",
    ),
    (
        "rl wsp lease agents-linux --key nowhere.pub",
        1,
        "error: cannot read the key nowhere.pub: No such file or directory (os error 2)",
    ),
    (
        "rl wsp create agents-linux --size-max 2",
        1,
        "error: workstationpool/agents-linux already exists in namespace local: choose another name, or look at it \
         with `rl describe workstationpool agents-linux`",
    ),
    (
        "rl wsp create p --size-max many",
        2,
        "error: invalid value 'many' for '--size-max <N>': write a whole number, such as 6",
    ),
    ("rl wait event e", 2, "error: a event is never waited for without --for, as in --for Deleted"),
    (
        "rl wait wspl my-build --for a=b",
        2,
        "error: invalid value 'a=b' for '--for <WHAT>': \"a=b\": only condition=NAME and jsonpath=PATH=VALUE have a =",
    ),
    (
        "rl shell nope",
        125,
        "error: no workstation and no lease \"nope\" in namespace local: \
         `rl get workstation,workstationpoollease -n local` lists them",
    ),
    (
        "rl shell my-build",
        125,
        "error: workstationpoollease/my-build is Pending and cannot be reached yet: \
         `rl wait workstationpoollease my-build -n local`",
    ),
    (
        "rl proxy nope",
        1,
        "error: no workstation and no lease \"nope\" in namespace local: \
         `rl get workstation,workstationpoollease -n local` lists them",
    ),
    (
        "rl --server tcp://x get wsp",
        2,
        "error: --server: \"tcp://x\" is not a server: write unix:///run/ringleader/rl.sock",
    ),
    (
        "rl --server /nowhere/rl.sock get wsp",
        1,
        "error: no daemon answers at /nowhere/rl.sock: start it with `sudo rl daemon run`, or name another with \
         --server",
    ),
    (
        "rl namespace use nowhere",
        1,
        "error: namespace/nowhere not found: `rl get namespace` lists those that are there",
    ),
];

#[tokio::test]
async fn a_wrong_command_says_what_is_wrong_and_what_to_type() {
    let fake = Fake::start(let_leases_wait);
    fake.put(pool("agents-linux"));
    fake.put(lease("my-build", "agents-linux", &json!({"phase": "Pending"})));
    let kinds = "namespace, user, device, workstation, workstationpool, workstationpoollease, event";
    for (line, exit, answer) in WRONG {
        let ran = typed(&fake, line).await;
        assert_eq!(ran.err.lines().next().unwrap_or_default(), answer.replace("KINDS", kinds), "{line}");
        assert_eq!(ran.exit, *exit, "{line}");
        assert_eq!(ran.out, "", "{line}");
    }
}

#[tokio::test]
async fn a_manifest_is_refused_with_every_document_that_is_wrong() {
    let fake = Fake::start(|_, _| ());
    let file = fake.home().with_extension("yaml");
    let documents = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n\
        apiVersion: v1\nkind: WorkstationPool\nmetadata: {name: b}\n---\n\
        apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {generateName: c-}\n---\n\
        apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {name: d, namespace: other}\n---\n\
        just text\n";
    std::fs::write(&file, documents).expect("written");
    let ran = typed(&fake, &format!("rl apply -n acme -f {}", file.display())).await;
    let name = file.display();
    assert_eq!(ran.exit, 1);
    assert_eq!(
        ran.err,
        format!(
            "error: {name} (document 1): no kind \"Pod\" in \"v1\": The kinds are Namespace, User, Device, Workstation, \
             WorkstationPool, WorkstationPoolLease, Event\n\
             {name} (document 2): write apiVersion: workstations.ringleader.dev/v1 and kind: WorkstationPool\n\
             {name} (document 3): metadata.generateName: apply finds its objects again by name: write metadata.name\n\
             {name} (document 4): metadata.namespace: the manifest says \"other\" and -n says \"acme\": \
             leave one of them out\n\
             {name} (document 5): no object: write apiVersion, kind, metadata and spec\n\
             nothing was written\n"
        )
    );
}

#[tokio::test]
async fn the_servers_refusals_are_told_with_what_to_do() {
    let fake = Fake::start(|_, _| ());
    fake.put(member("m-1", "p"));
    fake.refuse(
        "workstationpoolleases",
        429,
        json!({"reason": "TooManyRequests", "message": "100 leases wait already, which is lease.maxPending",
            "details": {"retryAfterSeconds": 5}}),
    );
    let ran = typed(&fake, "rl wsp lease p --no-key").await;
    assert_eq!(
        (ran.exit, ran.err.as_str()),
        (1, "error: 100 leases wait already, which is lease.maxPending; try again in 5 s\n")
    );
}

#[tokio::test]
async fn without_a_home_the_error_says_what_to_set() {
    let fake = Fake::start(|_, _| ());
    let server = format!("unix://{}", fake.socket().display());
    let ran = run(Environment::from_pairs(&[("RL_SERVER", &server)]), "rl wsp lease p").await;
    assert_eq!(
        (ran.exit, ran.err.as_str()),
        (1, "error: neither HOME nor XDG_CONFIG_HOME is set: set one, or pass --identity\n")
    );
}
