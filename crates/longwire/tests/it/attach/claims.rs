//! Closed interfaces next to other links, and after changes while they had no owner.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use longwire_io::net::{link_delete, veth};
use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::closed::{mounts, pins};
use super::node::{RunningNode, attachment, path};
use super::several::{joined, prefix};
use super::{DEVICE, Joined, name_of};
use crate::common::longwire;
use crate::common::process::RunningProgram;

/// A second interface of both namespaces.
const SECOND_DEVICE: &str = "eth1";

fn second_device(joined: &Joined) {
    let end = |namespace| veth::End {
        name: SECOND_DEVICE,
        namespace: Some(namespace),
        ..veth::End::default()
    };
    let pair = veth::VethConfig {
        a: end(&joined.near),
        b: end(&joined.far),
    };
    veth::create(&pair).expect("a pair");
}

fn closed(joined: &Joined, link: Value) -> Value {
    let mut body = attachment(joined, link);
    body["fail"] = "closed".into();
    body
}

#[test]
fn a_later_link_does_not_open_a_closed_one() {
    let Some((joined, [first, second, _])) = joined() else {
        return;
    };
    mounts(true);
    let round_trips = || [first, second].map(|address| joined.round_trip_to(address));
    assert!(round_trips().iter().all(Option::is_some));
    for round in 0..3 {
        let name = name_of("closed-part");
        let options = ["--fail", "closed", "--to", &prefix(first)];
        joined.attach(&name, &options).kill();
        let options = ["--to", &prefix(second), "--delay", "10ms"];
        let other = joined.attach(&name_of("later"), &options);
        let [closed, open] = round_trips();
        assert_eq!(closed, None, "round {round}");
        assert!(open.is_some_and(|found| found > 19.9), "{open:?}");
        let _ = other.detach();
        let detached = longwire(&["attach", "detach", &name]);
        assert_eq!(detached.code, 0, "{detached:?}");
    }
    assert!(round_trips().iter().all(Option::is_some));
    joined.assert_clean();
}

#[test]
fn links_that_are_attached_at_once_are_apart() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    mounts(true);
    for fail in ["closed", "open"] {
        let runs = addresses.map(|address| {
            let name = name_of(&format!("apart-{address}"));
            let to = prefix(address);
            let options = ["--fail", fail, "--to", &to, "--delay", "10ms"];
            let mut command = joined.command(&name, &options);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            (
                name,
                RunningProgram::of(command.spawn().expect("it starts")),
            )
        });
        let mut runs: Vec<_> = runs.into_iter().collect();
        for (_, program) in &mut runs {
            crate::common::process::wait_for_word(program, super::ATTACHED);
        }
        let on_link = |address| {
            joined
                .round_trip_to(address)
                .is_some_and(|found| found > 19.9)
        };
        // Each is removed individually.
        for (number, (name, program)) in runs.into_iter().enumerate() {
            let found = addresses.map(on_link);
            assert!(
                found[number..].iter().all(|on_link| *on_link),
                "{fail}: {found:?}"
            );
            assert!(
                found[..number].iter().all(|on_link| !on_link),
                "{fail}: {found:?}"
            );
            let detached = longwire(&["attach", "detach", &name]);
            assert_eq!(detached.code, 0, "{detached:?}");
            let _ = program.end();
        }
        assert_eq!(pins(), 0);
    }
    joined.assert_clean();
}

#[test]
fn a_closed_attachment_whose_target_is_gone_opens_when_it_is_removed() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    for by_end_of_node in [false, true] {
        let folder = Folder::new();
        let node = RunningNode::start(&folder);
        let mut sleep = Command::new("sleep");
        let mut sleep = RunningProgram::start(&joined.near, sleep.arg("1000"));
        let mut body = closed(&joined, json!({ "delay": "15ms" }));
        body["target"] = json!({ "pid": sleep.child().id() });
        node.put("pid", &body);
        joined.assert_round_trip(30.0);
        node.kill();
        assert_eq!(joined.round_trip(), None, "closed");
        drop(sleep);
        let node = RunningNode::start(&folder);
        assert_eq!(node.get("pid")["state"], "waiting");
        assert_eq!(joined.round_trip(), None, "closed until it is removed");
        if by_end_of_node {
            node.program.signal(Signal::SIGTERM);
            let ran = node.program.end();
            assert_eq!(ran.code, 0, "{ran:?}");
        } else {
            node.client().delete(&path("pid")).expect("removed");
        }
        assert_eq!(pins(), 0);
        joined.assert_round_trip(0.0);
    }
    joined.assert_clean();
}

#[test]
fn each_interface_of_a_closed_attachment_is_attached_again() {
    let Some((joined, [first, second, _])) = joined() else {
        return;
    };
    mounts(true);
    second_device(&joined);
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    // Serial numbers of the next attachment differ at the two interfaces.
    let mut other = attachment(&joined, json!({ "delay": "5ms" }));
    other["to"] = json!([prefix(second)]);
    node.put("other", &other);
    let mut all = closed(&joined, json!({ "delay": "15ms" }));
    all["interface"] = "all".into();
    all["to"] = json!([prefix(first)]);
    let made = node.put("all", &all);
    assert_eq!(made["interfaces"], json!([DEVICE, SECOND_DEVICE]), "{made}");
    assert_eq!(pins(), 4);
    node.kill();
    assert_eq!(joined.round_trip(), None, "closed");
    let node = RunningNode::start(&folder);
    joined.assert_round_trip(30.0);
    assert_eq!(pins(), 4);
    // An interface that goes away meanwhile leaves nothing behind.
    node.kill();
    let deleted = joined.near.run(|| link_delete(SECOND_DEVICE));
    deleted.expect("entered").expect("deleted");
    let node = RunningNode::start(&folder);
    joined.assert_round_trip(30.0);
    assert_eq!(pins(), 2);
    node.client().delete(&path("all")).expect("removed");
    assert_eq!(pins(), 0);
    joined.assert_round_trip(0.0);
    node.client().delete(&path("other")).expect("removed");
    joined.assert_clean();
}

#[test]
fn a_node_that_is_killed_at_any_moment_leaves_nothing_closed_after_its_removal() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    let folder = Folder::new();
    for wait_ms in (0..60).step_by(4) {
        let node = RunningNode::start(&folder);
        let body = closed(&joined, json!({ "delay": "1ms" }));
        let mut client = node.client();
        let put = thread::spawn(move || client.put(&path("any"), &body).is_ok());
        thread::sleep(Duration::from_millis(wait_ms));
        node.kill();
        let _ = put.join();
        let node = RunningNode::start(&folder);
        node.client().delete(&path("any")).expect("removed");
        node.program.signal(Signal::SIGTERM);
        let _ = node.program.end();
        assert_eq!(pins(), 0, "killed after {wait_ms} ms");
        assert!(joined.round_trip().is_some(), "killed after {wait_ms} ms");
    }
    joined.assert_clean();
}
