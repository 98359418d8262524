//! What somebody with bad luck or bad manners does to a daemon and its members.

use crate::harness::Daemon;

// rule A4
#[test]
fn who_empties_or_links_away_its_ssh_directory_locks_nobody_out() {
    let daemon = Daemon::with_pool();
    let member = daemon.lease("job");
    for mischief in ["rm -rf ~/.ssh", "rm -rf ~/.ssh; ln -s /tmp ~/.ssh", "chmod 777 ~"] {
        daemon.ok(&["shell", &member, "--", mischief]);
        assert_eq!(daemon.ok(&["shell", &member, "--", "echo in"]).trim(), "in", "after {mischief}");
    }
    daemon.ok(&["workstationpoollease", "release", "job"]);
    daemon.until("the member is gone", || !daemon.names("workstation").contains(&member));
    daemon.clear();
}
