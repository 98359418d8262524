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
                    let most: u32 = daemon.value("workstationpool", "agents-linux", "{.status.capacity.members}").parse().expect("a number");
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
