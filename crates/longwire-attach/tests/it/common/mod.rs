//! A simulated root directory with runtimes' state files, and processes in test namespaces.

pub mod server;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use longwire_attach::{FoundTarget, Machine, Target, TargetError};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::{self, Folder};
use serde_json::{Value, json};

/// containerd's task directory.
pub const TASKS: &str = "run/containerd/io.containerd.runtime.v2.task";

/// A machine's root directory.
#[derive(Debug)]
pub struct Tree {
    folder: Folder,
    namespaces: BTreeMap<u32, NetNamespace>,
}

impl Tree {
    /// Creates a root whose PID 1 is in the test's namespace.
    pub fn new() -> Option<Tree> {
        let mut tree = Tree {
            folder: Folder::new(),
            namespaces: BTreeMap::new(),
        };
        let host = NetNamespace::current().expect("the test's namespace");
        tree.process_in(1, 1, "0::/init.scope", host);
        // Skipped if no namespace can be created.
        support::namespace().map(|_| tree)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn machine(&self) -> Machine {
        Machine::at(self.folder.path())
    }

    /// Writes a file, creating its directories.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    pub fn json(&self, path: &str, content: &Value) {
        self.file(path, content.to_string());
    }

    pub fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        symlink(to, path).expect("a link");
    }

    /// Adds a process in a new namespace.
    pub fn process(&mut self, pid: u32, started: u64, cgroup: &str) {
        let namespace = NetNamespace::new().expect("a namespace");
        self.process_in(pid, started, cgroup, namespace);
    }

    pub fn process_in(&mut self, pid: u32, started: u64, cgroup: &str, namespace: NetNamespace) {
        let stat = format!("{pid} (a) b) S 1 2 2 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0\n");
        self.file(&format!("proc/{pid}/stat"), stat);
        self.file(&format!("proc/{pid}/cgroup"), format!("{cgroup}\n"));
        self.file(&format!("proc/{pid}/comm"), "app\n");
        let file = format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd());
        self.link(&format!("proc/{pid}/ns/net"), file);
        self.namespaces.insert(pid, namespace);
    }

    /// Adds a containerd task.
    pub fn task(&self, namespace: &str, id: &str, pid: u32, annotations: &Value) {
        let bundle = format!("{TASKS}/{namespace}/{id}");
        let configuration = json!({ "ociVersion": "1.0.2", "annotations": annotations });
        self.json(&format!("{bundle}/config.json"), &configuration);
        self.file(&format!("{bundle}/init.pid"), pid.to_string());
    }

    pub fn resolve(&self, target: &Target) -> Result<FoundTarget, TargetError> {
        self.machine().resolve(target)
    }

    /// Resolves a container, and checks that it has this PID.
    pub fn expect(&self, name: &str, pid: u32) -> FoundTarget {
        self.expect_target(&container(name), pid)
    }

    pub fn expect_target(&self, target: &Target, pid: u32) -> FoundTarget {
        let found = self.resolve(target);
        let found = found.unwrap_or_else(|error| panic!("{target}: {error}"));
        assert_eq!(found.pid, Some(pid), "{target}");
        assert_eq!(found.inode(), self.namespaces[&pid].inode(), "{target}");
        found
    }

    /// Checks that a target is refused with this reason.
    pub fn refuse(&self, target: &Target, reason: &str) {
        let refusal = self.refusal(target);
        assert!(refusal.contains(reason), "'{reason}' is not in: {refusal}");
    }

    /// Returns the error for a target that must not resolve.
    pub fn refusal(&self, target: &Target) -> String {
        match self.resolve(target) {
            Ok(found) => panic!("{target} is {}", found.description),
            Err(error) => error.to_string(),
        }
    }
}

pub fn container(name: &str) -> Target {
    Target::Container(name.parse().expect("a valid name"))
}

pub fn pod(name: &str) -> Target {
    Target::Pod(name.parse().expect("a valid name"))
}

/// Returns an ID of 64 digits with this prefix.
pub fn id(beginning: &str) -> String {
    let mut id = beginning.to_owned();
    id.extend(std::iter::repeat_n('0', 64 - beginning.len()));
    id
}
