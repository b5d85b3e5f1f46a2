//! Helpers that several integration tests share.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

pub mod captures;
pub mod packing;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of one test, removed at the test's end.
#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Dir(path)
    }

    /// Returns the path of a file in the directory.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file.
pub fn write(path: &str, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
}
