//! The run directory, shared by all runs. It holds control sockets and records of changed settings.
//!
//! For root it is `/run/longwire`, for other users `$XDG_RUNTIME_DIR/longwire`. If that variable is
//! unset, as after `su` or in a container, sockets are in `/run/user/UID/longwire`, or in
//! `/tmp/longwire-UID` if `/run/user/UID` does not exist. Longwire creates the directory but never
//! removes it: a user may have created it, and another run may be about to use it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// Name of the run directory within the runtime directory.
const NAME: &str = "longwire";
/// Environment variable with the user's runtime directory.
pub const VARIABLE: &str = "XDG_RUNTIME_DIR";
/// The system's runtime directory.
const SYSTEM: &str = "/run";
/// Parent of the per-user directories created at login.
const USERS: &str = "/run/user";
/// Parent of the directories of users who are not logged in.
const TEMPORARY: &str = "/tmp";
/// Readable by all, so that `ctl` finds sockets; writable only by the owner.
const MODE: u32 = 0o755;

/// Returns the directories in which `ctl` looks for sockets: the user's, for this value of
/// `XDG_RUNTIME_DIR`, then the system's.
pub fn all(runtime_dir: Option<OsString>) -> Vec<PathBuf> {
    let user = match runtime_dir.filter(|path| !path.is_empty()) {
        // The service manager sets this value for system services.
        Some(path) => Some(Path::new(&path))
            .filter(|path| *path != Path::new(SYSTEM))
            .map(|parent| parent.join(NAME)),
        None => of_user(user_id(), [Path::new(USERS), Path::new(TEMPORARY)]),
    };
    let system = Path::new(SYSTEM).join(NAME);
    user.into_iter().chain([system]).collect()
}

/// Returns the directory of a user without the variable: within the login's directory in `users`,
/// or else in `temporary`. `None` for root, or if the directory belongs to another user.
fn of_user(user: u32, [users, temporary]: [&Path; 2]) -> Option<PathBuf> {
    if user == 0 {
        return None;
    }
    let login = users.join(user.to_string());
    if is_private(&login) {
        return Some(login.join(NAME));
    }
    let own = temporary.join(format!("{NAME}-{user}"));
    let is_own = match fs::symlink_metadata(&own) {
        Ok(found) => !found.is_symlink() && is_private(&own),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    is_own.then_some(own)
}

/// Returns the user's ID outside the user namespace that `exec` creates, in which the user is root.
fn user_id() -> u32 {
    let own = geteuid().as_raw();
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outer_id(own, &map)
}

/// Maps a user ID to the parent user namespace, by the text of `/proc/PID/uid_map`.
fn outer_id(own: u32, map: &str) -> u32 {
    let ranges = map.lines().filter_map(|line| {
        let numbers: Option<Vec<u32>> = line.split_whitespace().map(|n| n.parse().ok()).collect();
        <[u32; 3]>::try_from(numbers?).ok()
    });
    let mut outer = ranges.filter_map(|[inside, outside, count]| {
        let offset = own.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    });
    outer.next().unwrap_or(own)
}

/// Returns the run directory of this process's user; `None` without a runtime directory.
pub fn own() -> Option<PathBuf> {
    if geteuid().is_root() {
        return Some(Path::new(SYSTEM).join(NAME));
    }
    Some(PathBuf::from(env::var_os(VARIABLE).filter(|path| !path.is_empty())?).join(NAME))
}

/// Creates one of the directories of [`all`] if it is missing; its parent must exist.
///
/// # Errors
/// The directory cannot be created.
pub fn create(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(MODE).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Returns whether no other user can have written the directory's contents.
pub fn is_private(directory: &Path) -> bool {
    is_written_by(directory, &[geteuid().as_raw()])
}

/// Returns whether only this process's user or root can have written the directory's contents.
/// False for the user's directory under `sudo -E`.
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
    fn directories_are_listed_once() {
        let all = |user: &str| all(Some(OsString::from(user)));
        let system = Path::new("/run/longwire");
        assert_eq!(all("/run"), [system]);
        assert_eq!(all("/run/"), [system]);
        let own = Path::new("/run/user/1/longwire");
        assert_eq!(all("/run/user/1"), [own, system]);
    }

    #[test]
    fn a_user_without_the_variable_has_a_directory() {
        let folder = env::temp_dir().join(format!("lw-users-{}", std::process::id()));
        let (users, temporary) = (folder.join("users"), folder.join("tmp"));
        let user = geteuid().as_raw().max(1);
        let login = users.join(user.to_string());
        fs::create_dir_all(&login).expect("a directory");
        fs::create_dir_all(&temporary).expect("a directory");
        fs::set_permissions(&login, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let of = |user| of_user(user, [&users, &temporary]);
        assert_eq!(of(0), None, "root has that of the system");
        assert_eq!(of(user), Some(login.join("longwire")));
        fs::remove_dir_all(&users).expect("it is ours");
        let own = temporary.join(format!("longwire-{user}"));
        assert_eq!(of(user), Some(own.clone()));
        create(&own).expect("a directory");
        assert_eq!(of(user), Some(own.clone()));
        // A directory that others can write to and a symbolic link are refused.
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert_eq!(of(user), None);
        fs::remove_dir(&own).expect("it is empty");
        std::os::unix::fs::symlink(&temporary, &own).expect("a link");
        assert_eq!(of(user), None);
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn root_of_a_user_namespace_is_its_user() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(outer_id(1_000, whole), 1_000);
        assert_eq!(outer_id(0, whole), 0);
        assert_eq!(outer_id(0, "         0       1000          1\n"), 1_000);
        assert_eq!(outer_id(7, "0 1000 1\n1 100000 65536\n"), 100_006);
        assert_eq!(outer_id(0, ""), 0);
    }

    #[test]
    fn a_directory_that_others_write_is_not_trusted() {
        let directory = env::temp_dir().join(format!("lw-trusted-{}", std::process::id()));
        DirBuilder::new().create(&directory).expect("a directory");
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o757, false)] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).expect("it is ours");
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
