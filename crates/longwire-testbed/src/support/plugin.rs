//! Plugins in C.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
}

/// Compiles a plugin into a shared library. `source` is an absolute path, or relative to the
/// repository.
///
/// # Panics
///
/// If there is no compiler, or compilation fails.
pub fn compile_plugin(source: impl AsRef<Path>, library: &str) {
    let source = repository().join(source);
    let made = Command::new("cc")
        .args(["-std=c99", "-O2", "-shared", "-fPIC", "-pthread", "-I"])
        .arg(repository().join("include"))
        .args(["-o", library])
        .arg(&source)
        .arg("-lm")
        .status();
    let made = made.unwrap_or_else(|error| panic!("cannot run a C compiler: {error}"));
    assert!(made.success(), "{} does not compile", source.display());
}
