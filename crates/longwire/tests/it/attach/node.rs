//! `longwire node`: attachments over the API.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use longwire_client::{Address, Client, ClientError};
use longwire_io::net::{link_delete, link_names};
use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::interleaved::join;
use super::{DEVICE, Joined, name_of, path_of, run_in};
use crate::common::process::{RunningProgram, TIMEOUT, wait_for_word};
use crate::common::ran;

/// A running node with a directory of attachments.
pub(super) struct RunningNode {
    pub(super) program: RunningProgram,
    socket: PathBuf,
}

impl RunningNode {
    pub(super) fn start(folder: &Folder) -> RunningNode {
        let mut command = command(folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = RunningProgram::of(command.spawn().expect("it starts"));
        wait_for_word(&mut program, "ready");
        RunningNode {
            program,
            socket: folder.file("node.sock").into(),
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::new(Address::Unix(self.socket.clone()), None).expect("a client")
    }

    pub(super) fn put(&self, name: &str, body: &Value) -> Value {
        let put = self.client().put(&path(name), body);
        put.expect("it is attached")
    }

    /// Sends an attachment that is refused; returns the status.
    pub(super) fn refused(&self, name: &str, body: &Value) -> u16 {
        match self.client().put(&path(name), body) {
            Err(ClientError::Refused(refused)) => refused.status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn get(&self, name: &str) -> Value {
        self.client().get(&path(name)).expect("an attachment")
    }

    /// Waits until an attachment reaches a state.
    #[track_caller]
    pub(super) fn wait_for(&self, name: &str, state: &str) -> Value {
        let end = Instant::now() + TIMEOUT;
        loop {
            let view = self.get(name);
            if view["state"] == state {
                return view;
            }
            assert!(Instant::now() < end, "{view}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(super) fn kill(self) {
        self.program.signal(Signal::SIGKILL);
        let _ = self.program.end();
    }
}

fn command(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["node", "--state", &folder.file("state")]);
    command.args(["--control", &folder.file("node.sock")]);
    command.args(["--reports", &folder.file("reports")]);
    command.stdin(Stdio::null());
    command
}

pub(super) fn path(name: &str) -> String {
    format!("/v1/attachments/{name}")
}

/// Returns an attachment to near's device.
pub(super) fn attachment(joined: &Joined, link: Value) -> Value {
    json!({
        "target": { "netns": path_of(&joined.near) },
        "interface": DEVICE,
        "link": link,
    })
}

#[test]
fn attachments_are_made_changed_and_removed() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let made = node.put("near", &attachment(&joined, json!({ "delay": "15ms" })));
    assert_eq!(made["interfaces"], json!([DEVICE]), "{made}");
    joined.assert_round_trip(30.0);
    // The same again, then other options in one direction.
    let again = node.put("near", &attachment(&joined, json!({ "delay": "15ms" })));
    assert_eq!(again, made);
    let link = json!({ "delay": "15ms", "up": { "delay": "40ms" } });
    node.put("near", &attachment(&joined, link));
    joined.assert_round_trip(55.0);

    let mut client = node.client();
    let changed = client.post(
        &format!("{}/changes", path("near")),
        &json!({ "set": { "eth0": { "delay": "1ms" } } }),
    );
    changed.expect("the control API of its run");
    joined.assert_round_trip(2.0);
    let links = client.get(&format!("{}/links", path("near")));
    let links = links.expect("links");
    assert_eq!(links["links"][0]["down"]["options"]["delay"], "1ms");

    let removed = client.delete(&path("near")).expect("removed");
    let names = joined
        .near
        .run(link_names)
        .expect("entered")
        .expect("names");
    let left: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("lw-"))
        .collect();
    assert!(left.is_empty(), "devices after the answer: {left:?}");
    assert!(removed["packets_in"].as_u64() >= Some(48), "{removed}");
    assert_eq!(removed["packets_in"], removed["packets_out"], "{removed}");
    let removed = client.delete(&path("near")).expect("none is no error");
    assert_eq!(removed["packets_in"], 0, "{removed}");
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    let reports = std::fs::read_dir(folder.file("reports")).expect("reports");
    assert_eq!(reports.count(), 1);
}

/// One list of one form, and the same commands for both holders.
#[test]
fn links_of_runs_and_of_the_node_are_listed_changed_and_removed_alike() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    // The commands look for the node's socket in this run directory.
    symlink(folder.path(), folder.path().join("longwire")).expect("a link");
    let ask = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("XDG_RUNTIME_DIR", folder.path()).args(words);
        let ran = ran(command.output().expect("it starts"));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    };
    let (run, kept) = (name_of("alike-run"), name_of("alike-node"));
    let far = format!("{}/32", joined.far_address);
    let attached = joined.attach(&run, &["--to", &far, "--delay", "15ms"]);
    let mut body = attachment(&joined, json!({ "delay": "20ms" }));
    body["to"] = json!(["192.0.2.0/24"]);
    node.put(&kept, &body);
    joined.assert_round_trip(30.0);

    let rows = ask(&["attach", "list", "--json"]).json();
    let rows = rows.as_array().expect("rows");
    let holders = [
        (&run, far.as_str(), "15ms", "pid"),
        (&kept, "192.0.2.0/24", "20ms", "node"),
    ];
    for (name, to, delay, holder) in holders {
        let row = rows.iter().find(|row| row["name"] == name.as_str());
        let row = row.expect("it is listed");
        let (state, spec) = (&row["state"], &row["spec"]);
        assert_eq!(
            (state, &row["interfaces"]),
            (&json!("attached"), &json!([DEVICE]))
        );
        assert_eq!(
            (&spec["to"], &spec["link"]),
            (&json!([to]), &json!({ "delay": delay }))
        );
        assert!(!row[holder].is_null(), "{row}");
        ask(&["attach", "set", name, "delay=25ms"]);
    }
    joined.assert_round_trip(50.0);
    assert_eq!(node.get(&kept)["spec"]["link"]["delay"], "25ms");

    ask(&["attach", "detach", &run, &kept]);
    assert_eq!(attached.program.end().code, 0);
    assert_eq!(
        node.client().get("/v1/attachments").expect("a list")["attachments"],
        json!([])
    );
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn links_without_a_seed_lose_different_packets() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    // Addresses are resolved in advance.
    joined.assert_round_trip(0.0);
    let address = joined.far_address.to_string();
    let answered = |name: &str| {
        node.put(name, &attachment(&joined, json!({ "loss": "50%" })));
        let ping = ["ping", "-c", "60", "-i", "0.01", "-W", "1", &address];
        let text = run_in(&joined.near, &ping).stdout;
        node.client().delete(&path(name)).expect("removed");
        let words = text.split_whitespace();
        let numbers = words.filter_map(|word| word.strip_prefix("icmp_seq="));
        numbers.map(str::to_owned).collect::<Vec<String>>()
    };
    let [near, far] = [answered("near"), answered("far")];
    assert!(near.len() < 40 && far.len() < 40, "{near:?} {far:?}");
    assert_ne!(near, far);
}

#[test]
fn a_killed_node_lets_traffic_pass_and_attaches_again() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    node.put("near", &attachment(&joined, json!({ "delay": "15ms" })));
    joined.assert_round_trip(30.0);
    node.kill();
    joined.assert_round_trip(0.0);
    let node = RunningNode::start(&folder);
    // The node reports ready once it has restored its attachments.
    assert_eq!(node.get("near")["state"], "attached");
    joined.assert_round_trip(30.0);
    node.program.signal(Signal::SIGTERM);
    let ran = node.program.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    // Also after a clean exit.
    let node = RunningNode::start(&folder);
    joined.assert_round_trip(30.0);
    node.client().delete(&path("near")).expect("removed");
    joined.assert_clean();
}

