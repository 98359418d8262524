//! What a newcomer types wrong, and the exact answer each gets: the field or the cause, and what
//! to do. `<*>` in an answer stands for what differs from run to run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::harness::{Daemon, rl, text};

/// A manifest's kind, name and the rest; and what follows `error: wrong.yaml`.
const MANIFESTS: &[(&str, &str)] = &[
    (
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {spec: {}}, size: {max: 6}, warm: {runing: 1}}",
        ": workstationpool/p is refused:\n  spec.warm.runing: unknown field; did you mean \"running\"?",
    ),
    (
        // All that is wrong is told at once.
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {}, size: {max: '6'}, colour: red, maxAge: 30s}",
        ": workstationpool/p is refused:\n  spec.colour: unknown field\n  spec.template.spec: Required value\n  \
         spec.size.max: Invalid value: \"6\": must be an integer: write 6\n  \
         spec.maxAge: Invalid value: \"30s\": must be at least 1m",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {spec: {providerConfig: {memory: 4Gi}}}, size: {max: 6}}",
        ": workstationpool/p is refused:\n  spec.template.spec.providerConfig.memory: \"4Gi\" is not a number; the \
         unit is GiB: write 4",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {spec: {image: 'ubuntu:24.04'}}, size: {max: 6}}",
        ": workstationpool/p is refused:\n  spec.template.spec.image: expected {distribution, version}: write \
         {distribution: ubuntu, version: \"24.04\"}; this daemon carries: host (<*>)",
    ),
    (
        "kind: Workstation\nmetadata: {name: w}\nspec: {image: 'ubuntu:24.04'}",
        ": workstation/w is refused:\n  spec.image: expected {distribution, version}: write \
         {distribution: ubuntu, version: \"24.04\"}; this daemon carries: host (<*>)",
    ),
    (
        "kind: Workstation\nmetadata: {name: w}\nspec: {image: {distribution: beos, version: '5'}}",
        ": workstation/w is refused:\n  spec.image: no image here is beos 5; this daemon carries: host (<*>)",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {spec: {stopped: true, restartNonce: a}}, size: {max: 6}}",
        ": workstationpool/p is refused:\n  \
         spec.template.spec.stopped: Forbidden: not in a template: the pool decides when a member runs and how long \
         it lives\n  spec.template.spec.restartNonce: Forbidden: not in a template: the pool decides when a member \
         runs and how long it lives",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: p}\nspec: {template: {spec: {}}, size: {max: 6}, warm: {running: 5, stopped: 2}}",
        ": workstationpool/p is refused:\n  spec.warm: Invalid value: 7: running + stopped may not exceed size.max, \
         which is 6",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: p, labels: {pools.ringleader.dev/pool: x}}\nspec: {template: {spec: {}}, size: {max: 6}}",
        ": workstationpool/p is refused:\n  metadata.labels: Forbidden: pools.ringleader.dev/pool: keys under \
         pools.ringleader.dev/ are written by the server alone",
    ),
    (
        "kind: WorkstationPool\nmetadata: {name: a-name-of-fifty-five-letters-is-one-letter-more-than-fits}\nspec: {template: {spec: {}}, size: {max: 6}}",
        ": workstationpool/a-name-of-fifty-five-letters-is-one-letter-more-than-fits is refused:\n  \
         metadata.name: Invalid value: \"a-name-of-fifty-five-letters-is-one-letter-more-than-fits\": must be no \
         more than 54 characters",
    ),
    (
        "kind: WorkstationPoolLease\nmetadata: {name: l}\nspec: {workstationPoolRef: {name: nope}}",
        ": workstationpoollease/l is refused:\n  spec.workstationPoolRef.name: Not found: there is no pool \"nope\" \
         in namespace local",
    ),
    (
        "kind: WorkstationPoolLease\nmetadata: {name: l}\nspec: {workstationPoolRef: nope}",
        ": workstationpoollease/l is refused:\n  spec.workstationPoolRef: Invalid value: \"nope\": must be an \
         object: write {name: nope}",
    ),
    (
        "kind: WorkstationPoolLease\nmetadata: {name: l}\nspec: {workstationPoolRef: {name: agents}, expiresAt: '2020-01-01T00:00:00Z'}",
        ": workstationpoollease/l is refused:\n  spec.expiresAt: 2020-01-01T00:00:00Z has passed: write a time \
         between now and <*>Z, or leave it out",
    ),
    (
        "kind: WorkstationPoolLease\nmetadata: {name: l}\nspec: {workstationPoolRef: {name: nope}, authorizedKeys: ['~/.ssh/id_ed25519.pub']}",
        ": workstationpoollease/l is refused:\n  spec.authorizedKeys[0]: a path, not a key: paste its line, or pass \
         --key FILE\n  spec.workstationPoolRef.name: Not found: there is no pool \"nope\" in namespace local",
    ),
    (
        "kind: WorkstationPoolLease\nmetadata: {name: l}\nspec: {workstationPoolRef: {name: agents}, authorizedKeys: ['-----BEGIN OPENSSH PRIVATE KEY-----']}",
        ": workstationpoollease/l is refused:\n  spec.authorizedKeys[0]: a private key: keep it secret, and write \
         the line of its .pub file",
    ),
    (
        "kind: Pool\nmetadata: {name: p}",
        ": no kind \"Pool\" in \"workstations.ringleader.dev/v1\": did you mean WorkstationPool? The kinds are <*>",
    ),
    ("kind: User\nmetadata: {name: p}", ": write apiVersion: core.ringleader.dev/v1 and kind: User"),
    ("kind: WorkstationPool\nmetadata: {}", ": metadata.name: required"),
    (
        "kind: WorkstationPool\nmetadata:\n  bad: [1\nspec: {}",
        " is no YAML: illegal placement of ':' indicator at line 5, column 5",
    ),
    (
        "kind: Workstation\nkind: User",
        " is no YAML: duplicate mapping key `kind` is not allowed here at line 3, column 1",
    ),
];

