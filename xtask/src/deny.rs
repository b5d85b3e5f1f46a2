//! Checks licences, origins and known vulnerabilities of the dependencies.

use crate::ci::FUZZ_MANIFEST;
use crate::kube;
use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{Runner, cargo, run, run_all, succeeds};

/// Runs the checks that need only the lock file, then the advisories.
pub fn run_steps(runner: &mut Runner) {
    runner.step("deny", || {
        if !succeeds("cargo", &["deny", "--version"]) {
            let how = "needs cargo-deny: cargo install cargo-deny --locked";
            return Err(Failed(how.to_owned()));
        }
        let check = |workspace: &[&'static str]| {
            let mut command = cargo(["deny"]);
            command
                .args(workspace)
                .args(["check", "--hide-inclusion-graph"])
                .args(["bans", "licenses", "sources"]);
            command
        };
        let separate = [check(&FUZZ_MANIFEST), check(&kube::MANIFEST)];
        run_all([check(&["--workspace"])].into_iter().chain(separate))
    });
    runner.step("advisories", || {
        // The database is a git repository, unreachable from some machines.
        if !succeeds("timeout", &["60", "cargo", "deny", "fetch", "db"]) {
            return Err(Skipped(
                "advisories skipped: database unreachable".to_owned(),
            ));
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
