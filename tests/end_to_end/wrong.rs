//! What a newcomer types wrong, and the exact answer each gets.

use crate::harness::{Daemon, text};

/// A manifest, and the line that must be in the answer.
const MANIFESTS: &[(&str, &str, &str)] = &[];

#[test]
fn placeholder_for_the_table_of_wrong_manifests() {
    let daemon = Daemon::start();
    for (what, manifest, answer) in MANIFESTS {
        std::fs::write(daemon.path("wrong.yaml"), manifest).expect("written");
        let output = daemon.rl(&["apply", "-f", &daemon.path("wrong.yaml").display().to_string()]);
        assert!(text(&output.stderr).contains(answer), "{what}: {}", text(&output.stderr));
    }
}
