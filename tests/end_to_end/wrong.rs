//! What a newcomer types wrong, and the exact answer each gets: the field or the cause, and the way out.

use crate::harness::{Daemon, text};

/// A pool whose spec goes on with the text.
const POOL: &str = "\
apiVersion: workstations.ringleader.dev/v1
kind: WorkstationPool
metadata: {name: p, namespace: local}
spec:
";
/// A lease whose spec goes on with the text.
const LEASE: &str = "\
apiVersion: workstations.ringleader.dev/v1
kind: WorkstationPoolLease
metadata: {name: l, namespace: local}
spec:
";

/// How the manifest begins, how it goes on, and the answer after `error: wrong.yaml`. `CARRIED`
/// stands for the images of the machine that runs the test.
const MANIFESTS: &[(&str, &str, &str)] = &[
    (
        POOL,
        "  {template: {spec: {}}, size: {max: 2}, warm: {runing: 1}}",
        ": workstationpool/p is refused:\n  spec.warm.runing: unknown field; did you mean \"running\"?",
    ),
    (
        POOL,
        "  {template: {spec: {providerConfig: {memory: 4Gi}}}, size: {max: 2}}",
        ": workstationpool/p is refused:\n  spec.template.spec.providerConfig.memory: \"4Gi\" is not a number; the unit is GiB: write 4",
    ),
    (
        POOL,
        "  {template: {spec: {image: 'ubuntu:24.04'}}, size: {max: 2}}",
        ": workstationpool/p is refused:\n  spec.template.spec.image: expected {distribution, version}: write \
         {distribution: ubuntu, version: \"24.04\"}; this daemon carries: CARRIED",
    ),
    (
        POOL,
        "  {template: {spec: {image: {distribution: windows, version: '11'}}}, size: {max: 2}}",
        ": workstationpool/p is refused:\n  spec.template.spec.image: no image here is windows 11; this daemon carries: CARRIED",
    ),
    (
        POOL,
        "  {template: {spec: {}}, size: {max: 2}, warm: {running: 2, stopped: 1}}",
        ": workstationpool/p is refused:\n  spec.warm: Invalid value: 3: running + stopped may not exceed size.max, which is 2",
    ),
    (
        POOL,
        "  {template: {spec: {stopped: true, ttl: 1h}}, size: {max: 2}}",
        ": workstationpool/p is refused:\n  spec.template.spec.stopped: Forbidden: not in a template: the pool decides when a \
         member runs and how long it lives\n  spec.template.spec.ttl: Forbidden: not in a template: the pool decides when a \
         member runs and how long it lives",
    ),
    (
        POOL,
        "  {template: {metadata: {labels: {pools.ringleader.dev/x: 'a'}}, spec: {}}, size: {max: 2}}",
        ": workstationpool/p is refused:\n  spec.template.metadata.labels: Forbidden: pools.ringleader.dev/x: keys under \
         pools.ringleader.dev/ are written by the server alone",
    ),
    (POOL, "  {template: {spec: {}}}", ": workstationpool/p is refused:\n  spec.size: Required value"),
    (
        POOL,
        "  {template: {spec: {}}, size: {max: 0}, lease: {maxTerm: 5s, configChanges: Maybe}, warm: {stopAfter: soon}}",
        ": workstationpool/p is refused:\n  spec.size.max: Invalid value: 0: must be from 1 to 10000\n  spec.lease.maxTerm: \
         Invalid value: \"5s\": must be from 1m to 30d\n  spec.lease.configChanges: Unsupported value: \"Maybe\": supported \
         values: \"Apply\", \"Hold\"\n  spec.warm.stopAfter: Invalid value: \"soon\": must be a duration: write a number and a \
         unit, such as 90s, 10m, 1h30m or 7d",
    ),
    (
        LEASE,
        "  {workstationPoolRef: {name: nope}}",
        ": workstationpoollease/l is refused:\n  spec.workstationPoolRef.name: Not found: there is no pool \"nope\" in namespace local",
    ),
    (
        LEASE,
        "  {workstationPoolRef: {name: agents-linux}, authorizedKeys: [/home/me/.ssh/id.pub]}",
        ": workstationpoollease/l is refused:\n  spec.authorizedKeys[0]: a path, not a key: paste its line, or pass --key FILE",
    ),
    (
        LEASE,
        "  {workstationPoolRef: {name: agents-linux}, authorizedKeys: ['-----BEGIN OPENSSH PRIVATE KEY-----']}",
        ": workstationpoollease/l is refused:\n  spec.authorizedKeys[0]: a private key: keep it secret, and write the line of its .pub file",
    ),
    (
        "apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPol\nmetadata: {name: x}\n",
        "",
        ": no kind \"WorkstationPol\" in \"workstations.ringleader.dev/v1\": did you mean WorkstationPool? The kinds are \
         Namespace, User, Device, Workstation, WorkstationPool, WorkstationPoolLease, Event",
    ),
    (
        "apiVersion: v1\nkind: WorkstationPool\nmetadata: {name: x}\n",
        "",
        ": write apiVersion: workstations.ringleader.dev/v1 and kind: WorkstationPool",
    ),
    (
        "apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {name: Bad_Name}\n",
        "spec: {template: {spec: {}}, size: {max: 1}}",
        ": workstationpool/Bad_Name is refused:\n  metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 label must \
         consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. \
         'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ),
    ("apiVersion: [\n", "", " is no YAML: unclosed bracket '[' at line 1, column 13"),
    (
        POOL,
        "  template: {spec: {}}\n  size: {max: 2}\n  size: {max: 3}",
        " is no YAML: duplicate mapping key `size` is not allowed here at line 7, column 3",
    ),
];

/// What is typed after `rl`, the exit code, and the answer after `error: `.
const COMMANDS: &[(&[&str], i32, &str)] = &[
    (
        &["get", "workstatonpool"],
        2,
        "no kind \"workstatonpool\": did you mean workstationpool? The kinds are namespace, user, device, workstation, \
         workstationpool, workstationpoollease, event",
    ),
    (
        &["get", "wsp", "nope"],
        1,
        "workstationpool/nope not found in namespace local: `rl get workstationpool -n local` lists those that are there",
    ),
    (&["apply", "-f", "nowhere.yaml"], 1, "cannot read nowhere.yaml: No such file or directory (os error 2)"),
    (
        &["workstationpool", "lease", "nope", "--name", "x"],
        1,
        "workstationpoollease/x is refused:\n  spec.workstationPoolRef.name: Not found: there is no pool \"nope\" in namespace local",
    ),
    (
        &["workstationpool", "lease", "agents-linux", "--key", "missing.pub"],
        1,
        "cannot read the key missing.pub: No such file or directory (os error 2)",
    ),
    (
        &["workstationpool", "lease", "agents-linux", "--term", "soon"],
        2,
        "invalid value 'soon' for '--term <DURATION>': \"soon\" is not a duration: write a number and a unit, such as 90s, \
         10m, 1h30m or 7d\n\nFor more information, try '--help'.",
    ),
    (
        &["workstationpool", "create", "q"],
        2,
        "the following required arguments were not provided:\n  --size-max <N>\n\nUsage: rl workstationpool create \
         --size-max <N> <NAME>\n\nFor more information, try '--help'.",
    ),
    (
        &["workstationpool", "create", "q", "--size-max", "0"],
        1,
        "workstationpool/q is refused:\n  spec.size.max: Invalid value: 0: must be from 1 to 10000",
    ),
    (
        &["--quiet", "wait", "wsp", "agents-linux", "--for", "condition=Nope", "--timeout", "1s"],
        1,
        "workstationpool/agents-linux was not Nope=True within 1s: `rl describe workstationpool agents-linux -n local` \
         shows what it waits for",
    ),
    (
        &["shell", "nope"],
        125,
        "no workstation and no lease \"nope\" in namespace local: `rl get workstation,workstationpoollease -n local` lists them",
    ),
    (
        &["workstationpoollease", "release", "nope"],
        1,
        "workstationpoollease/nope not found in namespace local: `rl get workstationpoollease -n local` lists those that are there",
    ),
    (
        &["get", "wsp", "-o", "xml"],
        2,
        "invalid value 'xml' for '--output <FORMAT>': write table, wide, json, yaml, name or jsonpath=TEMPLATE\n\nFor more \
         information, try '--help'.",
    ),
    (
        &["get", "wsp", "-o", "jsonpath={.metadata"],
        2,
        "invalid value 'jsonpath={.metadata' for '--output <FORMAT>': a brace in \"{.metadata\" is not closed\n\nFor more \
         information, try '--help'.",
    ),
    (
        &["--server", "unix:///nowhere/rl.sock", "get", "wsp"],
        1,
        "no daemon answers at /nowhere/rl.sock: start it with `sudo rl daemon run`, or name another with --server",
    ),
    (
        &["--server", "ftp://x", "get", "wsp"],
        2,
        "--server: \"ftp://x\" is not a server: write unix:///run/ringleader/rl.sock",
    ),
];

#[test]
fn wrong_manifests_get_the_field_and_the_cure_and_nothing_is_written() {
    let daemon = small_pool();
    let carried = daemon.ok(&["image", "list", "-o", "json"]);
    let carried: serde_json::Value = serde_json::from_str(&carried).expect("json");
    let words: Vec<String> = carried["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|image| {
            format!("{} ({} {})", word(image, "name"), word(image, "distribution"), word(image, "version"))
        })
        .collect();
    for (start, rest, answer) in MANIFESTS {
        std::fs::write(daemon.path("wrong.yaml"), format!("{start}{rest}\n")).expect("written");
        let output = daemon
            .command(&["apply", "-f", "wrong.yaml"])
            .current_dir(daemon.path(""))
            .output()
            .expect("rl runs");
        let expected =
            format!("error: wrong.yaml{answer}\nnothing was written\n").replace("CARRIED", &words.join(", "));
        assert_eq!(text(&output.stderr), expected, "for\n{start}{rest}");
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(1), String::new()),
            "for\n{start}{rest}"
        );
    }
    assert_eq!(daemon.names("workstationpool"), ["agents-linux"]);
    assert_eq!(daemon.names("workstationpoollease"), Vec::<String>::new());
}

#[test]
fn wrong_commands_say_what_is_wrong_and_what_to_type() {
    let daemon = small_pool();
    for (words, code, answer) in COMMANDS {
        let output = daemon.rl(words);
        assert_eq!(text(&output.stderr), format!("error: {answer}\n"), "rl {}", words.join(" "));
        assert_eq!(output.status.code(), Some(*code), "rl {}", words.join(" "));
        assert_eq!(text(&output.stdout), "", "nothing for a program to trip over: rl {}", words.join(" "));
    }
}

#[test]
fn whoever_may_not_open_the_socket_is_told_how_to() {
    let daemon = small_pool();
    let output = daemon
        .command_of(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], &["get", "wsp"])
        .output()
        .expect("setpriv (util-linux) is installed");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: no permission to open ") && said.contains("usermod -aG ringleader"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// A pool that builds nothing, so that nothing but the answers is under test.
fn small_pool() -> Daemon {
    let daemon = Daemon::start();
    daemon.ok(&["workstationpool", "create", "agents-linux", "--size-max", "1"]);
    daemon
}

fn word<'a>(image: &'a serde_json::Value, key: &str) -> &'a str {
    image[key].as_str().unwrap_or_default()
}
