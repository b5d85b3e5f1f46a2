//! Every bench once, as small as it gets: no figures, only that it runs.

use std::path::PathBuf;
use std::process::Command;

use crate::runner::{Runner, cargo, limited, locked, root, run, run_all, target_dir};

/// What `longwire bench` measures without being given anything.
const KINDS: [&str; 15] = [
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
    "verdict",
];

/// Benches that measure without criterion; the others run once with `cargo test`.
const OF_PORTS: [&str; 3] = ["captures", "delay_line", "ports"];

/// Runs each bench of `longwire-io`, and of the program, in its smallest form.
pub fn run_tiny(runner: &mut Runner) {
    runner.step("benches of ports", || {
        let mut command = cargo(["bench", "--profile", "dev", "--package", "longwire-io"]);
        for bench in OF_PORTS {
            command.args(["--bench", bench]);
        }
        command.args(locked()).args(["--", "--test"]);
        run(command)
    });
    runner.step("benches", || {
        let mut build = cargo(["build", "--package", "longwire"]);
        build.args(locked());
        let program = target_dir().join("debug/longwire");
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
