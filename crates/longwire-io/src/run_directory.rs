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
    is_written_by(directory, &[geteuid().as_raw()])
}

/// Returns whether only this process's user or root can have written the contents of a
/// directory. With `sudo -E`, the directory of the user is not of this kind.
pub fn is_trusted(directory: &Path) -> bool {
    is_written_by(directory, &[geteuid().as_raw(), 0])
}

fn is_written_by(directory: &Path, users: &[u32]) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    fs::metadata(directory).is_ok_and(|found| {
        found.is_dir() && users.contains(&found.uid()) && found.mode() & WRITABLE_BY_OTHERS == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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

    #[test]
    fn a_directory_that_others_write_is_not_trusted() {
        let directory = env::temp_dir().join(format!("lw-trusted-{}", std::process::id()));
        DirBuilder::new().create(&directory).expect("a directory");
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o757, false)] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(&directory, mode).expect("it is ours");
            assert_eq!(is_trusted(&directory), is_safe);
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(&directory, Some(4_711), None).expect("root may");
            assert!(!is_trusted(&directory));
        }
        fs::remove_dir(&directory).expect("it is empty");
        assert!(!is_trusted(&directory));
    }
}
