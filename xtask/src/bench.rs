//! Every bench once, as small as it gets: no figures, only that it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::runner::{Outcome, Runner, cargo, limited, locked, root, run, run_all, target_dir};

/// What `longwire bench` measures without being given anything.
const KINDS: [&str; 14] = [
    "throughput",
    "accuracy",
    "rate",
    "loss",
    "idle",
    "live",
    "send",
    "links",
    "linkem",
    "multiplex",
    "startup",
    "control",
    "replay-speed",
    "replay",
];

/// The benches of the parts, then those of the whole.
pub fn run_tiny(runner: &mut Runner) {
    runner.step("benches of the parts", || {
        let benches = benches();
        if benches.is_empty() {
            return Outcome::Failed("no crates/*/benches/*.rs".to_owned());
        }
        let mut command = cargo(["bench", "--workspace"]);
        for bench in &benches {
            command.args(["--bench", bench]);
        }
        command.args(locked()).args(["--", "--test"]);
        run(command)
    });
    runner.step("benches of the whole", || {
        let mut build = cargo(["build", "--release", "--package", "longwire"]);
        build.args(locked());
        let program = target_dir().join("release/longwire");
        let bench = |kind: &str| -> Command {
            let mut command = limited(&program.to_string_lossy());
            command.args(["bench", kind, "--quick"]);
            command
        };
        let (compile, library) = example_plugin();
        let mut plugin = bench("plugin");
        plugin.arg(&library).args(["bytes=11", "p=10%"]);
        let mut veth = bench("multiplex");
        veth.arg("--veth");
        let commands = [build, compile, plugin, veth];
        run_all(commands.into_iter().chain(KINDS.map(bench)))
    });
}

/// How an example of a plugin is compiled, and to where.
fn example_plugin() -> (Command, PathBuf) {
    let library = target_dir().join("data_loss.so");
    let mut compile = Command::new("cc");
    compile
        .args(["-std=c99", "-O2", "-shared", "-fPIC", "-I"])
        .arg(root().join("include"))
        .arg("-o")
        .arg(&library)
        .arg(root().join("examples/plugins/data_loss.c"));
    (compile, library)
}

/// The names of all benches, `crates/*/benches/NAME.rs`.
fn benches() -> Vec<String> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries(&root().join("crates"))
        .flat_map(|member| entries(&member.path().join("benches")).collect::<Vec<_>>())
        .map(|entry| entry.path());
    let sources = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<String> = sources
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}
