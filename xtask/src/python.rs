//! The Python package: built, installed into an environment under `target/python`, and tested
//! there, with the types checked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::runner::{Outcome, Runner, limited, root, run, run_all, succeeds, target_dir};

/// The folder of the package, from the repository's root.
const PACKAGE: &str = "python";

/// Builds and tests the package.
pub fn run_steps(runner: &mut Runner) {
    let folder = target_dir().join("python");
    let venv = folder.join("venv");
    runner.step("python: tools", || install_tools(&venv));
    runner.step("python: wheel", || build_wheel(&venv, &folder.join("wheels")));
    runner.step("python: types", || check_types(&venv));
    runner.step("python: tests", || test(&venv));
}

fn install_tools(venv: &Path) -> Outcome {
    if !succeeds("python3", &["-m", "venv", "--help"]) {
        return Outcome::Skipped("needs python3 with venv (Debian: python3-venv)".to_owned());
    }
    let mut make = limited("python3");
    make.args(["-m", "venv"]).arg(venv);
    let mut fill = tool(venv, "pip");
    fill.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    fill.arg(root().join("xtask/python/requirements.txt"));
    run_all([make, fill])
}

/// Builds a wheel with the program of the tests, and installs it.
fn build_wheel(venv: &Path, wheels: &Path) -> Outcome {
    if !venv.join("bin/maturin").exists() {
        return Outcome::Skipped("the tools are not installed".to_owned());
    }
    // Only the wheel of this build is to be found there.
    let _ = fs::remove_dir_all(wheels);
    let mut build = tool(venv, "maturin");
    build.args(["build", "--profile", "dev", "--locked"]);
    build.args(["--compatibility", "linux", "--out"]).arg(wheels);
    build.env("CARGO_TARGET_DIR", target_dir());
    build.current_dir(root().join(PACKAGE));
    match run(build) {
        Outcome::Passed => {}
        other => return other,
    }
    let Some(wheel) = only_wheel(wheels) else {
        return Outcome::Failed(format!("no wheel in {}", wheels.display()));
    };
    let mut install = tool(venv, "pip");
    install.args(["install", "--quiet", "--disable-pip-version-check"]);
    install.args(["--force-reinstall", "--no-deps"]).arg(wheel);
    run(install)
}

fn only_wheel(wheels: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(wheels).ok()?.flatten();
    files
        .find(|file| file.path().extension().is_some_and(|found| found == "whl"))
        .map(|file| file.path())
}

fn check_types(venv: &Path) -> Outcome {
    let mut mypy = tool(venv, "mypy");
    mypy.current_dir(root().join(PACKAGE));
    // Python 3.9 is the oldest that the package promises, and 3.10 the oldest that mypy knows.
    mypy.args(["--strict", "--python-version", "3.10", "longwire"]);
    let mut pyright = tool(venv, "pyright");
    pyright.current_dir(root().join(PACKAGE));
    pyright.args(["--pythonversion", "3.9", "longwire"]);
    pyright.arg("--pythonpath").arg(venv.join("bin/python"));
    run_all([mypy, pyright])
}

fn test(venv: &Path) -> Outcome {
    let mut pytest = tool(venv, "pytest");
    // The installed package is tested: neither pytest nor its tests look into the folder.
    pytest.args(["-q", "-p", "no:cacheprovider"]);
    pytest.arg(root().join(PACKAGE).join("tests"));
    pytest.current_dir(target_dir());
    run(pytest)
}

fn tool(venv: &Path, name: &str) -> std::process::Command {
    limited(&venv.join("bin").join(name).to_string_lossy())
}
