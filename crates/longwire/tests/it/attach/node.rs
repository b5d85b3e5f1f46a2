//! `longwire node`: attachments over the API.

use std::os::unix::fs::symlink;

use longwire_io::net::{link_delete, link_names};
use longwire_testbed::support::{Folder, within};
use serde_json::{Value, json};

use super::interleaved::join;
use super::{DEVICE, Joined, name_of};
use crate::common::node::{RunningNode, attachment, node_line, path};
use crate::common::program::{Ran, command, run, run_in};
use crate::common::site::path_of;
use crate::common::{count, named};

/// Returns a node with networks; `None` if the user may not attach programs.
fn started() -> Option<(Joined, Folder, RunningNode)> {
    let (joined, folder) = (Joined::new()?, Folder::new());
    let node = RunningNode::start(&folder);
    Some((joined, folder, node))
}

/// Returns an attachment to near's device.
fn delayed(joined: &Joined, delay: &str) -> Value {
    attachment(&path_of(&joined.near), json!({ "delay": delay }))
}

impl RunningNode {
    #[track_caller]
    fn assert_round_trip(&self, joined: &Joined, delays: f64) {
        self.assert_crossed(|| joined.round_trip(), delays);
    }
}

#[test]
fn attachments_are_made_changed_and_removed() {
    let Some((joined, folder, node)) = started() else {
        return;
    };
    let made = node.put("near", &delayed(&joined, "15ms"));
    assert_eq!(made["interfaces"], json!([DEVICE]), "{made}");
    node.assert_round_trip(&joined, 30.0);
    // A repeated request is a no-op; then options of one direction change.
    assert_eq!(node.put("near", &delayed(&joined, "15ms")), made);
    let link = json!({ "delay": "15ms", "up": { "delay": "40ms" } });
    node.put("near", &attachment(&path_of(&joined.near), link));
    node.assert_round_trip(&joined, 55.0);

    let mut client = node.client();
    let change = json!({ "set": { "eth0": { "delay": "1ms" } } });
    let changed = client.post(&format!("{}/changes", path("near")), &change);
    changed.expect("the control API of its run");
    node.assert_round_trip(&joined, 2.0);
    let links = client
        .get(&format!("{}/links", path("near")))
        .expect("links");
    assert_eq!(links["links"][0]["down"]["options"]["delay"], "1ms");

    let removed = node.delete("near");
    let mut left = within(&joined.near, link_names);
    left.retain(|name| name.starts_with("lw-"));
    assert!(left.is_empty(), "devices after the answer: {left:?}");
    assert!(count(&removed["packets_in"]) >= 48, "{removed}");
    assert_eq!(removed["packets_in"], removed["packets_out"], "{removed}");
    assert_eq!(node.delete("near")["packets_in"], 0, "none is no error");
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    let reports = std::fs::read_dir(folder.file("node.reports")).expect("reports");
    assert_eq!(reports.count(), 1);
}

/// Attachments of runs and of the node are listed in the same form, and accept the same commands.
#[test]
fn links_of_runs_and_of_the_node_are_listed_changed_and_removed_alike() {
    let Some((joined, folder, node)) = started() else {
        return;
    };
    // The commands look for the node's socket in this run directory.
    symlink(folder.path(), folder.path().join("longwire")).expect("a link");
    let ask = |line: &str| {
        let mut command = command(format!("longwire attach {line}"));
        command.env("XDG_RUNTIME_DIR", folder.path());
        Ran::of(&mut command).well()
    };
    let (run, kept) = (name_of("alike-run"), name_of("alike-node"));
    let far = format!("{}/32", joined.far_address);
    let attached = joined.attach(&run, &format!("--to {far} --delay 15ms"));
    let mut body = delayed(&joined, "20ms");
    body["to"] = json!(["192.0.2.0/24"]);
    node.put(&kept, &body);
    joined.assert_round_trip(30.0);

    let rows = ask("list --json").json();
    let holders = [
        (&run, far.as_str(), "15ms", "pid"),
        (&kept, "192.0.2.0/24", "20ms", "node"),
    ];
    for (name, to, delay, holder) in holders {
        let row = named(&rows, name);
        assert_eq!(
            (&row["state"], &row["interfaces"]),
            (&json!("attached"), &json!([DEVICE]))
        );
        let spec = &row["spec"];
        assert_eq!(
            (&spec["to"], &spec["link"]),
            (&json!([to]), &json!({ "delay": delay }))
        );
        assert!(!row[holder].is_null(), "{row}");
        ask(&format!("set {name} delay=25ms"));
    }
    joined.assert_round_trip(50.0);
    assert_eq!(node.get(&kept)["spec"]["link"]["delay"], "25ms");

    ask(&format!("detach {run} {kept}"));
    attached.program.end().well();
    assert!(node.attachments().is_empty());
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn a_killed_node_lets_traffic_pass_and_attaches_again() {
    let Some((joined, folder, node)) = started() else {
        return;
    };
    node.put("near", &delayed(&joined, "15ms"));
    node.assert_round_trip(&joined, 30.0);
    node.kill();
    joined.assert_round_trip(0.0);
    let node = RunningNode::start(&folder);
    // A node reports ready only after restoring its attachments.
    assert_eq!(node.get("near")["state"], "attached");
    node.assert_round_trip(&joined, 30.0);
    node.stop();
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    // The same holds after a clean exit.
    let node = RunningNode::start(&folder);
    node.assert_round_trip(&joined, 30.0);
    node.delete("near");
    joined.assert_clean();
}

#[test]
fn a_target_that_returns_gets_its_link_again() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    node.put("near", &delayed(&joined, "15ms"));
    within(&joined.near, || link_delete(DEVICE));
    let waiting = node.wait_for("near", "waiting");
    assert!(waiting["reason"].is_string(), "{waiting}");
    join(&joined);
    let attached = node.wait_for("near", "attached");
    assert_eq!(attached["returns"], 1, "{attached}");
    node.assert_round_trip(&joined, 30.0);
}

