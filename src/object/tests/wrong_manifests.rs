//! Wrong manifests, and the exact answer each one gets.

use serde_json::json;
use ssh_key::private::{Ed25519Keypair, PrivateKey};

use super::{complaints, create, yaml};
use crate::object::{Rejected, name_carried_images};

/// Every complaint about a pool whose spec is this, beside what a pool must have.
fn pool(spec: &str) -> Vec<String> {
    let mut manifest =
        json!({"metadata": {"name": "agents"}, "spec": {"template": {"spec": {}}, "size": {"max": 6}}});
    let given = yaml(spec);
    for (field, value) in given.as_object().expect("the test writes fields") {
        manifest["spec"][field] = value.clone();
    }
    told("workstationpool", &manifest)
}

fn lease(spec: &str) -> Vec<String> {
    told("workstationpoollease", &json!({"metadata": {"name": "my-build"}, "spec": yaml(spec)}))
}

fn workstation(spec: &str) -> Vec<String> {
    told("workstation", &json!({"metadata": {"name": "hello"}, "spec": yaml(spec)}))
}

fn named(word: &str, name: &str) -> Vec<String> {
    told(word, &json!({"metadata": {"name": name}, "spec": {"template": {"spec": {}}, "size": {"max": 1}}}))
}

fn told(word: &str, manifest: &serde_json::Value) -> Vec<String> {
    complaints(create(word, manifest).expect_err("a wrong manifest"))
}

#[test]
fn a_misspelled_field_is_named_with_its_full_path_and_what_it_may_have_meant() {
    assert_eq!(
        pool("warm: {runing: 1}\nrecyle: {}\ntemplate: {spec: {environments: {A: b}, bogus: 1}}"),
        [
            r#"spec.recyle: unknown field; did you mean "recycle"?"#,
            r#"spec.template.spec.environments: unknown field; did you mean "environment"?"#,
            "spec.template.spec.bogus: unknown field",
            r#"spec.warm.runing: unknown field; did you mean "running"?"#,
        ]
    );
}

#[test]
fn what_must_be_there_and_is_not_is_required() {
    let without = |spec| told("wsp", &json!({"metadata": {"name": "agents"}, "spec": spec}));
    assert_eq!(told("wsp", &json!({"metadata": {"name": "agents"}})), ["spec: Required value"]);
    assert_eq!(without(json!({})), ["spec.template: Required value", "spec.size: Required value"]);
    assert_eq!(
        without(json!({"template": {}, "size": {"max": null}})),
        ["spec.template.spec: Required value", "spec.size.max: Required value"]
    );
    assert_eq!(lease("{}"), ["spec.workstationPoolRef: Required value"]);
    assert_eq!(lease("workstationPoolRef: {name: ''}"), ["spec.workstationPoolRef.name: Required value"]);
}

#[test]
fn numbers_out_of_range_are_told_their_range() {
    assert_eq!(pool("size: {max: 0}"), ["spec.size.max: Invalid value: 0: must be from 1 to 10000"]);
    assert_eq!(pool("size: {max: 10001}"), ["spec.size.max: Invalid value: 10001: must be from 1 to 10000"]);
    assert_eq!(
        pool("warm: {running: -1}"),
        ["spec.warm.running: Invalid value: -1: must be from 0 to 4294967295"]
    );
    assert_eq!(
        pool("lease: {maxPending: 0}\nrecycle: {maxReuses: 1000001}"),
        [
            "spec.lease.maxPending: Invalid value: 0: must be from 1 to 10000",
            "spec.recycle.maxReuses: Invalid value: 1000001: must be from 1 to 1000000",
        ]
    );
}

// rule W2
#[test]
fn floors_that_do_not_fit_into_the_pool_are_refused() {
    assert_eq!(
        pool("warm: {running: 4, stopped: 3}"),
        ["spec.warm: Invalid value: 7: running + stopped may not exceed size.max, which is 6"]
    );
}

