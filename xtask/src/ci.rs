//! Format, clippy, documentation, dependencies, workflows, and the CNI plugin with `cnitool`.

use crate::clients::install_go;
use crate::kube;
use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{Outcome, Runner, cargo, limited, locked, run, run_all, succeeds, target_dir};

/// Manifest of the fuzz targets, a separate workspace.
pub const FUZZ_MANIFEST: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// Checks the format of every workspace.
pub fn format(runner: &mut Runner) {
    runner.step("format", check_format);
}

pub fn clippy_workspace(runner: &mut Runner) {
    runner.step("clippy", || clippy(&["--workspace"]));
}

pub fn clippy_fuzz(runner: &mut Runner) {
    runner.step("clippy: fuzz targets", || clippy(&FUZZ_MANIFEST));
}

/// Checks the rules in CONTRIBUTING.md that can be checked by a program.
pub fn style(runner: &mut Runner) {
    runner.step("style", || {
        let mut command = cargo(["test", "--package", "xtask", "--test", "style"]);
        command.args(locked());
        run(command)
    });
}

/// Builds the crates' documentation.
pub fn docs(runner: &mut Runner) {
    runner.step("docs", || {
        let mut command = cargo(["doc", "--workspace", "--no-deps"]);
        command
            .args(locked())
            .env("RUSTDOCFLAGS", "--deny warnings");
        run(command)
    });
}

fn check_format() -> Outcome {
    run_all([
        cargo(["fmt", "--all", "--check"]),
        cargo(["fmt", "--check"].into_iter().chain(FUZZ_MANIFEST)),
        cargo(["fmt", "--check"].into_iter().chain(kube::MANIFEST)),
    ])
}

fn clippy(workspace: &[&'static str]) -> Outcome {
    let mut command = cargo(["clippy", "--all-targets", "--keep-going"]);
    command
        .args(workspace)
        .args(locked())
        .args(["--", "--deny", "warnings"])
        // Share the compiled dependencies of the workspaces.
        .env("CARGO_TARGET_DIR", target_dir());
    run(command)
}

/// Runs the checks that need only the lock file, then the check for advisories.
pub fn deny(runner: &mut Runner) {
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
        // The database is a git repository, which some machines cannot reach.
        if !succeeds("timeout", &["60", "cargo", "deny", "fetch", "db"]) {
            let why = "advisories skipped: database unreachable";
            return Err(Skipped(why.to_owned()));
        }
        let mut check = cargo(["deny", "--workspace", "check"]);
        check.args(["--disable-fetch", "advisories"]);
        run(check)
    });
}

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";

/// Installs `actionlint` and runs it.
pub fn workflows(runner: &mut Runner) {
    runner.step("workflows", || {
        let bin = install_go(ACTIONLINT)?;
        run(limited(&bin.join("actionlint").to_string_lossy()))
    });
}

/// Module of `cnitool`.
const CNITOOL: &str = "github.com/containernetworking/cni/cnitool@v1.3.1";

/// Installs `cnitool` and runs the test that needs it.
pub fn cni(runner: &mut Runner) {
    runner.step("CNI: cnitool", || {
        let bin = install_go(CNITOOL)?;
        let mut test = cargo(["test", "--package", "longwire", "--test", "it"]);
        test.args(locked()).arg("cni::cnitool");
        test.env("CNITOOL", bin.join("cnitool"));
        run(test)
    });
}
