//! A daemon with nothing to do sleeps.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::harness::Daemon;

/// As long as the promise speaks of. The one wait of these tests that no condition ends.
const A_MINUTE: Duration = Duration::from_mins(1);
/// Before it is measured, nothing has happened for so long: what was started with an end of its own
/// (a thread that helped out, the watchdog's last look) has ended.
const SETTLED: Duration = Duration::from_secs(12);

/// Of each thread, its name and how often it was switched to or from, of its own will or not.
type Switches = BTreeMap<u32, (String, u64)>;

// rule W8
#[test]
fn an_idle_daemon_with_a_hundred_pools_is_not_woken_once_in_a_minute() {
    let daemon = Daemon::start();
    let pool = |number: u32| {
        let running = u32::from(number < 3);
        format!(
            "---\napiVersion: workstations.ringleader.dev/v1\nkind: WorkstationPool\n\
             metadata: {{name: pool-{number}, namespace: local}}\n\
             spec: {{template: {{spec: {{}}}}, size: {{max: 2}}, warm: {{running: {running}}}}}\n"
        )
    };
    std::fs::write(daemon.path("pools.yaml"), (0..100).map(pool).collect::<String>()).expect("written");
    daemon.ok(&["apply", "-f", &daemon.path("pools.yaml").display().to_string()]);
    for number in 0..3 {
        daemon.ok(&["wait", "workstationpool", &format!("pool-{number}"), "--timeout", "90s"]);
    }

    // No deadline of these pools falls into the minute, so nothing at all may wake. Whoever sets
    // the machine's clock meanwhile wakes every owner, rightly: then it is another minute.
    let set = || daemon.logged("INFO").iter().filter(|line| line.contains("the clock was set")).count();
    let table = loop {
        let (before, set_before) = (settled(&daemon), set());
        std::thread::sleep(A_MINUTE);
        let after = switches(&daemon);
        if set() == set_before {
            break difference(&before, &after);
        }
    };
    let sum: u64 = table.values().map(|(_, count)| count).sum();
    assert_eq!(sum, 0, "context switches in a minute:\n{}", printed(&table));
    daemon.clear();
}

/// The counts, once they have stood still.
fn settled(daemon: &Daemon) -> Switches {
    let mut last = (switches(daemon), Instant::now());
    daemon.until("the daemon is quiet", || {
        let now = switches(daemon);
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > SETTLED
    });
    last.0
}

fn switches(daemon: &Daemon) -> Switches {
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it runs");
    let of = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |key: &str| {
            status.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
        };
        let count = |key| value(key)?.parse::<u64>().ok();
        let sum = count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?;
        Some((thread.file_name().to_str()?.parse().ok()?, (value("Name:")?, sum)))
    };
    threads.filter_map(|thread| of(thread.ok()?)).collect()
}

/// How often each was switched between two counts; a thread that is new counts whole.
fn difference(before: &Switches, after: &Switches) -> Switches {
    let since = |thread| before.get(thread).map_or(0, |(_, count)| *count);
    after.iter().map(|(thread, (name, count))| (*thread, (name.clone(), count - since(thread)))).collect()
}

fn printed(table: &Switches) -> String {
    table.values().map(|(name, count)| format!("{count:>8}  {name}\n")).collect()
}
