//! A machine's directories and environment variables, which tests can replace.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::Directory;

/// Parent of users' runtime directories (pam_systemd(8)).
const USERS: &str = "/run/user";

/// Environment variables with the addresses of runtimes.
const VARIABLES: [&str; 4] = [
    "CONTAINERD_ADDRESS",
    "CONTAINER_HOST",
    "DOCKER_HOST",
    "XDG_RUNTIME_DIR",
];

/// A machine to search for containers.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    variables: BTreeMap<&'static str, String>,
}

/// A user's runtime directory, for rootless runtimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDirectory {
    /// The directory, such as `/run/user/1000`.
    pub path: PathBuf,
    /// The user, unless it is root.
    pub user: Option<u32>,
}

impl UserDirectory {
    fn new(path: PathBuf, user: u32) -> UserDirectory {
        let user = (user != 0).then_some(user);
        UserDirectory { path, user }
    }
}

impl Machine {
    /// Returns the caller's machine.
    pub fn this() -> Machine {
        let values = VARIABLES
            .iter()
            .filter_map(|name| Some((*name, env::var(name).ok()?)));
        Machine::at(Path::new("/")).with_variables(values)
    }

    /// Returns the machine whose root directory is mounted at `root`, without environment
    /// variables. If its `/proc` belongs to another PID namespace, the end of processes is not
    /// reported.
    pub fn at(root: &Path) -> Machine {
        Machine {
            root: root.to_owned(),
            variables: BTreeMap::new(),
        }
    }

    /// Sets the environment variables `DOCKER_HOST`, `CONTAINER_HOST`, `CONTAINERD_ADDRESS` and
    /// `XDG_RUNTIME_DIR`. Their paths are not relative to the root.
    pub fn with_variables<T: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Machine {
        for (name, value) in variables {
            self.variables.insert(name, value.into());
        }
        self
    }

    /// Returns an absolute path's location under the root.
    pub(super) fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// Returns a non-empty environment variable's value.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the users' runtime directories.
    pub(super) fn user_directories(&self) -> Vec<UserDirectory> {
        let users = self.path(USERS);
        let names = Directory::open(&users).and_then(|users| users.names());
        let mut directories: Vec<UserDirectory> = names
            .unwrap_or_default()
            .iter()
            .filter_map(|name| Some(UserDirectory::new(users.join(name), name.parse().ok()?)))
            .collect();
        if let Some(own) = self.variable("XDG_RUNTIME_DIR").map(PathBuf::from)
            && !directories.iter().any(|directory| directory.path == own)
        {
            directories.push(UserDirectory::new(own, nix::unistd::getuid().as_raw()));
        }
        directories
    }

    /// Returns whether `/proc` belongs to the caller's PID namespace. In an outer namespace's
    /// `/proc`, the caller has one PID per level.
    pub(super) fn has_own_pids(&self) -> bool {
        let status = fs::read_to_string(self.path("/proc/self/status")).unwrap_or_default();
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let pids: Vec<&str> = pids.unwrap_or_default().split_whitespace().collect();
        pids == [std::process::id().to_string()]
    }
}