#[test]
fn every_wrong_manifest_is_told_its_field_or_cause_and_what_to_write() {
    let daemon = Daemon::start();
    daemon.ok(&["workstationpool", "create", "agents", "--size-max", "1"]);
    for (manifest, answer) in MANIFESTS {
        let manifest = format!("apiVersion: workstations.ringleader.dev/v1\n{manifest}\n");
        fs::write(daemon.path("wrong.yaml"), &manifest).expect("written");
        let mut apply = daemon.command(&["apply", "-f", "wrong.yaml"]);
        let output = apply.current_dir(daemon.path("")).output().expect("rl runs");
        let answer = format!("error: wrong.yaml{answer}\nnothing was written\n");
        assert_like(&text(&output.stderr), &answer, &manifest);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{manifest}");
    }
    // The manifest's namespace and that of -n.
    let manifest =
        "apiVersion: workstations.ringleader.dev/v1\nkind: Workstation\nmetadata: {name: w, namespace: a}\n";
    fs::write(daemon.path("wrong.yaml"), manifest).expect("written");
    let wrong = daemon.path("wrong.yaml").display().to_string();
    let (code, said) = daemon.fails(&["apply", "-n", "b", "-f", &wrong]);
    let answer = "error: <*>/wrong.yaml: metadata.namespace: the manifest says \"a\" and -n says \"b\": leave one of them \
                  out\nnothing was written\n";
    assert_like(&said, answer, manifest);
    assert_eq!(code, 1);
    assert_eq!(daemon.names("workstationpool"), ["agents"], "nothing wrong was written");
    daemon.clear();
}

