//! `longwire exec` through the program itself, as root and as a user without
//! rights: what crosses the link, which output goes where, and runs of links
//! that change.
//!
//! Where namespaces are not allowed these tests pass without having run,
//! except in CI.

mod carrier;
mod changing;
mod closed;
mod hosts;
mod peer;
mod router;
mod streams;
mod threads;
mod top;
mod view;
mod wire;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Ran, ran};
use longwire_testbed::support::{Folder, skip};

/// An account that no system gives to anybody.
const ORDINARY: u32 = 61_234;

/// The program in a directory that a user may write to.
pub(super) struct User {
    /// `None` is the user of the tests.
    id: Option<u32>,
    pub(super) dir: Folder,
}

impl User {
    /// The users as whom `exec` can run here.
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
            // The build's directory may be closed to others.
            std::fs::copy(env!("CARGO_BIN_EXE_longwire"), dir.file("longwire")).expect("a copy");
        }
        User { id, dir }
    }

    fn may_exec(&self) -> bool {
        let ended = self.exec(&["-q", "--", "true"]);
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

    /// A command of this user, in its directory.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path());
        if let Some(id) = self.id {
            command.uid(id).gid(id);
        }
        command
    }

    /// `longwire exec` with these arguments.
    pub(super) fn exec_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program());
        command.arg("exec").args(arguments);
        command
    }

    pub(super) fn exec(&self, arguments: &[&str]) -> Ran {
        ran(self.exec_command(arguments).output().expect("it starts"))
    }

    /// A line for the shell, in which `$LONGWIRE` is the program.
    pub(super) fn shell(&self, line: &str) -> Ran {
        let mut command = self.command("sh");
        command.args(["-c", line]).env("LONGWIRE", self.program());
        ran(command.output().expect("it starts"))
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.file(name)).unwrap_or_default()
    }

    fn exists(&self, name: &str) -> bool {
        Path::new(&self.dir.file(name)).exists()
    }
}

/// The output, if it ended well.
#[track_caller]
pub(super) fn well(ended: Ran) -> Ran {
    assert_eq!(ended.code, 0, "{ended:?}");
    ended
}
