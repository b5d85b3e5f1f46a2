//! Finds the address of a running Longwire.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use longwire_client::Address;
use longwire_io::run_directory;

use crate::Error;
use crate::commands::node;

/// Environment variable for the address.
pub(super) const ADDRESS: &str = "LONGWIRE_CONTROL";

/// Environment variable for the token file.
pub(super) const TOKEN_FILE: &str = "LONGWIRE_TOKEN_FILE";

/// Returns the given address, the address from the environment, or that of the only listening
/// socket.
pub(super) fn find(
    given: Option<&Address>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Address, Error> {
    if let Some(address) = given {
        return Ok(address.clone());
    }
    if let Some(named) = environment(ADDRESS).filter(|named| !named.is_empty()) {
        let read = named.to_string_lossy().parse::<Address>();
        return read.map_err(|error| Error::usage(format!("{ADDRESS}: {error}")));
    }
    only(&run_directory::all(environment(run_directory::VARIABLE)))
}

/// Returns the only socket in these folders that has a listener.
fn only(folders: &[PathBuf]) -> Result<Address, Error> {
    let sockets: Vec<PathBuf> = folders.iter().flat_map(|folder| sockets(folder)).collect();
    let (mut alive, mut denied) = (Vec::new(), false);
    for path in &sockets {
        match UnixStream::connect(path) {
            Ok(_) => alive.push(path),
            Err(error) => denied |= error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
    match alive.as_slice() {
        [one] => Ok(Address::Unix((*one).clone())),
        [] if denied => Err(Error::failed(format!(
            "no run of this user has a socket in {}; give the socket, such as --control \
             ./link.sock",
            written(folders)
        ))),
        [] => Err(Error::failed(no_listener(folders, &sockets))),
        several => Err(Error::usage(format!(
            "several runs listen: {}; choose one with --control PATH or {ADDRESS}",
            written(several)
        ))),
    }
}

/// Returns the error message for the case that no socket has a listener.
fn no_listener(folders: &[PathBuf], dead: &[PathBuf]) -> String {
    let place = folders.first().cloned().unwrap_or_default();
    let found = match dead {
        [] => String::new(),
        dead => format!(" (no run listens at {})", written(dead)),
    };
    let of_node = match node::socket() {
        Some(_) => "; for links of the node, add --attachment NAME (`longwire attach list`)",
        None => "",
    };
    format!(
        "no run listens in {}{found}{of_node}; start one with --view or --control {1}/net.sock, \
         or give its address with --control or {ADDRESS}",
        written(folders),
        place.display()
    )
}

fn written(paths: &[impl AsRef<Path>]) -> String {
    let paths = paths.iter().map(|path| path.as_ref().display().to_string());
    paths.collect::<Vec<_>>().join(", ")
}

/// Returns the sockets in a folder, sorted; empty if the folder does not exist.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |entry: &std::fs::DirEntry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_socket())
    };
    let entries = entries.filter(is_socket).map(|entry| entry.path());
    let named = entries.filter(|path| path.extension().is_some_and(|end| end == "sock"));
    // Exclude the node's socket: its links need --attachment.
    let runs = named.filter(|path| path.file_name().is_none_or(|name| name != node::SOCKET));
    let mut sockets: Vec<PathBuf> = runs.collect();
    sockets.sort();
    sockets
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use longwire_testbed::support::Folder;

    use super::*;

    #[test]
    fn the_only_socket_that_answers_is_meant() {
        let folder = Folder::new();
        let socket = |name: &str| {
            let path = folder.path().join(name);
            (path.clone(), UnixListener::bind(path).expect("a socket"))
        };
        let only = || only(&[folder.path().to_owned()]).map_err(|error| error.to_string());
        let none = only().expect_err("there is none");
        assert!(none.contains("start one with --view"), "{none}");
        let (dead, listener) = socket("a.sock");
        drop(listener);
        let none = only().expect_err("it is dead");
        assert!(none.contains("a.sock"), "{none}");
        let (alive, _listens) = socket("b.sock");
        let _other = socket("not-this.txt");
        assert_eq!(only(), Ok(Address::Unix(alive)));
        assert!(dead.exists(), "nothing is removed");
        let _third = socket("c.sock");
        let several = only().expect_err("there are two");
        assert!(several.contains("b.sock") && several.contains("c.sock"));
        assert!(!several.contains("a.sock"), "{several}");
    }

    #[test]
    fn the_option_takes_precedence() {
        let environment = |name: &str| (name == ADDRESS).then(|| OsString::from("tcp:[::1]:1"));
        let found = find(None, environment).expect("it is an address");
        assert_eq!(found.to_string(), "tcp:[::1]:1");
        let given = Address::Unix("here".into());
        assert_eq!(find(Some(&given), environment).expect("it is given"), given);
        let wrong = |name: &str| (name == ADDRESS).then(|| OsString::from("tcp:x"));
        let error = find(None, wrong).expect_err("it is none").to_string();
        assert!(error.starts_with(ADDRESS), "{error}");
    }
}
