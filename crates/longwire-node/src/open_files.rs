//! Limit of open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit of open files to its maximum. A link in an interface takes some 20
/// descriptors, and the default is 1,024.
pub fn raise_limit() {
    if let Ok((limit, allowed)) = getrlimit(Resource::RLIMIT_NOFILE)
        && limit < allowed
    {
        // On failure, a later open reports the limit.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed);
    }
}