/// What is typed after `rl`, the exit code and the answer.
const COMMANDS: &[(&str, i32, &str)] = &[
    ("get pool", 2, "error: no kind \"pool\": did you mean workstationpool? The kinds are <*>\n"),
    ("get", 2, "error: the following required arguments were not provided:\n  <KIND [NAME]>...\n<*>"),
    (
        "gett workstation",
        2,
        "error: unrecognized subcommand 'gett'\n\n  tip: a similar subcommand exists: 'get'\n<*>",
    ),
    ("workstationpool lease", 2, "error: the following required arguments were not provided:\n  <POOL>\n<*>"),
    (
        "get workstationpool nope",
        1,
        "error: workstationpool/nope not found in namespace local: `rl get workstationpool -n local` lists those \
         that are there\n",
    ),
    (
        "get workstationpool -o jsonpath={.items[*",
        2,
        "error: invalid value 'jsonpath={.items[*' for '--output <FORMAT>': a brace in \"{.items[*\" is not closed\n<*>",
    ),
    (
        "get workstationpool -l a=b=c",
        2,
        "error: invalid value 'a=b=c' for '--selector <SELECTOR>': <*>: write labels such as app=web,tier!=db or \
         app in (web, api)\n<*>",
    ),
    (
        "-q wait workstationpool agents --for Deleted --timeout 1s",
        1,
        "error: workstationpool/agents was not deleted within 1s: `rl describe workstationpool agents -n local` \
         shows what it waits for\n",
    ),
    (
        "workstationpoollease release nope",
        1,
        "error: workstationpoollease/nope not found in namespace local: `rl get workstationpoollease -n local` lists \
         those that are there\n",
    ),
    (
        "workstationpoollease release",
        2,
        "error: say which leases to release: write names or -l SELECTOR, one of them\n",
    ),
    (
        "workstationpool lease nope",
        1,
        "error: workstationpoollease/nope is refused:\n  spec.workstationPoolRef.name: Not found: there is no pool \
         \"nope\" in namespace local\n",
    ),
    (
        "workstationpool lease agents --key /nonexistent",
        1,
        "error: cannot read the key /nonexistent: No such file or directory (os error 2)\n",
    ),
    (
        "workstationpool lease agents --term 48h",
        1,
        "error: workstationpoollease/agents is refused:\n  spec.expiresAt: <*>Z is more than one lease.maxTerm (24h) \
         ahead: write <*>Z or earlier, or leave it out\n",
    ),
    (
        "delete workstationpool agents",
        2,
        "error: this would delete workstationpool/agents: pass -y to do so\n",
    ),
    (
        "delete namespace local -y",
        1,
        "error: namespaces.core.ringleader.dev \"local\" is forbidden: namespace local always exists and cannot be \
         deleted\n",
    ),
    (
        "shell nope -- true",
        125,
        "error: no workstation and no lease \"nope\" in namespace local: `rl get workstation,workstationpoollease -n \
         local` lists them\n",
    ),
    ("image refresh nope -q", 1, "error: no image \"nope\" is here; this daemon carries: host (<*>)\n"),
    (
        "--server unix:///nonexistent/rl.sock get workstation",
        1,
        "error: no daemon answers at /nonexistent/rl.sock: start it with `sudo rl daemon run`, or name another with \
         --server\n",
    ),
    (
        "--server https://example.org get workstation",
        2,
        "error: --server: this version speaks to a daemon over its unix socket only: write unix:///path, or run `rl` \
         on the daemon's machine\n",
    ),
    (
        "daemon run --listen 127.0.0.1:8443",
        64,
        "rl: --listen: this version serves its unix socket alone; leave --listen out\n",
    ),
    (
        "daemon run --config /nonexistent.toml",
        64,
        "rl: cannot read /nonexistent.toml: No such file or directory (os error 2)\n",
    ),
];

#[test]
fn every_wrong_command_is_told_its_cause_and_what_to_type() {
    let daemon = Daemon::start();
    daemon.ok(&["workstationpool", "create", "agents", "--size-max", "1"]);
    for (line, code, answer) in COMMANDS {
        let words: Vec<&str> = line.split(' ').collect();
        let (found, said) = daemon.fails(&words);
        assert_like(&said, answer, line);
        assert_eq!(found, *code, "rl {line}: {said}");
    }
    daemon.clear();
}

// rule D3
#[test]
fn a_stopped_workstation_a_released_lease_and_a_pool_that_goes_say_so() {
    let daemon = Daemon::start();
    let stopped = "apiVersion: workstations.ringleader.dev/v1\nkind: Workstation\nmetadata: {name: hello}\nspec: {stopped: true}\n";
    fs::write(daemon.path("hello.yaml"), stopped).expect("written");
    daemon.ok(&["apply", "-f", &daemon.path("hello.yaml").display().to_string()]);
    daemon.ok(&["wait", "workstation", "hello", "--for", "Stopped", "--timeout", "90s"]);
    let answer = "error: workstation/hello is Stopped: apply it with `stopped: false` in its spec\n";
    assert_eq!(daemon.fails(&["shell", "hello", "--", "true"]), (125, answer.into()));

    daemon.ok(&["workstationpool", "create", "agents", "--size-max", "1"]);
    for name in ["first", "second"] {
        daemon.ok(&["workstationpool", "lease", "agents", "--name", name, "--wait", "--timeout", "90s"]);
        if name == "first" {
            daemon.ok(&["workstationpoollease", "release", name, "--wait"]);
            let (code, said) = daemon.fails(&["workstationpoollease", "release", name]);
            assert!(
                said.starts_with("error: workstationpoollease/first not found in namespace local"),
                "{said}"
            );
            assert_eq!(code, 1);
        }
    }
    let line = daemon.ok(&["delete", "workstationpool", "agents", "-y"]);
    assert_eq!(
        line,
        "workstationpool/agents: 1 member stays until its lease ends. Release that lease with \
         `rl workstationpoollease release -n local -l pools.ringleader.dev/pool=agents`.\n"
    );
    let answer = "error: workstationpoolleases.workstations.ringleader.dev \"late\" is forbidden: \
                  workstationpool/agents is being deleted and takes no new leases: lease from another pool\n";
    assert_eq!(daemon.fails(&["workstationpool", "lease", "agents", "--name", "late"]), (1, answer.into()));
    daemon.clear();
}

