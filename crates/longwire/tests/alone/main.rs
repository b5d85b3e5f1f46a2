//! Tests that load a machine for a minute, or measure what its load changes: one at a time.
#![allow(missing_docs, reason = "tests")]

use std::sync::{Mutex, MutexGuard, PoisonError};

#[path = "../it/common/mod.rs"]
mod common;

mod book;
mod hosts;

/// Waits until no other test of this program runs.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
