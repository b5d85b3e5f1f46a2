//! Packages of Debian and of distributions with rpm. Their contents are described in
//! `crates/longwire/Cargo.toml`.

use std::path::Path;
use std::process::Command;

use crate::paths::{BuildPaths, root};
use crate::run::{Result, exists, list, run};

/// Builds the package for Debian.
pub fn write_deb(paths: &BuildPaths) -> Result<()> {
    needs("cargo-deb")?;
    let mut command = Command::new("cargo");
    command
        .args([
            "deb",
            "--package",
            "longwire",
            "--profile",
            "dist",
            "--no-build",
            "--no-strip",
        ])
        .arg("--output")
        .arg(&paths.out);
    package(paths, command, ".deb")
}

/// Builds the package for distributions with rpm.
pub fn write_rpm(paths: &BuildPaths) -> Result<()> {
    needs("cargo-generate-rpm")?;
    let mut command = Command::new("cargo");
    command
        .args([
            "generate-rpm",
            "--package",
            "crates/longwire",
            "--profile",
            "dist",
        ])
        .arg("--target-dir")
        .arg(&paths.target)
        .arg("--output")
        .arg(&paths.out);
    package(paths, command, ".rpm")
}

fn needs(tool: &str) -> Result<()> {
    if exists(tool) {
        return Ok(());
    }
    Err(format!(
        "needs {tool}: cargo install {tool} --locked --debug"
    ))
}

fn package(paths: &BuildPaths, mut command: Command, ending: &str) -> Result<()> {
    command
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &paths.target)
        .env("SOURCE_DATE_EPOCH", paths.time.to_string());
    let is_package = |path: &&Path| path.to_string_lossy().ends_with(ending);
    for path in list(&paths.out)?
        .iter()
        .map(|path| path.as_path())
        .filter(is_package)
    {
        std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    run(&mut command)
}
