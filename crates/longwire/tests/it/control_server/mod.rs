//! The control API of `longwire run FILE.toml --control …`, from a client's view.
//!
//! Without permission to create namespaces, the tests pass without running, except in
//! CI.

mod answers;
mod client;
mod dashboard;
mod files;
mod holding;
mod large;
mod metrics;
mod replay;
mod schema;
mod sockets;
mod tokens;
mod view;

use std::process::{Command, Stdio};

use crate::common::process::{RunningProgram, wait_for_word};
use crate::common::wire::wired;
use crate::common::write;
use longwire_io::net::{NetNamespace, link_up};
use longwire_testbed::support::Folder;

/// Two ports without stations, a link with separate directions, a shared one, three
/// that match one pattern, and a path.
const NETWORK: &str = r#"
seed = 5

[ports]
left = "packet:l0"
right = "packet:r0"

[[link]]
name = "home"
match = "src=10.0.0.1,dst=10.0.0.2"
delay = "5ms"
loss = ["1%", "2%"]

[[link]]
name = "radio/1"
shared = true
match = "vlan=7"
rate = "1mbit"

[[link]]
name = "adsl{n}"
count = 3
match = "src=10.1.0.{n}"
rate = "10mbit"

[[path]]
name = "long"
via = ["home", "adsl1.down"]
match = "src=10.2.0.1,dst=10.2.0.2"

[[at]]
time = "500s"
off = "home"
"#;

/// A namespace for networks, and a folder for their files.
struct Stage {
    namespace: NetNamespace,
    dir: Folder,
}

impl Stage {
    fn new() -> Option<Stage> {
        let namespace = wired(&[("l0", "l1"), ("r0", "r1")])?;
        let up = namespace.run(|| link_up("lo"));
        up.expect("it is entered").expect("lo");
        Some(Stage {
            namespace,
            dir: Folder::new(),
        })
    }

    fn socket(&self) -> String {
        self.dir.file("c.sock")
    }

    /// Creates a file with a token and a mode.
    fn token_file(&self, name: &str, token: &str) -> String {
        let file = self.dir.file(name);
        write(&file, token.as_bytes());
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).expect("its mode");
        file
    }

    fn command(&self, network: &str, arguments: &[&str]) -> Command {
        let file = self.dir.file("network.toml");
        write(&file, network.as_bytes());
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["run", &file]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a network with these arguments and waits until it runs.
    fn start(&self, network: &str, arguments: &[&str]) -> RunningProgram {
        let mut command = self.command(network, arguments);
        let mut running = RunningProgram::start(&self.namespace, &mut command);
        wait_for_word(&mut running, " between ");
        running
    }

    /// Runs a network that must be refused; returns its result.
    fn refused(&self, arguments: &[&str]) -> crate::common::Ran {
        let mut command = self.command(NETWORK, arguments);
        RunningProgram::start(&self.namespace, &mut command).end()
    }
}
