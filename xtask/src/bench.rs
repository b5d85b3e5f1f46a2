//! Runs every bench once at its smallest size, as a smoke test.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::runner::{Runner, built, cargo, limited, root, run, run_all, target_dir, workspace};

/// Benches of `longwire bench` that need no arguments.
const OF_THE_PROGRAM: [&str; 6] = ["throughput", "accuracy", "rate", "live", "links", "shards"];

/// Benches of `cargo spec-bench` that need no arguments.
const OF_THE_SPECIFICATION: [&str; 15] = [
    "idle",
    "light",
    "send",
    "linkem",
    "multiplex",
    "startup",
    "control",
    "controllable",
    "offline",
    "replay-speed",
    "replay",
    "verdict",
    "trains",
    "attach",
    "peers",
];

/// Benches without criterion. `cargo test` already runs the benches with criterion once.
const OF_PORTS: [&str; 4] = ["captures", "delay_line", "offload", "ports"];

/// Runs the benches of `longwire-capture`, `longwire-io` and the program at their smallest size.
pub fn run_tiny(runner: &mut Runner) {
    runner.step("benches of ports", || {
        let mut command = workspace("bench");
        command.args(["--profile", "dev"]);
        for bench in OF_PORTS {
            command.args(["--bench", bench]);
        }
        command.args(["--", "--test"]);
        run(command)
    });
    runner.step("benches", || {
        let mut build = workspace("build");
        build.arg("--bins");
        let program = |name: &str, arguments: &[&str]| -> Command {
            let mut command = limited(&built(Path::new(name)));
            command.args(arguments).arg("--quick");
            command
        };
        let user = |kind: &str| program("longwire", &["bench", kind]);
        let specification = |kind: &str| program("longwire-spec-bench", &[kind]);
        let (compile, library) = example_plugin();
        let mut plugin = user("plugin");
        plugin.arg(&library).args(["bytes=11", "p=10%"]);
        let mut veth = specification("multiplex");
        veth.arg("--veth");
        let commands = [build, compile, plugin, veth];
        run_all(
            commands
                .into_iter()
                .chain(OF_THE_PROGRAM.map(user))
                .chain(OF_THE_SPECIFICATION.map(specification)),
        )
    });
}

/// Builds the benches of SPECIFICATION.md in release mode, and runs one.
pub fn run_specification(arguments: &[&str]) -> ExitCode {
    let mut build = cargo(["build", "--release", "--quiet"]);
    build.args(["--package", "longwire", "--package", "longwire-spec-bench"]);
    let mut bench = Command::new(target_dir().join("release/longwire-spec-bench"));
    bench.args(arguments);
    for mut command in [build, bench] {
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return ExitCode::from(status.code().map_or(1, |code| code as u8)),
            Err(error) => {
                eprintln!("cannot run {:?}: {error}", command.get_program());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Returns the compiler command for the example plugin, and its output path.
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
