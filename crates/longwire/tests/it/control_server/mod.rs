//! The control API of `longwire run FILE.toml --control …`, as seen by a client.
//!
//! Skipped without permission to create namespaces, except in CI.

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
mod view;

use std::process::Command;

use longwire_io::net::{NetNamespace, link_up};
use longwire_testbed::support::{Folder, within};
use serde_json::Value;

use crate::common::program::{Ran, RunningProgram, piped};
use crate::common::site::wired;
use crate::common::{write, write_private};
use client::{Answer, ask, ask_tcp, request};

/// TCP address of a run, and a token with full access.
const ADDRESS: &str = "127.0.0.1:9470";
const TOKEN: &str = "0123456789abcdef-full";

/// Two ports without stations, a link with separate directions, a shared link, three links that
/// match one pattern, and a path.
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

/// A namespace for networks, and a folder for files.
struct Stage {
    namespace: NetNamespace,
    dir: Folder,
}

impl Stage {
    fn new() -> Option<Stage> {
        let namespace = wired(&[("l0", "l1"), ("r0", "r1")])?;
        within(&namespace, || link_up("lo"));
        Some(Stage {
            namespace,
            dir: Folder::new(),
        })
    }

    fn socket(&self) -> String {
        self.dir.file("c.sock")
    }

    /// Creates a file with this token.
    fn token_file(&self, name: &str, token: &str) -> String {
        let file = self.dir.file(name);
        write_private(&file, token);
        file
    }

    fn command(&self, network: &str, arguments: &str) -> Command {
        let file = self.dir.file("network.toml");
        write(&file, network);
        piped(format!("longwire run {file} {arguments}"))
    }

    /// Starts a network with these arguments and waits until it runs.
    fn start(&self, network: &str, arguments: &str) -> RunningProgram {
        let mut command = self.command(network, arguments);
        RunningProgram::start(&self.namespace, &mut command).ready(" between ")
    }

    fn start_at_socket(&self, network: &str) -> RunningProgram {
        self.start(network, &format!("--control {}", self.socket()))
    }

    /// Starts the network with a control socket, and TCP with [`TOKEN`].
    fn start_on_tcp(&self, network: &str, more: &str) -> RunningProgram {
        let token = self.token_file("token", TOKEN);
        let tcp = format!("--control tcp:{ADDRESS} --control-token-file {token}");
        self.start(
            network,
            &format!("{tcp} --control {} {more}", self.socket()),
        )
    }

    /// Runs a network, which must be refused with exit code 2.
    #[track_caller]
    fn refuses(&self, arguments: &str, said: &str) -> Ran {
        let mut command = self.command(NETWORK, arguments);
        RunningProgram::start(&self.namespace, &mut command)
            .end()
            .says(said)
    }

    /// Sends a request to the control socket.
    fn ask(&self, line: &str, body: &str) -> Answer {
        ask(&self.socket(), line, body)
    }

    /// Reads a resource through the control socket.
    #[track_caller]
    fn get(&self, target: &str) -> Value {
        self.ask(&format!("GET {target}"), "").json()
    }

    /// Returns an option of the link `home` in direction up.
    fn home(&self, option: &str) -> Value {
        self.get("/v1/links/home")["up"]["options"][option].clone()
    }

    /// Sends a request over TCP with a token.
    fn ask_tcp(&self, line: &str, token: &str, body: &str) -> Answer {
        let (host, token) = (
            format!("Host: {ADDRESS}"),
            format!("Authorization: Bearer {token}"),
        );
        ask_tcp(
            &self.namespace,
            ADDRESS,
            &request(line, &[&host, &token], body),
        )
    }
}
