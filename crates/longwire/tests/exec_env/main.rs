//! The environment of `exec` against the kernel: as root, and as a user
//! without any right.
//!
//! The environment must be made before there are threads, which the usual
//! test runner has; so this is a runner of its own, and each test starts this
//! program again in a role (see `role.rs`).

mod leftovers;
mod role;
mod runs;
mod uplink;

use std::panic;
use std::process::ExitCode;

/// Who runs the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// With every right.
    Root,
    /// With none.
    Ordinary,
}

/// An account that no system gives to anybody.
pub const ORDINARY: u32 = 61_234;

type Test = (&'static str, fn(User));

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(role::VARIABLE) {
        return role::play(&role);
    }
    let tests: Vec<Test> = [runs::TESTS, leftovers::TESTS, uplink::TESTS].concat();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let list = words.iter().any(|word| word == "--list");
    let filter = words.iter().find(|word| !word.starts_with('-'));
    let (mut failed, mut ran) = (0, 0);
    for (name, test) in tests {
        for user in users() {
            let name = format!("{name}::{user:?}");
            if filter.is_some_and(|part| !name.contains(part.as_str())) {
                continue;
            }
            if list {
                println!("{name}: test");
                continue;
            }
            ran += 1;
            let passed = panic::catch_unwind(|| test(user)).is_ok();
            println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
            failed += usize::from(!passed);
        }
    }
    if !list {
        // In the words of the standard runner, for tools that count.
        let (outcome, passed) = (if failed == 0 { "ok" } else { "FAILED" }, ran - failed);
        println!("\ntest result: {outcome}. {passed} passed; {failed} failed");
    }
    let _ = std::fs::remove_dir_all(role::scratch());
    ExitCode::from(u8::from(failed > 0))
}

/// As whom the tests can run here. Nobody at all is a failure in CI.
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
        let ci = std::env::var_os("CI").is_some();
        assert!(!ci, "CI must be able to run as {user:?}: {reason}");
        println!("skipped as {user:?}: {reason}");
        false
    };
    wanted.into_iter().filter(possible).collect()
}
