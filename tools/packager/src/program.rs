//! The packaged programs, built for an old glibc, with separate debug information.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf::{Elf, GlibcVersion};
use crate::paths::{BuildPaths, root};
use crate::run::{At, Result, exists, make_venv, read, run};

/// The oldest supported glibc (2012), which is that of `manylinux2014` and Enterprise Linux 7.
/// Packages declare it as a requirement.
pub const GLIBC: GlibcVersion = (2, 17, 0);

/// Maximum size of the stripped program in bytes.
pub const SIZE_MAX: usize = 15_000_000;

/// Cargo profile for packages.
const PROFILE: &str = "dist";

/// File name of the debug information, stored in `.gnu_debuglink`.
pub const DEBUG_FILE: &str = "longwire.debug";

/// A program of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Name of the package and of the program file.
    pub name: &'static str,
    /// Workspace directory, relative to the root.
    directory: &'static str,
}

/// The emulator.
pub const LONGWIRE: Source = Source {
    name: "longwire",
    directory: "",
};

/// The Kubernetes agent and controller.
pub const KUBE: Source = Source {
    name: "longwire-kube",
    directory: "crates/longwire-kube",
};

impl Source {
    /// Returns the workspace directory.
    pub fn workspace(&self) -> PathBuf {
        root().join(self.directory)
    }

    /// Returns the path of the built program.
    pub fn built(&self, paths: &BuildPaths) -> PathBuf {
        let target = paths.target.join(triple());
        target.join(PROFILE).join(self.name)
    }
}

/// A program and its debug information.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    /// Stripped program.
    pub bytes: Vec<u8>,
    /// Properties of the stripped program.
    pub elf: Elf,
    /// Debug information; `None` if the given program has none.
    pub debug: Option<Vec<u8>>,
    /// Path of the stripped program.
    pub path: PathBuf,
}

impl Program {
    /// Builds the program unless one is given, and strips it.
    pub fn prepare(source: Source, paths: &BuildPaths, given: Option<&Path>) -> Result<Program> {
        match given {
            Some(path) => strip(source, paths, path),
            None => strip(source, paths, &build(source, paths)?),
        }
    }

    /// Fails if the program requires more than packages declare.
    pub fn check(&self) -> Result<()> {
        if self.elf.glibc > Some(GLIBC) {
            let (major, minor, _) = GLIBC;
            return Err(format!(
                "the program needs glibc {}, but the packages declare {major}.{minor}; omit \
                 --binary to build it, or add --trial for packages for this machine only",
                self.elf.glibc_text()
            ));
        }
        if self.name == LONGWIRE.name && self.bytes.len() > SIZE_MAX {
            let size = self.bytes.len();
            return Err(format!(
                "the stripped program has {size} bytes, more than {SIZE_MAX}"
            ));
        }
        Ok(())
    }
}

/// Builds a program with cargo-zigbuild, installed from PyPI.
fn build(source: Source, paths: &BuildPaths) -> Result<PathBuf> {
    let venv = paths.work.join("venv");
    install_zig(&venv)?;
    let (major, minor, _) = GLIBC;
    let target = format!("{}.{major}.{minor}", triple());
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(venv.join("bin")).chain(env::split_paths(&path));
    let mut command = Command::new("cargo");
    command
        .args(["zigbuild", "--locked", "--profile", PROFILE])
        .args(["--package", source.name, "--bin", source.name])
        .args(["--target", &target])
        .current_dir(source.workspace())
        .env("PATH", env::join_paths(directories).at("PATH")?)
        .env("CARGO_TARGET_DIR", &paths.target)
        .env("RUSTFLAGS", without_paths());
    run(&mut command)?;
    Ok(source.built(paths))
}

fn triple() -> String {
    format!("{}-unknown-linux-gnu", env::consts::ARCH)
}

/// Returns flags that keep directories of this machine out of the program, for reproducible builds.
fn without_paths() -> String {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let mut flags = format!("--remap-path-prefix={}=/longwire", root().display());
    if let Some(cargo) = cargo {
        flags += &format!(" --remap-path-prefix={}=/cargo", cargo.display());
    }
    flags
}

fn install_zig(venv: &Path) -> Result<()> {
    if !exists("python3") {
        return Err("needs python3 with venv (Debian: python3-venv), for zig from PyPI".to_owned());
    }
    let requirements = root().join("tools/packager/requirements.txt");
    make_venv(venv, &["-r", &requirements.to_string_lossy()])
}

/// Splits a program into a stripped program and its debug information.
fn strip(source: Source, paths: &BuildPaths, from: &Path) -> Result<Program> {
    let objcopy = env::var("OBJCOPY").unwrap_or_else(|_| "objcopy".to_owned());
    if !exists(&objcopy) && !Path::new(&objcopy).exists() {
        return Err("needs objcopy (Debian: binutils)".to_owned());
    }
    let has_lines = Elf::read(&read(from)?).at(from)?.has_lines;
    let (path, debug) = (paths.work.join(source.name), paths.work.join(DEBUG_FILE));
    std::fs::create_dir_all(&paths.work).at(&paths.work)?;
    let mut strip = Command::new(&objcopy);
    strip.arg("--strip-all");
    if has_lines {
        let mut split = Command::new(&objcopy);
        split.args(["--only-keep-debug", "--compress-debug-sections"]);
        run(split.arg(from).arg(&debug))?;
        strip.arg("--add-gnu-debuglink").arg(&debug);
    }
    run(strip.arg(from).arg(&path))?;
    let bytes = read(&path)?;
    Ok(Program {
        name: source.name,
        elf: Elf::read(&bytes).at(&path)?,
        bytes,
        debug: if has_lines { Some(read(&debug)?) } else { None },
        path,
    })
}
