//! The run directory, shared by all runs: control sockets, and records of settings that
//! a run changed.
//!
//! It is `/run/longwire` for root and `$XDG_RUNTIME_DIR/longwire` for other users.
//! Longwire creates it and never removes it: a user may have created it, and another
//! run may be about to use it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// The directory's name in the directory of the system or of the user.
const NAME: &str = "longwire";
/// The variable with the user's directory for runtime files.
pub const VARIABLE: &str = "XDG_RUNTIME_DIR";
/// The system's directory for runtime files.
const SYSTEM: &str = "/run";
/// Readable by all, so that `ctl` finds sockets; writable by the owner only.
const MODE: u32 = 0o755;

/// Returns the directories in which `ctl` looks for sockets: the user's, for
/// the value of `XDG_RUNTIME_DIR`, then the system's.
pub fn all(runtime_dir: Option<OsString>) -> Vec<PathBuf> {
    let user = runtime_dir.filter(|path| !path.is_empty());
    let user = user.map(PathBuf::from);
    // As the service manager sets it for system services.
    let user = user.filter(|path| path != Path::new(SYSTEM));
    let parents = [user, Some(PathBuf::from(SYSTEM))];
    let parents = parents.into_iter().flatten();
    parents.map(|parent| parent.join(NAME)).collect()
}

/// Returns the directory of this process's user; `None` for a user without a
/// runtime directory.
pub fn own() -> Option<PathBuf> {
    if geteuid().is_root() {
        return Some(Path::new(SYSTEM).join(NAME));
    }
    let user = env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
    Some(PathBuf::from(user).join(NAME))
}

/// Creates one of the directories that [`all`] returns if it is missing. Its
/// parent must exist.
///
/// # Errors
/// If it cannot be created.
pub fn create(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(MODE).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Returns whether only this process's user can have written the contents of a
/// directory.
pub fn is_private(directory: &Path) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    fs::metadata(directory).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == geteuid().as_raw()
            && found.mode() & WRITABLE_BY_OTHERS == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directory_is_looked_into_twice() {
        let all = |user: &str| all(Some(OsString::from(user)));
        let system = Path::new("/run/longwire");
        assert_eq!(all("/run"), [system]);
        assert_eq!(all("/run/"), [system]);
        assert_eq!(all(""), [system]);
        assert_eq!(
            all("/run/user/1"),
            [Path::new("/run/user/1/longwire"), system]
        );
    }
}
