//! The Python package: builds it, installs it into a virtual environment in `target/python` and
//! tests it; checks its types and API page. Also checks the control API with Python tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{
    Outcome, Runner, Shortfall, cargo, entries, limited, make_folder, root, run, run_all, succeeds,
    target_dir,
};

/// Package folder, relative to the repository root.
const PACKAGE: &str = "python";

/// Builds and tests the package, and runs its examples.
pub fn run_steps(runner: &mut Runner) {
    let folder = target_dir().join("python");
    let (venv, wheels) = (folder.join("venv"), folder.join("wheels"));
    runner.step("python: tools", || install_tools(&venv));
    runner.step("python: wheel", || build_wheel(&venv, &wheels));
    runner.step("python: types", || check_types(&venv));
    runner.step("python: reference", || check_reference(&venv));
    runner.step("python: tests", || test(&venv, "tests"));
    runner.step("python: example dependencies", || {
        install(&venv, "python/examples/requirements.txt")
    });
    runner.step("python: examples", || test(&venv, "examples"));
}

/// Builds the wheel for publication: optimised, and for glibc 2.17.
pub fn build_release(runner: &mut Runner) {
    let folder = target_dir().join("python");
    let venv = folder.join("venv");
    runner.step("python: tools", || install_tools(&venv));
    runner.step("python: program for old systems", || {
        let package = cargo(["xtask", "package", "--only", "archive"]);
        run(package)?;
        take_program(&target_dir().join("package/longwire"))
    });
    runner.step("python: wheel for old systems", || {
        let mut build = maturin(&venv, &folder.join("dist"));
        // Use Zig, which links against an older glibc than the machine's.
        build.args(["--release", "--zig", "--compatibility", "manylinux2014"]);
        run(build)
    });
}

/// Returns the pytest command, in a virtual environment with the tools.
///
/// # Errors
/// The reason why it is unavailable.
pub fn with_pytest() -> Result<Command, Shortfall> {
    let venv = target_dir().join("python/venv");
    install_tools(&venv)?;
    Ok(tool(&venv, "pytest"))
}

fn install_tools(venv: &Path) -> Outcome {
    make_venv(venv, "xtask/python/requirements.txt")
}

/// Creates a virtual environment with the requirements listed in a file.
pub fn make_venv(venv: &Path, requirements: &str) -> Outcome {
    if !succeeds("python3", &["-m", "venv", "--help"]) {
        return Err(Skipped(
            "needs python3 with venv (Debian: python3-venv)".to_owned(),
        ));
    }
    let mut make = limited("python3");
    make.args(["-m", "venv"]).arg(venv);
    run(make)?;
    install(venv, requirements)
}

/// Installs the requirements listed in a file.
fn install(venv: &Path, requirements: &str) -> Outcome {
    let mut pip = tool(venv, "pip");
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    pip.arg(root().join(requirements));
    run(pip)
}

/// Builds a wheel with the program used by the tests, and installs it.
fn build_wheel(venv: &Path, wheels: &Path) -> Outcome {
    if !venv.join("bin/maturin").exists() {
        return Err(Skipped("the tools are not installed".to_owned()));
    }
    // Remove old wheels, so that the folder contains only this build's.
    let _ = fs::remove_dir_all(wheels);
    run(cargo(["build", "--bin", "longwire"]))?;
    take_program(&target_dir().join("debug/longwire"))?;
    let mut build = maturin(venv, wheels);
    build.args(["--profile", "dev", "--compatibility", "linux"]);
    run(build)?;
    let Some(wheel) = only_wheel(wheels) else {
        return Err(Failed(format!("no wheel in {}", wheels.display())));
    };
    let mut install = tool(venv, "pip");
    install.args(["install", "--quiet", "--disable-pip-version-check"]);
    install.args(["--force-reinstall", "--no-deps"]).arg(wheel);
    run(install)
}

/// Copies a program, without debug information, to the place where the wheel's build expects it.
fn take_program(program: &Path) -> Outcome {
    let scripts = root().join(PACKAGE).join("data/scripts");
    make_folder(&scripts)?;
    let mut strip = limited("objcopy");
    strip.arg("--strip-all").arg(program);
    strip.arg(scripts.join("longwire"));
    run(strip)
}

/// Returns a command that builds a wheel into a folder. The tools in `venv` come first on its PATH.
fn maturin(venv: &Path, wheels: &Path) -> Command {
    let mut build = tool(venv, "maturin");
    build.args(["build", "--locked", "--out"]).arg(wheels);
    build.env("CARGO_TARGET_DIR", target_dir());
    build.current_dir(root().join(PACKAGE));
    tools_first(&mut build, venv);
    build
}

/// Puts the tools in `venv` first on a command's PATH.
pub fn tools_first(command: &mut Command, venv: &Path) {
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = [venv.join("bin")].into_iter();
    if let Ok(path) = env::join_paths(programs.chain(env::split_paths(&path))) {
        command.env("PATH", path);
    }
}

fn only_wheel(wheels: &Path) -> Option<PathBuf> {
    let mut files = entries(wheels).map(|file| file.path());
    files.find(|file| file.extension().is_some_and(|found| found == "whl"))
}

fn check_types(venv: &Path) -> Outcome {
    let mut mypy = tool(venv, "mypy");
    mypy.current_dir(root().join(PACKAGE));
    // The package supports Python 3.9, but mypy needs 3.10.
    mypy.args(["--strict", "--python-version", "3.10", "longwire"]);
    let mut pyright = tool(venv, "pyright");
    pyright.current_dir(root().join(PACKAGE));
    pyright.args(["--pythonversion", "3.9", "longwire"]);
    pyright.arg("--pythonpath").arg(venv.join("bin/python"));
    run_all([mypy, pyright])
}

/// Compares the API page with the docstrings.
fn check_reference(venv: &Path) -> Outcome {
    let mut check = tool(venv, "python");
    check.arg(root().join("xtask/python/reference.py"));
    check.arg("--check");
    check.arg(root().join("docs/reference/python.md"));
    run(check)
}

fn test(venv: &Path, folder: &str) -> Outcome {
    let mut pytest = tool(venv, "pytest");
    // Test the installed package: neither pytest nor the tests read the package's source folder.
    pytest.args(["-q", "-p", "no:cacheprovider"]);
    pytest.arg(root().join(PACKAGE).join(folder));
    pytest.current_dir(target_dir());
    run(pytest)
}

fn tool(venv: &Path, name: &str) -> Command {
    limited(&venv.join("bin").join(name).to_string_lossy())
}

/// Folder of the API checks, relative to the repository root.
const API_CHECKS: &str = "xtask/api";

/// Installs the tools, builds the program, and runs the checks.
pub fn check_api(runner: &mut Runner) {
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
    // All processes of the command end with it, and so do their devices.
    let mut command = limited("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid"])
        .args(["--fork", "--kill-child", "--mount-proc"])
        .arg(python)
        .arg(root().join(API_CHECKS).join("drive.py"))
        .arg(target_dir().join("debug/longwire"))
        .arg(folder);
    tools_first(&mut command, venv);
    run(command)
}