#[test]
fn who_may_not_use_the_socket_is_told_how_to_be_let_in() {
    let daemon = Daemon::start();
    let program = daemon.path("rl");
    fs::copy(rl(), &program).expect("copied");
    for path in [daemon.path(""), program.clone()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("for all");
    }
    let nobody = || {
        let mut command = Command::new(&program);
        command.args(["get", "workstation"]).uid(65_534).gid(65_534).env_clear();
        command.env("RL_SERVER", format!("unix://{}", daemon.socket().display())).env("HOME", "/nonexistent");
        let output = command.stdin(Stdio::null()).output().expect("rl runs");
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert_like(
        &nobody(),
        "error: no permission to open <*>/rl.sock: use sudo, or <*>`<*>sudo usermod -aG ringleader $USER`<*>log in \
         again (whoever is in that group can become root)\n",
        "a socket of another user",
    );
    // Even where the socket is open, the daemon asks the kernel who it is.
    fs::set_permissions(daemon.socket(), Permissions::from_mode(0o666)).expect("for all");
    assert_like(
        &nobody(),
        "error: <*> may not use this daemon: run \"sudo usermod -aG ringleader <*>\" and log in again, or run the \
         command as root (members of the group ringleader can become root through the daemon)\n",
        "an open socket",
    );
}

#[test]
fn a_daemon_that_cannot_run_says_why_and_exits_with_its_code() {
    let daemon = Daemon::start();
    let (config, data, socket) = (daemon.path("daemon.toml"), daemon.data(), daemon.socket());
    let (config, data, socket) =
        (config.display().to_string(), data.display().to_string(), socket.display().to_string());
    let apart = |name: &str| daemon.path(name).display().to_string();
    let run = |words: &[&str]| {
        let (code, said) = daemon.fails(&[&["daemon", "run"], words].concat());
        let own: Vec<&str> =
            said.split_inclusive('\n').skip_while(|line| !line.starts_with("rl: ")).collect();
        (code, own.concat())
    };
    let (code, said) = run(&["--config", &config, "--data-dir", &data, "--socket", &apart("2.sock")]);
    let answer = "rl: the daemon could not start: another daemon (process <*>) uses <*>/data: stop it, or choose another data directory\n";
    assert_like(&said, answer, "the same data directory");
    assert_eq!(code, 1);

    let (code, said) = run(&["--config", &config, "--data-dir", &apart("data2"), "--socket", &socket]);
    let answer = "rl: the daemon could not start: another daemon answers at <*>/rl.sock: stop it, or pass another --socket\n";
    assert_like(&said, answer, "the same socket");
    assert_eq!(code, 1);

    for (settings, answer) in [
        (
            "[log]\nlevel = \"loud\"",
            "rl: log.level: \"loud\" is no level: write off, error, warn, info, debug or trace, or target=level\n",
        ),
        ("[images]\ndefault = \"beos\"", "rl: images.default: there is no image \"beos\": there are host\n"),
        ("builds_at_once_max = 0", "rl: builds_at_once_max: 0 would never build; write at least 1\n"),
        (
            "builds_at_once_maks = 3",
            "rl: <*>/bad.toml: TOML parse error at line 1, column 1\n<*>unknown field `builds_at_once_maks`, expected one of <*>\n",
        ),
        (
            "drain_timeout = 5",
            "rl: <*>/bad.toml: TOML parse error at line 1, column 17\n<*>invalid type: integer `5`, expected a duration such as \"90s\", \"10m\", \"1h30m\" or \"7d\"\n",
        ),
    ] {
        fs::write(daemon.path("bad.toml"), settings).expect("written");
        let (code, said) = run(&["--config", &apart("bad.toml"), "--data-dir", &apart("data3")]);
        assert_like(&said, answer, settings);
        assert_eq!(code, 64, "{settings}");
    }
    assert!(!daemon.path("data3").exists(), "wrong settings touch nothing");
}

/// Whether `said` is `answer`, in which `<*>` stands for any text.
fn assert_like(said: &str, answer: &str, what: &str) {
    let mut parts = answer.split("<*>");
    let first = parts.next().unwrap_or_default();
    let mut rest = said.strip_prefix(first);
    let mut parts = parts.peekable();
    while let (Some(part), Some(text)) = (parts.next(), rest) {
        rest = if parts.peek().is_none() {
            text.strip_suffix(part).map(|_| "")
        } else {
            text.find(part).map(|at| &text[at + part.len()..])
        };
    }
    assert_eq!(rest, Some(""), "{what}\nsaid:   {said}\nanswer: {answer}");
}