#[test]
fn a_filter_selects_packets() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    let mut body = delayed(&joined, "15ms");
    for (filter, delays) in [("udp", 0.0), ("icmp", 30.0)] {
        body["filter"] = filter.into();
        node.put(filter, &body);
        node.assert_round_trip(&joined, delays);
        node.delete(filter);
    }
}

#[test]
fn links_without_a_seed_lose_different_packets() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    // Resolve addresses in advance.
    node.assert_round_trip(&joined, 0.0);
    let body = attachment(&path_of(&joined.near), json!({ "loss": "50%" }));
    let ping = format!("ping -c 60 -i 0.01 -W 1 {}", joined.far_address);
    let answered = |name: &str| {
        node.put(name, &body);
        let text = run_in(&joined.near, &ping).stdout;
        node.delete(name);
        let words = text.split_whitespace();
        let numbers = words.filter_map(|word| word.strip_prefix("icmp_seq="));
        numbers.map(str::to_owned).collect::<Vec<String>>()
    };
    let [near, far] = [answered("near"), answered("far")];
    assert!(near.len() < 40 && far.len() < 40, "{near:?} {far:?}");
    assert_ne!(near, far);
}

#[test]
fn wrong_requests_change_nothing() {
    let Some((joined, folder, node)) = started() else {
        return;
    };
    let good = delayed(&joined, "15ms");
    node.put("near", &good);
    let at = |target: Value| json!({ "target": target });
    let rated = attachment(&path_of(&joined.near), json!({ "rate": "0" }));
    for (name, body, status) in [
        ("other", good.clone(), 409),
        ("near", at(json!({ "pid": 1 })), 409),
        ("new", at(json!({ "netns": "no-such-name" })), 422),
        ("new", at(json!({ "pid": std::process::id() })), 422),
        (
            "new",
            json!({ "target": { "pid": 1 }, "filter": "udp dst" }),
            422,
        ),
        ("new", delayed(&joined, "soon"), 422),
        ("near", rated, 422),
        ("new", json!({ "link": {} }), 400),
        ("new", json!([]), 400),
        (".new", good.clone(), 422),
    ] {
        node.refuses(name, &body, status);
    }
    node.assert_round_trip(&joined, 30.0);
    assert_eq!(node.attachments().len(), 1);
    // A filter that the kernel cannot apply is refused before any option changes.
    let mut part = good;
    part["filter"] = "icmp".into();
    node.delete("near");
    node.put("near", &part);
    let mut refused = delayed(&joined, "90ms");
    refused["filter"] = "ether[len - 1] = 1".into();
    node.refuses("near", &refused, 422);
    refused["filter"] = "icmp".into();
    let to = (0..600).map(|number| format!("10.0.{}.{}", number / 250, number % 250));
    refused["to"] = to.collect();
    node.refuses("near", &refused, 422);
    node.assert_round_trip(&joined, 30.0);
    assert_eq!(node.get("near")["spec"]["filter"], "icmp");
    // With `wait`, an attachment waits for its target.
    let mut waits = at(json!({ "netns": "no-such-name" }));
    waits["wait"] = true.into();
    assert_eq!(node.put("waits", &waits)["state"], "waiting");
    assert_eq!(node.get("waits")["interfaces"], json!([]));

    // A second node would create the same attachments.
    let second = format!(
        "{} --control {}",
        node_line(&folder, "node"),
        folder.file("b.sock")
    );
    let second = run(second);
    assert_ne!(second.code, 0, "{second:?}");
}

#[test]
fn an_attachment_waits_while_another_program_has_its_interface() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    let other = joined.attach(&name_of("other"), "--delay 5ms");
    let mut body = delayed(&joined, "15ms");
    node.refuses("near", &body, 409);
    body["wait"] = true.into();
    let waiting = node.put("near", &body);
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert_eq!(waiting["taken"], true, "{waiting}");
    joined.assert_round_trip(10.0);
    other.detach();
    let attached = node.wait_for("near", "attached");
    assert!(attached.get("taken").is_none(), "{attached}");
    node.assert_round_trip(&joined, 30.0);
    // An attachment that waits for its target has no `taken`: no program has the interface.
    body["target"] = json!({ "netns": "no-such-name" });
    let waiting = node.put("waits", &body);
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert!(waiting.get("taken").is_none(), "{waiting}");
}

#[test]
fn many_attachments_are_made_at_once() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    let body = delayed(&joined, "1ms");
    std::thread::scope(|scope| {
        // Only one attachment gets the interface and the name.
        let put = |number: u32| {
            let (mut client, body) = (node.client(), &body);
            scope.spawn(move || client.put(&path(&format!("n{}", number % 4)), body).is_ok())
        };
        let made: Vec<_> = (0..8).map(put).collect();
        let made = made.into_iter().map(|made| made.join().expect("no panic"));
        let made = made.filter(|made| *made).count();
        assert!((1..=2).contains(&made), "{made}");
    });
    let all = node.attachments();
    assert_eq!(all.len(), 1, "{all:?}");
    node.assert_round_trip(&joined, 2.0);
}

#[test]
fn an_interface_is_free_again_at_once() {
    let Some((joined, _folder, node)) = started() else {
        return;
    };
    let body = delayed(&joined, "1ms");
    // The kernel removes one attachment's devices while the next one's are being created.
    for round in 0..12 {
        let name = format!("round{round}");
        node.put(&name, &body);
        node.delete(&name);
    }
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}
