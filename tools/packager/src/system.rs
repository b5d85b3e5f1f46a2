//! Packages of Debian and of distributions with rpm. Their contents are described in
//! `crates/longwire/Cargo.toml`.

use std::path::Path;
use std::process::Command;

use crate::places::{Places, root};
use crate::run::{Result, exists, list, run};

/// Builds the package for Debian.
pub fn write_deb(places: &Places) -> Result<()> {
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
        .arg(&places.out);
    package(places, command, ".deb")
}

/// Builds the package for distributions with rpm.
pub fn write_rpm(places: &Places) -> Result<()> {
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
        .arg(&places.target)
        .arg("--output")
        .arg(&places.out);
    package(places, command, ".rpm")
}

fn needs(tool: &str) -> Result<()> {
    if exists(tool) {
        return Ok(());
    }
    Err(format!(
        "needs {tool}: cargo install {tool} --locked --debug"
    ))
}

fn package(places: &Places, mut command: Command, ending: &str) -> Result<()> {
    command
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &places.target)
        .env("SOURCE_DATE_EPOCH", places.time.to_string());
    let is_package = |path: &&Path| path.to_string_lossy().ends_with(ending);
    for path in list(&places.out)?
        .iter()
        .map(|path| path.as_path())
        .filter(is_package)
    {
        std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    run(&mut command)
}