#[test]
fn durations_are_told_their_form_and_their_range() {
    let form = "must be a duration: write a number and a unit, such as 90s, 10m, 1h30m or 7d";
    assert_eq!(
        pool("warm: {stopAfter: 15, deleteAfter: 1 hour}"),
        [
            format!("spec.warm.stopAfter: Invalid value: 15: {form}"),
            format!(r#"spec.warm.deleteAfter: Invalid value: "1 hour": {form}"#),
        ]
    );
    assert_eq!(
        pool("maxAge: 30s\nlease: {maxTerm: 31d, failedRetention: 721h}\nrecycle: {timeout: 25h}"),
        [
            r#"spec.maxAge: Invalid value: "30s": must be at least 1m"#,
            r#"spec.lease.maxTerm: Invalid value: "31d": must be from 1m to 30d"#,
            r#"spec.lease.failedRetention: Invalid value: "721h": must be from 0s to 30d"#,
            r#"spec.recycle.timeout: Invalid value: "25h": must be from 10s to 24h"#,
        ]
    );
}

#[test]
fn a_word_that_is_none_of_the_supported_ones_is_told_them() {
    assert_eq!(
        pool("lease: {configChanges: hold}\nrecycle: {reset: Disk}"),
        [
            r#"spec.lease.configChanges: Unsupported value: "hold": supported values: "Apply", "Hold""#,
            r#"spec.recycle.reset: Unsupported value: "Disk": supported values: "none", "disk""#,
        ]
    );
    assert_eq!(
        lease("workstationPoolRef: {name: agents}\nstate: Released"),
        [r#"spec.state: Unsupported value: "Released": supported values: "Needed", "Recycle", "Done""#]
    );
}

#[test]
fn a_value_of_the_wrong_type_is_told_what_to_write() {
    assert_eq!(
        pool("size: {max: '6'}\npaused: yes please\nwarm: 2"),
        [
            r#"spec.size.max: Invalid value: "6": must be an integer: write 6"#,
            r#"spec.paused: Invalid value: "yes please": must be true or false"#,
            "spec.warm: Invalid value: 2: must be an object",
        ]
    );
    assert_eq!(pool("size: {max: 2.5}"), ["spec.size.max: Invalid value: 2.5: must be an integer"]);
    assert_eq!(
        lease("workstationPoolRef: agents"),
        [r#"spec.workstationPoolRef: Invalid value: "agents": must be an object: write {name: agents}"#]
    );
    assert_eq!(
        pool("owner: alice"),
        [r#"spec.owner: Invalid value: "alice": must be an object with kind and name"#]
    );
    assert_eq!(
        workstation("environment: {PORT: 8080}\nrequirements: provider:gcp"),
        [
            "spec.environment.PORT: Invalid value: 8080: must be a text: put it in quotes",
            r#"spec.requirements: Invalid value: "provider:gcp": must be a list"#,
        ]
    );
    assert_eq!(
        told("ws", &json!({"metadata": "hello", "spec": {}})),
        [r#"metadata: Invalid value: "hello": must be an object"#]
    );
    assert_eq!(
        told("ws", &json!({"metadata": {"name": 7}, "spec": {}})),
        [
            "metadata.name: Invalid value: 7: must be a text: put it in quotes",
            "metadata.name: Required value: name or generateName is required",
        ]
    );
}

#[test]
fn sizes_with_units_get_the_number_to_write() {
    assert_eq!(
        workstation("providerConfig: {memory: 4Gi}"),
        [r#"spec.providerConfig.memory: "4Gi" is not a number; the unit is GiB: write 4"#]
    );
    assert_eq!(
        pool("template: {spec: {providerConfig: {memroy: 4}}}"),
        [
            r#"spec.template.spec.providerConfig.memroy: unknown field; did you mean "memory"? (known: memory, cpus, disk, pids, network, nesting; a provider's own settings go below its name)"#
        ]
    );
}

#[test]
fn an_image_written_as_one_text_is_told_its_two_fields_and_what_there_is() {
    let manifest = json!({"metadata": {"name": "hello"}, "spec": yaml("image: 'ubuntu:24.04'")});
    let Rejected::Invalid(mut errors) = create("ws", &manifest).expect_err("a wrong image") else {
        panic!("an invalid field");
    };
    let wanted =
        r#"spec.image: expected {distribution, version}: write {distribution: ubuntu, version: "24.04"}"#;
    assert_eq!(errors[0].to_string(), wanted);
    name_carried_images(&mut errors, &["debian 12".into(), "ubuntu 24.04".into()]);
    assert_eq!(errors[0].to_string(), format!("{wanted}; this daemon carries: debian 12, ubuntu 24.04"));

    assert_eq!(workstation("image: 3"), ["spec.image: expected {distribution, version}"]);
    assert_eq!(
        workstation("image: {distribution: ubuntu, version: 24.04}"),
        ["spec.image.version: Invalid value: 24.04: must be a text: put it in quotes"]
    );
}

#[test]
fn a_template_may_not_set_what_the_pool_decides() {
    let why = "Forbidden: not in a template: the pool decides when a member runs and how long it lives";
    assert_eq!(
        pool(
            "template: {spec: {stopped: false, cordoned: true, ttl: 1h, ttlAction: stop, lifecycle: {}, restartNonce: a}}"
        ),
        ["stopped", "cordoned", "ttl", "ttlAction", "lifecycle", "restartNonce"]
            .map(|field| format!("spec.template.spec.{field}: {why}"))
    );
}

#[test]
fn keys_that_the_server_writes_are_refused_from_anyone_else() {
    let why = "keys under pools.ringleader.dev/ are written by the server alone";
    assert_eq!(
        pool(
            "template: {metadata: {labels: {pools.ringleader.dev/pool: x}, annotations: {pools.ringleader.dev/reuses: '0'}}, spec: {}}"
        ),
        [
            format!("spec.template.metadata.labels: Forbidden: pools.ringleader.dev/pool: {why}"),
            format!("spec.template.metadata.annotations: Forbidden: pools.ringleader.dev/reuses: {why}"),
        ]
    );
    let labelled =
        json!({"metadata": {"name": "a", "labels": {"pools.ringleader.dev/pool": "x"}}, "spec": {}});
    assert_eq!(
        told("ws", &labelled),
        [format!("metadata.labels: Forbidden: pools.ringleader.dev/pool: {why}")]
    );
}

// rule S5
#[test]
fn names_are_told_the_rule_of_their_kind() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    assert_eq!(named("wsp", "Bad_Name"), [format!(r#"metadata.name: Invalid value: "Bad_Name": {label}"#)]);
    let long = "a".repeat(55);
    assert_eq!(
        named("wsp", &long),
        [format!("metadata.name: Invalid value: {long:?}: must be no more than 54 characters")]
    );
    let dotted = json!({"metadata": {"name": "a.b"}, "spec": {"workstationPoolRef": {"name": "agents"}}});
    assert_eq!(told("wspl", &dotted), [format!(r#"metadata.name: Invalid value: "a.b": {label}"#)]);
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                     start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let namespace = json!({"metadata": {"name": "a..b"}});
    assert_eq!(told("ns", &namespace), [format!(r#"metadata.name: Invalid value: "a..b": {subdomain}"#)]);
    assert_eq!(
        told("ws", &json!({"spec": {}})),
        ["metadata.name: Required value: name or generateName is required"]
    );
}

#[test]
fn labels_follow_kubernetes_rules() {
    let manifest =
        json!({"metadata": {"name": "a", "labels": {"a b": "c d!", "/x": "y", "a/b/c": ""}}, "spec": {}});
    let answer = told("ws", &manifest);
    let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
               alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
               '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    assert_eq!(answer[0], format!(r#"metadata.labels: Invalid value: "a b": {key}"#));
    assert!(answer[1].starts_with(
        r#"metadata.labels: Invalid value: "c d!": a valid label must be an empty string or consist"#
    ));
    assert_eq!(answer[2], r#"metadata.labels: Invalid value: "/x": prefix part must be non-empty"#);
    assert!(
        answer[3].starts_with(r#"metadata.labels: Invalid value: "a/b/c": a qualified name must consist of"#)
    );
    assert_eq!(answer.len(), 4);
}

#[test]
fn requirements_name_one_provider_and_nothing_else() {
    assert_eq!(
        workstation("requirements: ['provider:gcp', 'provider:aws', 'gpu', 'provider:']"),
        [
            r#"spec.requirements[1]: Invalid value: "provider:aws": only one provider can be pinned"#,
            r#"spec.requirements[2]: Unsupported value: "gpu": supported values: "provider:NAME""#,
            r#"spec.requirements[3]: Invalid value: "provider:": write provider:NAME, as `rl status` names it"#,
        ]
    );
}

#[test]
fn configs_are_named_once_each() {
    assert_eq!(
        workstation("configs: [{name: a}, {name: a, priority: 3}, {priority: 1}, b]"),
        [
            r#"spec.configs[1]: Duplicate value: {"name":"a"}"#,
            "spec.configs[2].name: Required value",
            r#"spec.configs[3]: Invalid value: "b": must be an object: write {name: b}"#,
        ]
    );
}

#[test]
fn names_that_end_up_in_passwd_are_plain() {
    assert_eq!(
        workstation("identity: {user: root, shell: bash, groups: [docker, 'a:b']}\nenvironment: {1A: x}"),
        [
            r#"spec.identity.user: Invalid value: "root": must not be root: leave sudo on to become root"#,
            r#"spec.identity.shell: Invalid value: "bash": must be the full path of a program, such as /bin/bash"#,
            r#"spec.identity.groups[1]: Invalid value: "a:b": must be a name of at most 32 lower case letters, digits, '-' or '_', and begin with a letter or '_'"#,
            r#"spec.environment: Invalid value: "1A": must be a name of letters, digits or '_', and not begin with a digit"#,
        ]
    );
}

#[test]
fn the_keys_of_a_lease_are_checked_one_by_one() {
    assert_eq!(
        lease("workstationPoolRef: {name: agents}\nauthorizedKeys: [~/.ssh/id_ed25519.pub, ssh-rsa, 5]"),
        [
            "spec.authorizedKeys[2]: Invalid value: 5: must be a text: put it in quotes",
            "spec.authorizedKeys[0]: a path, not a key: paste its line, or pass --key FILE",
            "spec.authorizedKeys[1]: not a whole ssh-rsa key: paste the whole line of the .pub file",
        ]
    );
    let many = format!("workstationPoolRef: {{name: agents}}\nauthorizedKeys: [{}]", "x, ".repeat(33));
    assert_eq!(lease(&many)[0], "spec.authorizedKeys: Too many: 33: must have at most 32 items");
}

#[test]
fn a_private_key_is_refused_and_repeated_nowhere() {
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
    let secret = key.to_openssh(ssh_key::LineEnding::LF).expect("a private key has a file");
    let inner = secret.lines().nth(1).expect("a second line").to_owned();
    for wrong in [
        json!({"workstationPoolRef": {"name": "agents"}, "authorizedKeys": [secret.as_str()]}),
        json!({"workstationPoolRef": {"name": "agents"}, "authorizedKeys": secret.as_str()}),
        json!({"workstationPoolRef": {"name": "agents"}, "state": secret.as_str()}),
        json!({"workstationPoolRef": secret.as_str(), "expiresAt": inner}),
    ] {
        let answer = told("wspl", &json!({"metadata": {"name": "a"}, "spec": wrong}));
        assert!(!answer.is_empty());
        for line in secret.lines().filter(|line| line.len() > 8 && !line.starts_with("---")) {
            assert!(!answer.join("\n").contains(&line[..8]), "{answer:?}");
        }
    }
    let device = json!({"metadata": {"name": "laptop"}, "spec": {"publicKey": secret.as_str()}});
    assert_eq!(
        told("device", &device),
        ["spec.publicKey: a private key: keep it secret, and write the line of its .pub file"]
    );
}

#[test]
fn a_time_is_told_its_form() {
    assert_eq!(
        lease("workstationPoolRef: {name: agents}\nexpiresAt: tomorrow"),
        [
            r#"spec.expiresAt: Invalid value: "tomorrow": must be an RFC 3339 time such as 2026-10-20T18:00:00Z"#
        ]
    );
}

#[test]
fn subjects_are_users_without_a_namespace_or_service_accounts() {
    assert_eq!(
        pool("owner: {kind: User, name: alice, namespace: local}"),
        ["spec.owner.namespace: Forbidden: users belong to no namespace: leave it out"]
    );
    let namespace =
        json!({"metadata": {"name": "acme"}, "spec": {"admins": [{"kind": "Group", "name": ""}]}});
    assert_eq!(
        told("namespace", &namespace),
        [
            r#"spec.admins[0].kind: Unsupported value: "Group": supported values: "User", "ServiceAccount""#,
            "spec.admins[0].name: Required value",
        ]
    );
}

#[test]
fn everything_that_is_wrong_is_told_in_one_answer() {
    assert_eq!(
        pool(
            "size: {max: 0}\nwarm: {running: 1, runing: 1}\nmaxAge: soon\ntemplate: {spec: {stopped: true}}"
        )
        .len(),
        5
    );
}
