//! Many at once.

use std::collections::BTreeSet;

use crate::harness::Daemon;

const POOL: &str = "\
apiVersion: workstations.ringleader.dev/v1
kind: WorkstationPool
metadata: {name: agents-linux, namespace: local}
spec: {template: {spec: {}}, size: {max: 8}, warm: {running: 2}}
";

// rule L8
#[test]
fn twenty_leases_in_parallel_on_a_pool_of_eight_are_each_served_once() {
    let daemon = Daemon::start();
    std::fs::write(daemon.path("pool.yaml"), POOL).expect("written");
    let manifest = daemon.path("pool.yaml").display().to_string();
    daemon.ok(&["apply", "-f", &manifest]);
    // The device is registered once, so that twenty first uses do not race for it.
    daemon.ok(&["auth", "status"]);
    let served: Vec<String> = std::thread::scope(|scope| {
        let holders: Vec<_> = (0..20)
            .map(|number| {
                let daemon = &daemon;
                scope.spawn(move || {
                    let name = format!("job-{number}");
                    let member = daemon.lease(&name);
                    let host = daemon.ok(&["shell", &member, "--", "hostname"]);
                    assert_eq!(host.trim(), member);
                    let most: u32 = daemon
                        .value("workstationpool", "agents-linux", "{.status.capacity.members}")
                        .parse()
                        .expect("a number");
                    assert!(most <= 8, "{most} members in a pool of eight");
                    daemon.ok(&["workstationpoollease", "release", &name]);
                    member
                })
            })
            .collect();
        holders.into_iter().map(|holder| holder.join().expect("served")).collect()
    });
    let different: BTreeSet<&String> = served.iter().collect();
    assert_eq!(different.len(), 20, "no member was lent twice: {served:?}");
    daemon.clear();
    assert_eq!(daemon.logged("ERROR"), Vec::<String>::new());
}

// rule D4
// case 30 (agent-sandbox#1736)
#[test]
fn tearing_down_one_pool_touches_no_other_of_the_same_name() {
    let daemon = Daemon::start();
    for namespace in ["acme", "zenith"] {
        let file = daemon.path(&format!("{namespace}.yaml"));
        std::fs::write(&file, POOL.replace("namespace: local", &format!("namespace: {namespace}")))
            .expect("written");
        daemon.ok(&["apply", "-f", &file.display().to_string()]);
    }
    let of = |namespace: &str, words: &[&str]| daemon.ok(&[&["-n", namespace], words].concat());
    let bound = |namespace| {
        let line = of(namespace, &["workstationpool", "lease", "agents-linux", "--name", "job", "--wait"]);
        line.trim().rsplit_once(' ').expect("the member comes last").1.to_owned()
    };
    let (_, kept) = (bound("acme"), bound("zenith"));
    of("acme", &["delete", "workstationpool", "agents-linux", "-y"]);
    of("acme", &["workstationpoollease", "release", "job"]);
    daemon.until("acme's pool is gone", || {
        of("acme", &["get", "workstationpool", "-o", "name"]).is_empty()
            && of("acme", &["get", "workstation", "-o", "name"]).is_empty()
    });
    assert_eq!(of("zenith", &["shell", &kept, "--", "hostname"]).trim(), kept);
    let members = of("zenith", &["get", "workstation", "-o", "name"]);
    assert!(members.contains(&kept), "{members}");
    let phase = ["get", "workstationpoollease", "job", "-o", "jsonpath={.status.phase}"];
    assert_eq!(of("zenith", &phase), "Ready");
}
