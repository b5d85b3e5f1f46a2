//! Checks of the control API with external tools: a client generated from its OpenAPI
//! document controls a real run, and schemathesis tests it.
//!
//! `xtask/api/drive.py` runs the checks; this module installs the tools from PyPI into
//! `target/api/venv`, and creates namespaces.

use std::path::Path;

use crate::python::{make_venv, tools_first};
use crate::runner::Shortfall::Skipped;
use crate::runner::{Outcome, Runner, cargo, limited, root, run, target_dir};

/// The folder of the checks, relative to the repository's root.
const FOLDER: &str = "xtask/api";

/// Installs the tools, builds the program, and runs the checks.
pub fn run_steps(runner: &mut Runner) {
    let folder = target_dir().join("api");
    let venv = folder.join("venv");
    runner.step("api: tools", || {
        make_venv(&venv, "xtask/api/requirements.txt")
    });
    runner.step("api: build", || {
        run(cargo(["build", "--workspace", "--bin", "longwire"]))
    });
    runner.step("api: generated client, schemathesis", || {
        drive(&venv, &folder.join("run"))
    });
}

fn drive(venv: &Path, folder: &Path) -> Outcome {
    let python = venv.join("bin/python");
    if !python.exists() {
        return Err(Skipped("the tools are not installed".to_owned()));
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
    tools_first(&mut command, venv);
    run(command)
}
