//! Tests that load the machine for a minute. Multi-host tests run one at a time: `cargo xtask test`
//! ensures this across test programs, and a lock within this one.
#![allow(missing_docs, reason = "tests")]

use std::sync::{Mutex, MutexGuard, PoisonError};

#[path = "../it/common/mod.rs"]
mod common;

mod book;
mod hosts;
mod leftovers;
mod uplink;

/// Waits for exclusive access to the machine.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
