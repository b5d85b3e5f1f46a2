//! The checks of continuous integration in addition to `cargo xtask test`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::runner::{
    Outcome, Runner, built, cargo, limited, locked, root, run, run_all, target_dir, workspace,
};
use crate::{bench, book, clients, cni, deny, fuzz, kube, leftovers, memory, page, python};

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: u32 = 5;

/// The manifest of the fuzz targets, which are a separate workspace.
pub const FUZZ_MANIFEST: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// Runs every step, those that fail soonest first.
pub fn run_steps(runner: &mut Runner) {
    let before = leftovers::look();
    runner.step("format", format);
    style(runner);
    deny::run_steps(runner);
    runner.step("clippy", clippy);
    runner.step("docs", docs);
    memory::loom(runner);
    memory::asan(runner);
    book::run_steps(runner);
    runner.step("examples", examples);
    runner.step("probe", || probe(false));
    bench::run_tiny(runner);
    page::run_steps(runner);
    python::run_steps(runner);
    clients::run_steps(runner);
    cni::run_steps(runner);
    kube::run_steps(runner);
    fuzz::run_targets(runner, FUZZ_SECONDS);
    runner.step("nothing left behind", || leftovers::compare(&before));
}

/// Checks the rules of CONTRIBUTING.md that a program can check.
pub fn style(runner: &mut Runner) {
    runner.step("style", || {
        let mut command = cargo(["test", "--package", "xtask", "--test", "style"]);
        command.args(locked());
        run(command)
    });
}

fn format() -> Outcome {
    run_all([
        cargo(["fmt", "--all", "--check"]),
        cargo(["fmt", "--check"].into_iter().chain(FUZZ_MANIFEST)),
        cargo(["fmt", "--check"].into_iter().chain(kube::MANIFEST)),
    ])
}

fn clippy() -> Outcome {
    let clippy = |which: &[&'static str]| -> Command {
        let mut command = cargo(["clippy", "--all-targets", "--keep-going"]);
        command
            .args(which)
            .args(locked())
            .args(["--", "--deny", "warnings"]);
        command
    };
    let mut fuzz = clippy(&FUZZ_MANIFEST);
    // Both workspaces share the checked dependencies.
    fuzz.env("CARGO_TARGET_DIR", target_dir());
    run_all([clippy(&["--workspace"]), fuzz])
}

fn docs() -> Outcome {
    let mut command = cargo(["doc", "--workspace", "--no-deps"]);
    command
        .args(locked())
        .env("RUSTDOCFLAGS", "--deny warnings");
    run(command)
}

/// Runs every example of the crates.
fn examples() -> Outcome {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let crates = entries(&root().join("crates"));
    let files = crates.flat_map(|entry| entries(&entry.path().join("examples")));
    let mut names: Vec<OsString> = files
        .filter_map(|file| Some(file.path().file_stem()?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        return Outcome::Failed("no crates/*/examples/*.rs".to_owned());
    }
    let mut build = workspace("build");
    build.arg("--examples");
    let program = |name| limited(&built(&Path::new("examples").join(name)));
    run_all([build].into_iter().chain(names.iter().map(program)))
}

/// Runs the README's first command: unchanged, or without `--release`, with the build
/// of the tests.
pub fn probe(release: bool) -> Outcome {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let command = readme
        .lines()
        .find_map(|line| line.strip_prefix("cargo run --release "));
    let Some(arguments) = command else {
        return Outcome::Failed("README.md has no line with `cargo run --release …`".to_owned());
    };
    if release {
        let command = ["run", "--release"].into_iter();
        return run(cargo(command.chain(arguments.split_whitespace())));
    }
    let mut build = workspace("build");
    build.args(["--bin", "longwire"]);
    let mut program = limited(&built(Path::new("longwire")));
    let arguments = arguments.split_whitespace();
    program.args(arguments.skip_while(|word| *word == "--"));
    run_all([build, program])
}
