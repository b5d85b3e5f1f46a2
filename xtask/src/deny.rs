//! Licences, origins and known faults of the dependencies.

use crate::runner::{Outcome, Runner, cargo, run, succeeds};

/// What needs nothing but the lock file, and then the advisories.
pub fn run_all(runner: &mut Runner) {
    runner.step("deny", || {
        if !succeeds("cargo", &["deny", "--version"]) {
            let how = "needs cargo-deny: cargo install cargo-deny --locked";
            return Outcome::Failed(how.to_owned());
        }
        run(cargo([
            "deny",
            "--workspace",
            "check",
            "bans",
            "licenses",
            "sources",
        ]))
    });
    runner.step("advisories", || {
        // The database is a git repository on the network: not every machine
        // gets there.
        if !succeeds("timeout", &["60", "cargo", "deny", "fetch", "db"]) {
            return Outcome::Skipped("advisories skipped: database unreachable".to_owned());
        }
        run(cargo([
            "deny",
            "--workspace",
            "check",
            "--disable-fetch",
            "advisories",
        ]))
    });
}
