//! The limit of open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit of open files as far as allowed: a link in an interface takes
/// some twenty, and the usual limit is 1,024.
pub fn raise_limit() {
    if let Ok((limit, allowed)) = getrlimit(Resource::RLIMIT_NOFILE)
        && limit < allowed
    {
        // If this fails, opening a file will say so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed);
    }
}