#[test]
fn a_target_that_returns_gets_its_link_again() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    node.put("near", &attachment(&joined, json!({ "delay": "15ms" })));
    let deleted = joined.near.run(|| link_delete(DEVICE));
    deleted.expect("entered").expect("deleted");
    let waiting = node.wait_for("near", "waiting");
    assert!(waiting["reason"].is_string(), "{waiting}");
    join(&joined);
    let attached = node.wait_for("near", "attached");
    assert_eq!(attached["returns"], 1, "{attached}");
    joined.assert_round_trip(30.0);
}

#[test]
fn a_filter_selects_packets() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let mut body = attachment(&joined, json!({ "delay": "15ms" }));
    for (filter, delay) in [("udp", 0.0), ("icmp", 30.0)] {
        body["filter"] = filter.into();
        node.put(filter, &body);
        joined.assert_round_trip(delay);
        let removed = node.client().delete(&path(filter)).expect("removed");
        assert_eq!(
            removed["packets_in"].as_u64() > Some(0),
            delay > 0.0,
            "{removed}"
        );
    }
}

#[test]
fn wrong_requests_change_nothing() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let good = attachment(&joined, json!({ "delay": "15ms" }));
    node.put("near", &good);
    let at = |target: Value| json!({ "target": target });
    let cases = [
        ("other", good.clone(), 409),
        ("near", at(json!({ "pid": 1 })), 409),
        ("new", at(json!({ "netns": "no-such-name" })), 422),
        ("new", at(json!({ "pid": std::process::id() })), 422),
        (
            "new",
            json!({ "target": { "pid": 1 }, "filter": "udp dst" }),
            422,
        ),
        ("new", attachment(&joined, json!({ "delay": "soon" })), 422),
        ("near", attachment(&joined, json!({ "rate": "0" })), 422),
        ("new", json!({ "link": {} }), 400),
        ("new", json!([]), 400),
        (".new", good.clone(), 422),
    ];
    for (name, body, status) in cases {
        assert_eq!(node.refused(name, &body), status, "{name}: {body}");
    }
    joined.assert_round_trip(30.0);
    let all = node.client().get("/v1/attachments").expect("a list");
    let all = all["attachments"].as_array().map(Vec::len);
    assert_eq!(all, Some(1));
    // A filter that the kernel cannot apply is detected before options change.
    let mut part = attachment(&joined, json!({ "delay": "15ms" }));
    part["filter"] = "icmp".into();
    node.client().delete(&path("near")).expect("removed");
    node.put("near", &part);
    let mut refused = attachment(&joined, json!({ "delay": "90ms" }));
    refused["filter"] = "ether[len - 1] = 1".into();
    assert_eq!(node.refused("near", &refused), 422);
    refused["filter"] = "icmp".into();
    refused["to"] = (0..600)
        .map(|number| format!("10.0.{}.{}", number / 250, number % 250))
        .collect();
    assert_eq!(node.refused("near", &refused), 422);
    joined.assert_round_trip(30.0);
    assert_eq!(node.get("near")["spec"]["filter"], "icmp");
    // One with a wait does wait.
    let mut waits = at(json!({ "netns": "no-such-name" }));
    waits["wait"] = true.into();
    assert_eq!(node.put("waits", &waits)["state"], "waiting");
    assert_eq!(node.get("waits")["interfaces"], json!([]));

    // A second node would create the same attachments.
    let mut second = command(&folder);
    second.args(["--control", &folder.file("second.sock")]);
    let second = crate::common::ran(second.output().expect("it starts"));
    assert_ne!(second.code, 0, "{second:?}");
}

