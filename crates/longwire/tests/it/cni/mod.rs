//! The CNI plugin with a node process, the CNI project's plugins, and containerd.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use longwire_io::net::{NetNamespace, link_up};
use longwire_testbed::support::{Folder, skip, within};
use serde_json::{Value, json};

use crate::common::node::{PINGS, RunningNode};
use crate::common::program::{Ran, RunningProgram, command, ping};
use crate::common::site::{assert_not_early, path_of};
use crate::common::{longwire, write};

mod chain;
mod cnitool;
mod cri;

/// Plugin directory of Debian's package.
const REFERENCE: &str = "/usr/lib/cni";

/// A machine: a network for plugins, a plugin directory and a node process.
struct Machine {
    network: NetNamespace,
    folder: Folder,
    node: Option<RunningNode>,
}

impl Machine {
    /// Installs the plugin and starts a node; `None` if plugins cannot run.
    fn new() -> Option<Machine> {
        if !nix::unistd::geteuid().is_root() {
            return skip("needs root, for containers");
        }
        if !Path::new(REFERENCE).join("bridge").exists() {
            return skip("containernetworking-plugins is not installed");
        }
        let network = NetNamespace::new().expect("a namespace");
        within(&network, || link_up("lo"));
        let folder = Folder::new();
        longwire(format!("cni install --dir {}", folder.file("bin"))).well();
        let node = Some(RunningNode::start_in(&network, &folder, "node"));
        Some(Machine {
            network,
            folder,
            node,
        })
    }

    fn start_node(&mut self) {
        self.node = Some(RunningNode::start_in(&self.network, &self.folder, "node"));
    }

    fn node(&self) -> &RunningNode {
        self.node.as_ref().expect("it runs")
    }

    fn kill_node(&mut self) {
        self.node.take().expect("it runs").kill();
    }

    fn socket(&self) -> String {
        self.folder.file("node.sock")
    }

    /// Returns the plugin search path.
    fn path(&self) -> String {
        format!("{REFERENCE}:{}", self.folder.file("bin"))
    }

    fn attachments(&self) -> Vec<Value> {
        self.node().attachments()
    }

    /// Writes a network list with this plugin to a directory; returns the directory.
    fn write_list(&self, list: &Value) -> String {
        let directory = self.folder.file("net.d");
        std::fs::create_dir_all(&directory).expect("a directory");
        let name = list["name"].as_str().expect("a name");
        write(format!("{directory}/{name}.conflist"), list.to_string());
        directory
    }

    /// Returns the configuration of the plugin that creates the interface.
    fn bridge(&self) -> Value {
        json!({
            "type": "bridge", "bridge": "cni0", "isGateway": true,
            "ipam": {
                "type": "host-local", "subnet": "10.91.0.0/24",
                "dataDir": self.folder.file("ipam"),
            },
        })
    }

    /// Returns the configuration of Longwire's plugin.
    fn plugin(&self, link: &Value) -> Value {
        json!({ "type": "longwire-cni", "link": link, "socket": self.socket() })
    }

    /// Asserts that a ping from the machine to an address crosses one link that delays each round
    /// trip by `delays` ms, or no link if that is 0.
    #[track_caller]
    fn assert_crossed(&self, address: &str, delays: f64) {
        let ping = || ping(&self.network, &format!("-c {PINGS} -i 0.1 -W 2"), address);
        match &self.node {
            Some(node) => node.assert_crossed(ping, delays),
            None => assert_not_early(ping(), delays),
        }
    }
}

/// A container as a runtime sees it: a namespace and the arguments common to its calls.
struct Pod {
    _namespace: NetNamespace,
    id: String,
    /// Folder with a symbolic link to the namespace, removed with the container.
    folder: Folder,
}

impl Pod {
    fn new(id: &str) -> Pod {
        let (namespace, folder) = (NetNamespace::new().expect("a namespace"), Folder::new());
        symlink(path_of(&namespace), folder.file("net")).expect("a link");
        Pod {
            _namespace: namespace,
            id: id.to_owned(),
            folder,
        }
    }

    /// Returns a path by which other processes can open the namespace.
    fn path(&self) -> String {
        self.folder.file("net")
    }

    /// Runs a plugin for the container with this operation, as a runtime does.
    fn call(&self, machine: &Machine, operation: &str, config: &Value, previous: &str) -> Ran {
        let mut text = config.clone();
        text["name"] = json!("lab");
        if text["cniVersion"].is_null() {
            text["cniVersion"] = json!("1.0.0");
        }
        let mut text = text.to_string();
        if !previous.is_empty() {
            text.truncate(text.len() - 1);
            text += &format!(",\"prevResult\":{previous}}}");
        }
        let kind = config["type"].as_str().expect("a type");
        let places = machine.path();
        let mut programs = places.split(':').map(|place| Path::new(place).join(kind));
        let program = programs.find(|path| path.exists());
        let program = program.expect("a plugin");
        let mut command = command(program.display().to_string());
        command.env_clear().envs([
            ("CNI_COMMAND", operation),
            ("CNI_CONTAINERID", &self.id),
            ("CNI_NETNS", &self.path()),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", &places),
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = RunningProgram::start(&machine.network, &mut command);
        let mut stdin = running.child().stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("it reads");
        drop(stdin);
        running.end()
    }

    /// Runs a call that must succeed; returns its output.
    #[track_caller]
    fn well(&self, machine: &Machine, operation: &str, config: &Value, previous: &str) -> String {
        self.call(machine, operation, config, previous)
            .well()
            .stdout
    }

    /// Runs a call that must fail with this CNI code.
    #[track_caller]
    fn fails(&self, machine: &Machine, operation: &str, config: &Value, code: u64) {
        let ran = self.call(machine, operation, config, "{}").exits(1);
        assert_eq!(ran.json()["code"], code, "{ran:?}");
    }

    /// Adds the container to the bridge; returns the result and its address.
    fn add_to_bridge(&self, machine: &Machine) -> (String, String) {
        let result = self.well(machine, "ADD", &machine.bridge(), "");
        let value: Value = serde_json::from_str(&result).expect("JSON");
        let address = value["ips"][0]["address"].as_str().expect("an address");
        let address = address.trim_end_matches("/24").to_owned();
        (result, address)
    }
}
