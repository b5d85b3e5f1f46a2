//! The users who can run `longwire exec`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use longwire_testbed::support::{Folder, have, skip, words};
use serde_json::Value;

use super::program::{Ran, eventually};
use super::{read_json, set_mode};

/// A user ID that no system assigns.
const ORDINARY: u32 = 61_234;

/// The program, in a directory that a user can write to.
pub struct User {
    /// User ID; `None` for the user who runs the tests.
    pub id: Option<u32>,
    pub dir: Folder,
}

impl User {
    /// Returns the users that can run `exec` on this machine.
    pub fn all() -> Vec<User> {
        let own = User::new(None);
        let root = nix::unistd::geteuid().is_root();
        let ordinary = root.then(|| User::new(Some(ORDINARY)));
        let users = [Some(own), ordinary].into_iter().flatten();
        users.filter(User::may_exec).collect()
    }

    /// Like [`User::all`], but empty if one of these programs is not installed.
    pub fn with<const N: usize>(programs: [&str; N]) -> Vec<User> {
        if !programs.into_iter().all(have) {
            return Vec::new();
        }
        User::all()
    }

    pub fn is_root(&self) -> bool {
        self.id.is_none() && nix::unistd::geteuid().is_root()
    }

    pub fn new(id: Option<u32>) -> User {
        let dir = Folder::new();
        set_mode(dir.path(), 0o1777);
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

    pub fn program(&self) -> String {
        match self.id {
            None => env!("CARGO_BIN_EXE_longwire").to_owned(),
            Some(_) => self.dir.file("longwire"),
        }
    }

    /// Returns a command run by this user, in its directory.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path());
        if let Some(id) = self.id {
            command.uid(id).gid(id);
        }
        command
    }

    /// Returns the command `longwire exec` with a line of arguments.
    pub fn exec_command(&self, line: impl AsRef<str>) -> Command {
        let mut command = self.command(&self.program());
        command.arg("exec").args(words(line.as_ref()));
        command
    }

    /// Like [`User::exec_command`], with piped outputs.
    pub fn exec_piped(&self, line: impl AsRef<str>) -> Command {
        let mut command = self.exec_command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn exec(&self, line: impl AsRef<str>) -> Ran {
        Ran::of(&mut self.exec_command(line))
    }

    /// Runs a shell line in which `$LONGWIRE` is the program.
    pub fn shell(&self, line: impl AsRef<str>) -> Ran {
        let mut command = self.command("sh");
        command.args(["-c", line.as_ref()]);
        Ran::of(command.env("LONGWIRE", self.program()))
    }

    /// Returns the report that a run wrote to `r.json`.
    pub fn report(&self) -> Value {
        read_json(&self.dir.file("r.json"))
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.file(name)).unwrap_or_default()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        super::write(self.dir.file(name), text);
    }

    pub fn exists(&self, name: &str) -> bool {
        Path::new(&self.dir.file(name)).exists()
    }

    pub fn wait_for_file(&self, name: &str) {
        eventually(name, || self.exists(name));
    }
}
