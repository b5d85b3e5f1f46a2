//! Tests that load a machine for a minute. Those of hosts run one at a time: `cargo xtask test` sees
//! to it, and in this program a lock.
#![allow(missing_docs, reason = "tests")]

use std::sync::{Mutex, MutexGuard, PoisonError};

#[path = "../it/common/mod.rs"]
mod common;

mod book;
mod hosts;

/// Waits until no other test that asks for this runs.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