#[test]
fn an_attachment_waits_while_another_program_has_its_interface() {
    let Some(joined) = Joined::new() else { return };
    let other = joined.attach(&name_of("other"), &["--delay", "5ms"]);
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let mut body = attachment(&joined, json!({ "delay": "15ms" }));
    assert_eq!(node.refused("near", &body), 409);
    body["wait"] = true.into();
    let waiting = node.put("near", &body);
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert_eq!(waiting["taken"], true, "{waiting}");
    joined.assert_round_trip(10.0);
    other.detach();
    let attached = node.wait_for("near", "attached");
    assert!(attached.get("taken").is_none(), "{attached}");
    joined.assert_round_trip(30.0);
    // A missing target is refused.
    body["target"] = json!({ "netns": "no-such-name" });
    let waiting = node.put("waits", &body);
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert!(waiting.get("taken").is_none(), "{waiting}");
}

#[test]
fn many_attachments_are_made_at_once() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let body = attachment(&joined, json!({ "delay": "1ms" }));
    std::thread::scope(|scope| {
        // One attachment gets the interface and the name.
        let made: Vec<_> = (0..8)
            .map(|number| {
                let (node, body) = (&node, &body);
                scope.spawn(move || {
                    let name = path(&format!("n{}", number % 4));
                    node.client().put(&name, body).is_ok()
                })
            })
            .collect();
        let made = made.into_iter().map(|made| made.join().expect("no panic"));
        let made = made.filter(|made| *made).count();
        assert!((1..=2).contains(&made), "{made}");
    });
    let all = node.client().get("/v1/attachments").expect("a list");
    let all = all["attachments"].as_array().expect("a list").clone();
    assert_eq!(all.len(), 1, "{all:?}");
    joined.assert_round_trip(2.0);
}

#[test]
fn an_interface_is_free_again_at_once() {
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let body = attachment(&joined, json!({ "delay": "1ms" }));
    // The kernel removes one attachment's devices while the next ones are created.
    for round in 0..12 {
        node.put(&format!("round{round}"), &body);
        let removed = node.client().delete(&path(&format!("round{round}")));
        removed.expect("removed");
    }
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}
