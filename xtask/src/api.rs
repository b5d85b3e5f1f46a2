//! Checks of the control API with external tools: a client generated from its OpenAPI
//! document controls a real run, and schemathesis tests it.
//!
//! `xtask/api/drive.py` runs the checks; this module installs the tools from PyPI into
//! `target/api/venv`, and creates namespaces.

use std::env;
use std::path::Path;

use crate::runner::{Outcome, Runner, cargo, limited, root, run, run_all, succeeds, target_dir};

/// The folder of the checks, relative to the repository's root.
const FOLDER: &str = "xtask/api";

/// Installs the tools, builds the program, and runs the checks.
pub fn run_steps(runner: &mut Runner) {
    let folder = target_dir().join("api");
    let venv = folder.join("venv");
    runner.step("api: tools", || install(&venv));
    runner.step("api: build", || {
        run(cargo(["build", "--workspace", "--bin", "longwire"]))
    });
    runner.step("api: generated client, schemathesis", || {
        drive(&venv, &folder.join("run"))
    });
}

fn install(venv: &Path) -> Outcome {
    if !succeeds("python3", &["-m", "venv", "--help"]) {
        let why = "needs python3 with venv (Debian: python3-venv)";
        return Outcome::Skipped(why.to_owned());
    }
    let mut make = limited("python3");
    make.args(["-m", "venv"]).arg(venv);
    let program = venv.join("bin/pip");
    let mut fill = limited(&program.to_string_lossy());
    fill.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    fill.arg(root().join(FOLDER).join("requirements.txt"));
    run_all([make, fill])
}

fn drive(venv: &Path, folder: &Path) -> Outcome {
    let python = venv.join("bin/python");
    if !python.exists() {
        return Outcome::Skipped("the tools are not installed".to_owned());
    }
    // All processes of the command end with it, and their devices too.
    let mut command = limited("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid"])
        .args(["--fork", "--kill-child", "--mount-proc"])
        .arg(python)
        .arg(root().join(FOLDER).join("drive.py"))
        .arg(target_dir().join("debug/longwire"))
        .arg(folder);
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = [venv.join("bin")]
        .into_iter()
        .chain(env::split_paths(&path));
    match env::join_paths(programs) {
        Ok(path) => command.env("PATH", path),
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    run(command)
}
