//! Tests of `exec`'s environment with the kernel, as root and as a user without privileges.
//!
//! The environment must be created before any thread exists, but the standard test runner starts
//! threads. This is therefore a separate runner, and each test restarts this program in a role (see
//! `role.rs`).

mod leftovers;
mod role;
mod runs;
mod uplink;

use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use longwire_testbed::support::skip;
use nix::sys::signal::{SigHandler, Signal, signal};

/// User who runs the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// With all privileges.
    Root,
    /// Without privileges.
    Ordinary,
}

/// A user ID that no system assigns.
pub const ORDINARY: u32 = 61_234;

type Test = (&'static str, fn(User));

/// A test with its name and user.
type Run = (String, fn(User), User);

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(role::VARIABLE) {
        return role::play(&role);
    }
    // A shell starts background commands with SIGINT ignored, and a shell that inherits this cannot
    // trap SIGINT, as some tests do. SAFETY: the default disposition is no handler, and there are
    // no threads yet.
    unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.expect("SIGINT has a default");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let filter = words.iter().find(|word| !word.starts_with('-'));
    let users = users();
    let runs = |tests: &[Test]| -> Vec<Run> {
        let runs = tests.iter().flat_map(|(name, test)| {
            let run = |user: &User| (format!("{name}::{user:?}"), *test, *user);
            users.iter().map(run).collect::<Vec<_>>()
        });
        let chosen = |run: &Run| filter.is_none_or(|part| run.0.contains(part.as_str()));
        runs.filter(chosen).collect()
    };
    let apart = runs(runs::TESTS);
    // These tests compare the state of the whole machine, so they run alone.
    let alone = [runs(leftovers::TESTS), runs(uplink::TESTS)].concat();
    if words.iter().any(|word| word == "--list") {
        for (name, ..) in apart.iter().chain(&alone) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let ran = apart.len() + alone.len();
    let failed = play_all(apart, WORKERS) + play_all(alone, 1);
    // The output format of the standard runner, for tools that count tests.
    let (outcome, passed) = (if failed == 0 { "ok" } else { "FAILED" }, ran - failed);
    println!("\ntest result: {outcome}. {passed} passed; {failed} failed");
    let _ = std::fs::remove_dir_all(role::scratch());
    ExitCode::from(u8::from(failed > 0))
}

/// Number of concurrent tests; most of them wait for programs.
const WORKERS: usize = 6;

/// Runs tests on `workers` threads; returns the number of failures.
fn play_all(runs: Vec<Run>, workers: usize) -> usize {
    let failed = AtomicUsize::new(0);
    let runs = Mutex::new(runs.into_iter());
    let next = || runs.lock().expect("no panic holds it").next();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, test, user)) = next() {
                    let passed = panic::catch_unwind(|| test(user)).is_ok();
                    println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
                    failed.fetch_add(usize::from(!passed), Ordering::Relaxed);
                }
            });
        }
    });
    failed.into_inner()
}

/// Returns the users under which the tests can run on this machine. In CI there must be at least
/// one.
fn users() -> Vec<User> {
    let root = nix::unistd::geteuid().is_root();
    let wanted = if root {
        vec![User::Root, User::Ordinary]
    } else {
        vec![User::Ordinary]
    };
    let possible = |&user: &User| {
        let output = role::exec(user, &["true"]).output().expect("starts");
        if output.status.success() {
            return true;
        }
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        skip::<()>(format!("cannot run as {user:?}: {reason}")).is_some()
    };
    wanted.into_iter().filter(possible).collect()
}
