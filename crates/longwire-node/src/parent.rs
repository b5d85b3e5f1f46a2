//! Processes that a node starts end with it, however it ends.

use longwire_runtime::FileAccess;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

/// Variable with the PID of the parent.
pub const VARIABLE: &str = "LONGWIRE_PARENT";

/// Returns the files that a topology may name. That of a node was sent to it, and its responses
/// contain messages of the run.
pub fn access() -> FileAccess {
    match std::env::var_os(VARIABLE) {
        Some(_) => FileAccess::Absolute,
        None => FileAccess::Any,
    }
}

/// Asks the kernel to kill this process when its parent ends, if the parent requests it. Returns
/// whether the parent has ended already.
pub fn follow() -> bool {
    let Ok(parent) = std::env::var(VARIABLE) else {
        return false;
    };
    let watched = prctl::set_pdeathsig(Signal::SIGKILL);
    watched.is_err() || getppid().to_string() != parent
}
