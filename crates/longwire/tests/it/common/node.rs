//! `longwire node` as seen by a client.

use std::collections::BTreeMap;

use longwire_client::{Address, Client, ClientError};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::program::{RunningProgram, start_in, wait_for};
use super::site::assert_not_early;
use super::{count, list};

/// Returns the API path of an attachment.
pub fn path(name: &str) -> String {
    format!("/v1/attachments/{name}")
}

/// Asserts that a request is refused with this status.
#[track_caller]
pub fn assert_refused(result: Result<Value, ClientError>, status: u16, request: &Value) {
    match result {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.status, status, "{request}"),
        other => panic!("{request}: {other:?}"),
    }
}

/// A running node, with its files in the test's folder.
pub struct RunningNode {
    pub program: RunningProgram,
    socket: String,
}

/// Returns the command line for a node with this name in the folder.
pub fn node_line(folder: &Folder, name: &str) -> String {
    let file = |end: &str| folder.file(&format!("{name}{end}"));
    format!(
        "longwire node --state {} --control {} --reports {}",
        file(".state"),
        file(".sock"),
        file(".reports")
    )
}

impl RunningNode {
    pub fn start(folder: &Folder) -> RunningNode {
        let here = NetNamespace::current().expect("a namespace");
        RunningNode::start_in(&here, folder, "node")
    }

    /// Starts a machine's node.
    pub fn start_in(machine: &NetNamespace, folder: &Folder, name: &str) -> RunningNode {
        RunningNode {
            program: start_in(machine, node_line(folder, name)).ready("ready"),
            socket: folder.file(&format!("{name}.sock")),
        }
    }

    pub fn client(&self) -> Client {
        Client::new(Address::Unix(self.socket.clone().into()), None).expect("a client")
    }

    pub fn put(&self, name: &str, body: &Value) -> Value {
        self.client()
            .put(&path(name), body)
            .expect("it is attached")
    }

    /// Sends an attachment that must be refused with this status.
    #[track_caller]
    pub fn refuses(&self, name: &str, body: &Value, status: u16) {
        assert_refused(self.client().put(&path(name), body), status, body);
    }

    pub fn get(&self, name: &str) -> Value {
        self.client().get(&path(name)).expect("an attachment")
    }

    pub fn delete(&self, name: &str) -> Value {
        self.client().delete(&path(name)).expect("it is removed")
    }

    /// Returns all attachments.
    pub fn attachments(&self) -> Vec<Value> {
        let answer = self.client().get("/v1/attachments").expect("a list");
        list(&answer["attachments"]).clone()
    }

    /// Waits until an attachment reaches a state.
    #[track_caller]
    pub fn wait_for(&self, name: &str, state: &str) -> Value {
        wait_for(state, || {
            let view = self.get(name);
            let reached = view["state"] == state;
            if reached { Ok(view) } else { Err(view) }
        })
    }

    /// Asserts that a ping crosses one attachment; see [`assert_crossed`].
    #[track_caller]
    pub fn assert_crossed(&self, ping: impl FnOnce() -> Option<f64>, delays: f64) {
        let taken = || {
            let attached = self.attachments().into_iter();
            let attached = attached.filter(|view| view["state"] == "attached");
            let paths = attached.map(|view| path(view["name"].as_str().expect("a name")));
            let taken = paths.filter_map(|path| Some((path.clone(), taken(self.client(), &path)?)));
            taken.collect()
        };
        assert_crossed(taken, ping, delays);
    }

    pub fn kill(self) {
        self.program.kill();
    }

    /// Stops the node with SIGTERM, as a supervisor does; it must succeed.
    #[track_caller]
    pub fn stop(self) {
        self.program.end_by(Signal::SIGTERM).well();
    }
}

/// Number of echo requests in a ping passed to [`assert_crossed`].
pub const PINGS: u64 = 8;

/// Frames received by the up and down directions, by link.
pub type Taken = BTreeMap<String, [u64; 2]>;

/// Returns the frames received by the first link of a run; `None` if the run does not answer.
pub fn taken(mut client: Client, path: &str) -> Option<[u64; 2]> {
    let links = client.get(&format!("{path}/links")).ok()?;
    Some(["up", "down"].map(|way| count(&links["links"][0][way]["packets_in"])))
}

/// Asserts that each echo request and each reply crosses exactly one link, once, and that no reply
/// arrives before `delays` ms. If `delays` is 0, asserts that no packet crosses a link. There is no
/// upper bound, because a busy machine delays frames further.
#[track_caller]
pub fn assert_crossed(taken: impl Fn() -> Taken, ping: impl FnOnce() -> Option<f64>, delays: f64) {
    let before = taken();
    assert_not_early(ping(), delays);
    let links = usize::from(delays > 0.0);
    // After its last request, ping waits only for two round trips, so a reply may still be on its
    // way.
    wait_for(&format!("{delays} ms"), || {
        let after = taken();
        let crossed = [0, 1].map(|way| {
            let more = after
                .iter()
                .map(|(link, after)| after[way] - before[link][way]);
            // Address resolution may add frames.
            more.filter(|frames| *frames >= PINGS).collect::<Vec<u64>>()
        });
        let once = crossed[0].iter().all(|frames| *frames < 2 * PINGS);
        // Multicasts of other containers may arrive as well.
        let right = crossed[0].len() == links && once && crossed[1].len() >= links;
        if right { Ok(()) } else { Err((&before, after)) }
    });
}

/// Returns an attachment to `eth0` of the namespace at this path.
pub fn attachment(netns: &str, link: Value) -> Value {
    json!({ "target": { "netns": netns }, "interface": "eth0", "link": link })
}
