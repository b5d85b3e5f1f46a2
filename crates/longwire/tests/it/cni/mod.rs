//! The CNI plugin with a node process, the CNI project's plugins, and containerd.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use longwire_client::{Address, Client};
use longwire_io::net::{NetNamespace, link_up};
use longwire_testbed::support::{Folder, skip};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::process::{RunningProgram, wait_for_word};
use crate::common::site::run_in;
use crate::common::{Ran, longwire, ran};

mod chain;
mod cnitool;
mod cri;

/// Directory of the plugins in Debian's package.
const REFERENCE: &str = "/usr/lib/cni";

/// A machine: a network for plugins, a plugin directory and a node process.
struct Machine {
    network: NetNamespace,
    folder: Folder,
    node: Option<RunningProgram>,
}

impl Machine {
    /// Returns `None` where plugins cannot run.
    fn new() -> Option<Machine> {
        if !nix::unistd::geteuid().is_root() {
            return skip("needs root, for containers");
        }
        if !Path::new(REFERENCE).join("bridge").exists() {
            return skip("containernetworking-plugins is not installed");
        }
        let network = NetNamespace::new().expect("a namespace");
        let up = network.run(|| link_up("lo")).expect("entered");
        up.expect("a device");
        let folder = Folder::new();
        let installed = longwire(&["cni", "install", "--dir", &folder.file("bin")]);
        assert_eq!(installed.code, 0, "{installed:?}");
        let mut machine = Machine {
            network,
            folder,
            node: None,
        };
        machine.start_node();
        Some(machine)
    }

    fn start_node(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["node", "--control", &self.socket()]);
        command.args(["--state", &self.folder.file("node")]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut node = RunningProgram::start(&self.network, &mut command);
        wait_for_word(&mut node, "ready");
        self.node = Some(node);
    }

    /// Kills the node process and waits for its end.
    fn kill_node(&mut self) {
        let node = self.node.take().expect("it runs");
        node.signal(Signal::SIGKILL);
        let _ = node.end();
    }

    fn socket(&self) -> String {
        self.folder.file("node.sock")
    }

    /// Returns the search path of plugins.
    fn path(&self) -> String {
        format!("{REFERENCE}:{}", self.folder.file("bin"))
    }

    /// Returns the node's attachments.
    fn attachments(&self) -> Vec<Value> {
        let client = Client::new(Address::Unix(self.socket().into()), None);
        let answer = client.expect("a client").get("/v1/attachments");
        let answer = answer.expect("an answer");
        answer["attachments"].as_array().expect("a list").clone()
    }

    /// Writes a network list with this plugin to a directory; returns the directory.
    fn write_list(&self, list: &Value) -> String {
        let directory = self.folder.file("net.d");
        std::fs::create_dir_all(&directory).expect("a directory");
        let name = list["name"].as_str().expect("a name");
        let file = format!("{directory}/{name}.conflist");
        std::fs::write(file, list.to_string()).expect("a file");
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

    /// Asserts the round-trip time from the machine to an address, in milliseconds.
    #[track_caller]
    fn assert_round_trip(&self, address: &str, expected: f64) {
        let mut found = f64::INFINITY;
        for _ in 0..10 {
            let command = ["ping", "-c", "4", "-i", "0.1", "-W", "2", "-q", address];
            let ran = run_in(&self.network, &command);
            let times = ran.stdout.split_once("min/avg/max/mdev = ");
            let times = times.unwrap_or_else(|| panic!("no answer: {ran:?}")).1;
            let shortest = times.split('/').next().and_then(|time| time.parse().ok());
            found = found.min(shortest.expect("a number"));
            assert!(found > expected - 0.1, "{found} ms, not {expected} ms");
            if found < expected + 5.0 {
                return;
            }
        }
        panic!("{found} ms, not {expected} ms");
    }
}

/// A container from a runtime's view: a namespace and the common arguments of its
/// calls.
struct Pod {
    _namespace: NetNamespace,
    id: String,
    /// A folder with a link to the namespace, removed with the container.
    folder: Folder,
}

impl Pod {
    fn new(id: &str) -> Pod {
        let namespace = NetNamespace::new().expect("a namespace");
        let folder = Folder::new();
        let descriptor = namespace.as_fd().as_raw_fd();
        let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
        symlink(path, folder.file("net")).expect("a link");
        let id = id.to_owned();
        Pod {
            _namespace: namespace,
            id,
            folder,
        }
    }

    /// Returns the path by which other processes find the namespace.
    fn path(&self) -> String {
        self.folder.file("net")
    }

    /// Runs one plugin for the container, as a runtime does.
    fn call(&self, machine: &Machine, operation: &str, config: &Value, previous: &str) -> Ran {
        let variables = BTreeMap::from([
            ("CNI_COMMAND", operation.to_owned()),
            ("CNI_CONTAINERID", self.id.clone()),
            ("CNI_NETNS", self.path()),
            ("CNI_IFNAME", "eth0".to_owned()),
            ("CNI_PATH", machine.path()),
        ]);
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
        let mut command = Command::new(program.expect("a plugin"));
        command.env_clear().envs(variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let child = machine.network.run(|| command.spawn()).expect("entered");
        let mut child = child.expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("it reads");
        drop(stdin);
        ran(child.wait_with_output().expect("it ends"))
    }

    /// Runs a call that must succeed; returns its output.
    #[track_caller]
    fn well(&self, machine: &Machine, operation: &str, config: &Value, previous: &str) -> String {
        let ran = self.call(machine, operation, config, previous);
        assert_eq!(ran.code, 0, "{operation} {config}: {ran:?}");
        ran.stdout
    }

    /// Runs a call that must fail with this CNI code.
    #[track_caller]
    fn fails(&self, machine: &Machine, operation: &str, config: &Value, code: u64) {
        let ran = self.call(machine, operation, config, "{}");
        assert_eq!(ran.code, 1, "{ran:?}");
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
