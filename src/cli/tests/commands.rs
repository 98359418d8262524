//! What the page types, and what a person types next.

use std::fs;

use serde_json::json;

use super::objects::{lease, let_leases_wait, member, pool, serve_leases};
use super::{environment, run, typed};
use crate::client::fake::Fake;

#[tokio::test]
async fn a_lease_that_is_waited_for_prints_the_pages_line_and_carries_this_devices_key() {
    let fake = Fake::start(serve_leases);
    let ran = typed(&fake, "rl workstationpool lease agents-linux --name my-build --wait").await;
    assert_eq!(ran.out, "workstationpoollease/my-build Ready on agents-linux-e5f6a7b8\n");
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert_eq!(ran.err, "waiting: Pending\nwaiting: Starting on agents-linux-e5f6a7b8\n");
    let key = fs::read_to_string(fake.home().join(".config/ringleader/device_ed25519.pub"))
        .expect("a key was made");
    let writes = fake.writes();
    assert_eq!(writes.len(), 2, "a device and a lease: {writes:?}");
    assert!(writes[0].contains("/devices?") && writes[0].contains(key.trim()));
    assert!(writes[1].contains("fieldValidation=Strict") && writes[1].contains(key.trim()));
}

#[tokio::test]
async fn release_ends_leases_by_name_or_label_and_waits_until_they_have_gone() {
    let fake = Fake::start(serve_leases);
    for name in ["a", "b", "c"] {
        fake.put(lease(name, "agents-linux", &json!({"phase": "Ready"})));
    }
    let ran = typed(&fake, "rl workstationpoollease release a").await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "workstationpoollease/a released\n"));
    let ran =
        typed(&fake, "rl wspl release -l pools.ringleader.dev/pool=agents-linux --recycle --wait").await;
    assert_eq!(ran.out, "workstationpoollease/b released\nworkstationpoollease/c released\n");
    assert!(fake.writes().last().expect("a write").ends_with(r#"{"spec":{"state":"Recycle"}}"#));
    let ran = typed(&fake, "rl wspl release -l pools.ringleader.dev/pool=agents-linux").await;
    assert_eq!((ran.exit, ran.err.as_str()), (0, "no lease matches: nothing was released\n"));
}

// rule S4
// On the real clock: a paused one runs ahead while the answer of a socket is on its way.
#[tokio::test]
async fn a_wait_that_times_out_cancels_its_lease_unless_it_is_detached() {
    let fake = Fake::start(let_leases_wait);
    let ran = typed(&fake, "rl wsp lease p --name x --wait --timeout 1s --no-key").await;
    assert_eq!(ran.exit, 1);
    let last = ran.err.lines().last();
    assert_eq!(last, Some("error: no member within 1s: workstationpoollease/x is cancelled"));
    assert!(fake.writes().last().expect("a write").ends_with(r#"{"spec":{"state":"Done"}}"#));
    let ran = typed(&fake, "rl -q wsp lease p --name y --wait --timeout 1s --no-key --detach").await;
    assert_eq!(
        ran.err,
        "error: no member within 1s: workstationpoollease/y waits on: `rl workstationpoollease wait y`\n"
    );
    assert!(fake.writes().last().expect("a write").starts_with("POST"), "it was left as it is");
}

// rule S6
#[tokio::test]
async fn apply_says_of_each_object_whether_it_was_created_configured_or_unchanged() {
    let fake = Fake::start(|_, _| ());
    let file = fake.home().with_extension("yaml");
    let manifest = |max: u32| {
        // A lease before its pool, and a namespace nobody has made.
        format!(
            "apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPoolLease\nmetadata: {{name: l, namespace: acme}}\n\
             spec:\n  workstationPoolRef: {{name: p}}\n---\n\
             apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {{name: p, namespace: acme}}\n\
             spec:\n  template: {{spec: {{}}}}\n  size: {{max: {max}}}\n"
        )
    };
    let line = format!("rl apply -f {}", file.display());
    fs::write(&file, manifest(6)).expect("written");
    let ran = typed(&fake, &format!("{line} --dry-run")).await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(fake.writes().is_empty(), "a dry run writes nothing");
    assert_eq!(
        typed(&fake, &line).await.out,
        "namespace/acme created (it was missing)\nworkstationpool/p created\nworkstationpoollease/l created\n"
    );
    assert_eq!(
        typed(&fake, &line).await.out,
        "workstationpool/p unchanged\nworkstationpoollease/l unchanged\n"
    );
    fs::write(&file, manifest(8)).expect("written");
    assert_eq!(
        typed(&fake, &line).await.out,
        "workstationpool/p configured\nworkstationpoollease/l unchanged\n"
    );
}

#[tokio::test]
async fn nothing_is_written_where_one_document_is_refused() {
    let fake = Fake::start(|_, _| ());
    let file = fake.home().with_extension("yaml");
    let documents = "apiVersion: core.ringleader.dev/v1\nkind: Namespace\nmetadata: {name: a}\n---\n\
        apiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\nmetadata: {name: p}\nspec: {warm: {runing: 1}}\n";
    fs::write(&file, documents).expect("written");
    let causes = json!([
        {"field": "spec.warm.runing", "message": "unknown field; did you mean \"running\"?", "reason": "FieldValueInvalid"},
        {"field": "spec.size.max", "message": "required", "reason": "FieldValueRequired"}]);
    fake.refuse("workstationpools", 422, json!({"reason": "Invalid", "details": {"causes": causes}}));
    let ran = typed(&fake, &format!("rl apply -f {}", file.display())).await;
    assert_eq!(ran.exit, 1);
    assert_eq!(
        ran.err,
        format!(
            "error: {} (document 2): workstationpool/p is refused:\n  \
             spec.warm.runing: unknown field; did you mean \"running\"?\n  spec.size.max: required\n\
             nothing was written\n",
            file.display()
        )
    );
    assert!(fake.writes().is_empty());
}

#[tokio::test]
async fn a_lease_may_be_applied_together_with_the_pool_it_names() {
    let fake = Fake::start(|_, _| ());
    let file = fake.home().with_extension("json");
    let documents = json!({"kind": "List", "items": [
        {"apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPool", "metadata": {"name": "p"}, "spec": {}},
        {"apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPoolLease", "metadata": {"name": "l"},
            "spec": {"workstationPoolRef": {"name": "p"}}}]});
    fs::write(&file, documents.to_string()).expect("written");
    let cause = json!({"field": "spec.workstationPoolRef.name", "message": "no pool", "reason": "FieldValueNotFound"});
    fake.refuse("workstationpoolleases", 422, json!({"reason": "Invalid", "details": {"causes": [cause]}}));
    let ran = typed(&fake, &format!("rl apply --dry-run -f {}", file.display())).await;
    assert_eq!(
        (ran.exit, ran.out.as_str()),
        (0, "workstationpool/p created (dry run)\nworkstationpoollease/l created (dry run)\n")
    );
}

// rule S1
#[tokio::test]
async fn get_prints_tables_and_what_programs_read() {
    let fake = Fake::start(|_, _| ());
    fake.put(pool("agents-linux"));
    fake.put(lease(
        "mine",
        "agents-linux",
        &json!({"phase": "Ready", "holder": {"kind": "User", "name": "local"}}),
    ));
    fake.put(lease(
        "other",
        "agents-linux",
        &json!({"phase": "Pending", "holder": {"kind": "User", "name": "bob"}}),
    ));

    let ran = typed(&fake, "rl get workstationpool").await;
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["NAME", "PHASE", "CAPACITY", "IDLE", "LEASED", "PENDING", "AGE"]
    );
    assert!(lines[1].starts_with("agents-linux   Ready   2/6        1      1        0"), "{}", lines[1]);

    let out = |ran: super::Ran| ran.out;
    assert_eq!(out(typed(&fake, "rl wspl get --mine -o name").await), "workstationpoollease/mine\n");
    assert_eq!(
        out(typed(&fake, "rl get wspl,wsp -o name").await),
        "workstationpoollease/mine\nworkstationpoollease/other\nworkstationpool/agents-linux\n"
    );
    assert_eq!(out(typed(&fake, "rl get wsp/agents-linux -o jsonpath={.status.phase}").await), "Ready");
    assert_eq!(out(typed(&fake, "rl get wspl -o jsonpath={.items[*].metadata.name}").await), "mine other");
    let value: serde_json::Value =
        serde_json::from_str(&out(typed(&fake, "rl get wsp agents-linux -o json").await)).expect("JSON");
    assert_eq!(value["spec"]["size"]["max"], 6);
    assert!(out(typed(&fake, "rl get wsp -A -o yaml").await).starts_with("apiVersion: v1\nkind: List\n"));
    let empty = typed(&fake, "rl get workstation").await;
    assert_eq!((empty.exit, empty.err.as_str()), (0, "no workstations in namespace local\n"));
}

// rule S3
#[tokio::test]
async fn describe_of_a_pool_lists_members_leases_and_events_by_name() {
    let fake = Fake::start(|_, _| ());
    let mut described = pool("agents-linux");
    described["metadata"]["uid"] = "pool-uid".into();
    fake.put(described);
    fake.put(member("agents-linux-e5f6a7b8", "agents-linux"));
    fake.put(lease(
        "my-build",
        "agents-linux",
        &json!({"phase": "Ready", "workstationName": "agents-linux-e5f6a7b8", "holder": {"name": "local"}}),
    ));
    fake.put(json!({"apiVersion": "core.ringleader.dev/v1", "kind": "Event",
        "metadata": {"name": "e1", "namespace": "local"}, "regarding": {"uid": "pool-uid"}, "type": "Warning",
        "reason": "TemplateFailed", "message": "no such image", "count": 3, "lastTimestamp": "2026-11-30T00:00:00Z"}));
    let ran = typed(&fake, "rl workstationpool describe agents-linux").await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    for part in [
        "Capacity:         2 of 6 members, room for 4",
        "Recycle:          no: every released member is deleted",
        "  agents-linux-e5f6a7b8   Leased   Ready   my-build   0        no",
        "  my-build   Ready   local    agents-linux-e5f6a7b8",
        "(x3)   Warning   TemplateFailed   no such image",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in\n{}", ran.out);
    }
}

#[tokio::test]
async fn deleting_a_pool_prints_the_pages_line_for_members_that_stay() {
    let fake = Fake::start(|_, _| ());
    let mut doomed = pool("agents-linux");
    doomed["metadata"]["uid"] = "pool-uid".into();
    doomed["metadata"]["finalizers"] = json!(["pools.ringleader.dev/release"]);
    fake.put(doomed);
    let held = |member: &str| json!({"phase": "Ready", "poolUID": "pool-uid", "workstationName": member});
    fake.put(lease("a", "agents-linux", &held("m-1")));
    fake.put(lease("b", "agents-linux", &held("m-2")));
    fake.put(lease("c", "agents-linux", &json!({"phase": "Pending", "poolUID": "pool-uid"})));
    let asked = typed(&fake, "rl workstationpool delete agents-linux").await;
    assert_eq!(asked.exit, 2);
    assert_eq!(
        asked.err,
        "error: this would delete workstationpool/agents-linux and its 2 members, machines and disks: \
         pass -y to do so\n"
    );
    let ran = typed(&fake, "rl workstationpool delete agents-linux -y").await;
    assert_eq!(
        ran.out,
        "workstationpool/agents-linux: 2 members stay until their leases end. Release those leases with \
         `rl workstationpoollease release -n local -l pools.ringleader.dev/pool=agents-linux`.\n"
    );
}

#[tokio::test]
async fn wait_follows_an_object_until_it_is_so() {
    let fake = Fake::start(|_, _| ());
    fake.put(lease("l", "p", &json!({"phase": "Pending"})));
    let (ran, ()) = tokio::join!(typed(&fake, "rl wait wspl l"), async {
        while fake.store().requests.iter().all(|request| !request.contains("watch=true")) {
            tokio::task::yield_now().await;
        }
        fake.put(lease("l", "p", &json!({"phase": "Ready"})));
    });
    assert_eq!((ran.exit, ran.out.as_str()), (0, "workstationpoollease/l Ready\n"));
    fake.put(lease("l", "p", &json!({"phase": "Failed", "reason": "Expired"})));
    let ran = typed(&fake, "rl workstationpoollease wait l").await;
    assert_eq!((ran.exit, ran.err.as_str()), (1, "error: workstationpoollease/l Failed: Expired\n"));
    assert_eq!(typed(&fake, "rl wait wspl nobody --for Deleted").await.exit, 0);
}

#[tokio::test]
async fn renew_without_a_term_asks_for_the_pools_longest() {
    let fake = Fake::start(|_, _| ());
    fake.put(pool("p"));
    fake.put(lease("l", "p", &json!({"phase": "Ready"})));
    let before = crate::clock::now();
    let ran = typed(&fake, "rl workstationpoollease renew l").await;
    let until = ran.out.trim().rsplit(' ').next().expect("a time").to_owned();
    let until = crate::object::Time::parse(&until).expect("a time");
    let ahead = until.millis_since(before);
    assert!((0..60_000).contains(&(ahead - 24 * 3_600_000)), "{ahead} ms ahead");
}

#[tokio::test]
async fn ssh_config_names_members_and_leases_and_pins_their_host_keys() {
    let fake = Fake::start(|_, _| ());
    fake.put(member("agents-linux-e5f6a7b8", "agents-linux"));
    let mut held = lease(
        "my-build",
        "agents-linux",
        &json!({"phase": "Ready", "workstationName": "agents-linux-e5f6a7b8"}),
    );
    held["status"]["ssh"] = super::objects::ssh();
    fake.put(held);
    let ran = typed(&fake, "rl ssh-config").await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(ran.out.contains("\nHost agents-linux-e5f6a7b8 my-build\n"), "{}", ran.out);
    assert!(ran.out.contains("\nHost *.rl\n"));
    let pinned = fake.home().join(".config/ringleader/known_hosts/agents-linux-e5f6a7b8.local.rl");
    assert_eq!(
        fs::read_to_string(&pinned).expect("pinned"),
        "agents-linux-e5f6a7b8.local.rl ssh-ed25519 AAAAhost\n"
    );
    let file = fake.home().join("config");
    fs::write(&file, &ran.out).expect("written");
    let read = |name: &str| {
        let ssh = std::process::Command::new("ssh").arg("-F").arg(&file).args(["-G", name]).output();
        ssh.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // Judged by OpenSSH itself, where it is installed.
    if let Some(settings) = read("my-build") {
        assert!(settings.contains("\nhostkeyalias agents-linux-e5f6a7b8.local.rl\n"), "{settings}");
        assert!(settings.contains(&format!("\nuserknownhostsfile {}\n", pinned.display())), "{settings}");
        let any = read("new.rl").expect("installed");
        assert!(any.contains("\nknownhostscommand ") && any.contains(" ssh-config --server "), "{any}");
    }
    let keys = typed(&fake, "rl ssh-config --known-hosts my-build.rl").await;
    assert_eq!(keys.out, "my-build.rl ssh-ed25519 AAAAhost\n");
}

#[tokio::test]
async fn the_door_to_a_member_is_a_stream_of_bytes() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let fake = Fake::start(|_, _| ());
    fake.put(member("m-1", "p"));
    let address = crate::client::Address::Named(crate::client::Server::Unix(fake.socket()));
    let client = crate::client::Client::new(address, std::sync::Arc::new(|_| ()));
    let registry = crate::object::registry();
    let target = crate::client::Target::new(registry.by_word("ws").expect("a kind"), "local", "m-1");
    let (mut stream, first) = client.ssh(&target).await.expect("a door");
    stream.write_all(b"hello").await.expect("written");
    let mut all = first.to_vec();
    while all.len() < b"SSH-2.0-fake\r\nhello".len() {
        assert!(stream.read_buf(&mut all).await.expect("read") > 0);
    }
    assert_eq!(all, b"SSH-2.0-fake\r\nhello");
}

#[tokio::test]
async fn the_servers_warnings_go_to_stderr_even_when_quiet() {
    let fake = Fake::start(|_, _| ());
    fake.warn("spec.template.spec.devtools: docker has no installer here");
    let ran = typed(&fake, "rl -q workstationpool create p --size-max 2").await;
    assert_eq!(ran.out, "workstationpool/p created\n");
    assert_eq!(ran.err, "warning: spec.template.spec.devtools: docker has no installer here\n");
}

#[tokio::test]
async fn a_namespace_is_used_from_then_on() {
    let fake = Fake::start(|_, _| ());
    fake.put(
        json!({"apiVersion": "core.ringleader.dev/v1", "kind": "Namespace", "metadata": {"name": "acme"}}),
    );
    assert_eq!(typed(&fake, "rl namespace use acme").await.exit, 0);
    let ran = typed(&fake, "rl get wsp").await;
    assert_eq!(ran.err, "no workstationpools in namespace acme\n");
    assert_eq!(typed(&fake, "rl namespace use nowhere").await.exit, 1);
}

#[tokio::test]
async fn the_daemon_is_asked_for_its_state_and_version() {
    let fake = Fake::start(|_, _| ());
    let ran = typed(&fake, "rl status").await;
    assert!(ran.out.contains("Ready:     yes") && ran.out.contains("sandbox    available"), "{}", ran.out);
    assert_eq!(typed(&fake, "rl status -o jsonpath={.providers[0].state}").await.out, "available");
    let ran = typed(&fake, "rl version").await;
    assert!(ran.out.starts_with("client ") && ran.out.contains("\nserver 0.1.0 at unix:///"), "{}", ran.out);
    assert_eq!(typed(&fake, "rl version --client").await.out.lines().count(), 1);
    assert!(typed(&fake, "rl completion bash").await.out.contains("_rl()"));
}

#[tokio::test]
async fn a_follower_outlives_a_restart_of_the_server() {
    let fake = Fake::start(|_, _| ());
    fake.put(lease("l", "p", &json!({"phase": "Pending"})));
    let (ran, ()) = tokio::join!(run(environment(&fake), "rl wait wspl l"), async {
        while fake.store().requests.iter().all(|request| !request.contains("watch=true")) {
            tokio::task::yield_now().await;
        }
        fake.end_watches();
        fake.put(lease("l", "p", &json!({"phase": "Ready"})));
    });
    assert_eq!((ran.exit, ran.out.as_str()), (0, "workstationpoollease/l Ready\n"));
}
