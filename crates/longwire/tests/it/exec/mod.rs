//! `longwire exec` as root and as an ordinary user: traffic over the link, separate outputs, and
//! links that change.
//!
//! Skipped without permission to create namespaces, except in CI.

mod carrier;
mod changing;
mod closed;
mod hosts;
mod peer;
mod router;
mod threads;
mod top;
mod view;
mod wire;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use longwire_testbed::support::{Folder, skip, words};
use serde_json::Value;

use crate::common::program::{Ran, eventually};
use crate::common::read_json;

/// A user ID that no system assigns.
const ORDINARY: u32 = 61_234;

/// The program, in a directory that a user can write to.
pub(super) struct User {
    /// User ID; `None` for the user who runs the tests.
    id: Option<u32>,
    pub(super) dir: Folder,
}

impl User {
    /// Returns the users that can run `exec` on this machine.
    pub(super) fn all() -> Vec<User> {
        let own = User::new(None);
        let root = nix::unistd::geteuid().is_root();
        let ordinary = root.then(|| User::new(Some(ORDINARY)));
        let users = [Some(own), ordinary].into_iter().flatten();
        users.filter(User::may_exec).collect()
    }

    fn is_root(&self) -> bool {
        self.id.is_none() && nix::unistd::geteuid().is_root()
    }

    pub(super) fn new(id: Option<u32>) -> User {
        let dir = Folder::new();
        let mode = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(dir.path(), mode).expect("its own directory");
        if id.is_some() {
            // Other users may have no access to the build directory.
            std::fs::copy(env!("CARGO_BIN_EXE_longwire"), dir.file("longwire")).expect("a copy");
        }
        User { id, dir }
    }

    fn may_exec(&self) -> bool {
        let ended = self.exec("-q -- true");
        match ended.code {
            0 => true,
            _ => skip::<()>(format!("as {:?}: {}", self.id, ended.stderr)).is_some(),
        }
    }

    fn program(&self) -> String {
        match self.id {
            None => env!("CARGO_BIN_EXE_longwire").to_owned(),
            Some(_) => self.dir.file("longwire"),
        }
    }

    /// Returns a command run by this user, in its directory.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path());
        if let Some(id) = self.id {
            command.uid(id).gid(id);
        }
        command
    }

    /// Returns the command `longwire exec` with a line of arguments.
    pub(super) fn exec_command(&self, line: impl AsRef<str>) -> Command {
        let mut command = self.command(&self.program());
        command.arg("exec").args(words(line.as_ref()));
        command
    }

    /// Like [`User::exec_command`], with piped outputs.
    pub(super) fn exec_piped(&self, line: impl AsRef<str>) -> Command {
        let mut command = self.exec_command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn exec(&self, line: impl AsRef<str>) -> Ran {
        Ran::of(&mut self.exec_command(line))
    }

    /// Runs a shell line in which `$LONGWIRE` is the program.
    pub(super) fn shell(&self, line: impl AsRef<str>) -> Ran {
        let mut command = self.command("sh");
        command.args(["-c", line.as_ref()]);
        Ran::of(command.env("LONGWIRE", self.program()))
    }

    /// Returns the report that a run wrote to `r.json`.
    fn report(&self) -> Value {
        read_json(&self.dir.file("r.json"))
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.file(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        crate::common::write(self.dir.file(name), text);
    }

    fn exists(&self, name: &str) -> bool {
        Path::new(&self.dir.file(name)).exists()
    }

    fn wait_for_file(&self, name: &str) {
        eventually(name, || self.exists(name));
    }
}
