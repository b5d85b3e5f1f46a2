//! Tests of DEL, CHECK, GC, STATUS and VERSION.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use longwire_testbed::support::Folder;
use serde_json::{Value, json};

use crate::node::FakeNode;
use crate::{AWAY, Call, NAME, error_of};

/// Returns the attachment of the calls' container.
fn attached() -> Value {
    json!({
        "name": NAME, "state": "attached", "interfaces": ["eth0"],
        "spec": { "target": { "netns": "/proc/self/ns/net" }, "link": { "delay": "80ms" } },
    })
}

#[test]
fn a_container_is_removed_in_any_case() {
    for (status, body) in [
        (204, Value::Null),
        (200, json!({ "name": NAME, "received": 7 })),
        (404, json!({ "error": "there is none" })),
        (500, json!({ "error": "a fault" })),
        (200, json!([])),
    ] {
        let node = FakeNode::start(move |_, _| (status, body.clone()));
        let del = Call::new("DEL", &node.socket()).variable("CNI_NETNS", "");
        assert_eq!(del.without_previous().well(), "");
        let expected = (format!("DELETE /v1/attachments/{NAME}"), Value::Null);
        assert_eq!(node.requests(), [expected]);
    }
    let del = Call::new("DEL", Path::new(AWAY)).field("lnik", json!(1));
    let answer = del.field("link", json!("wrong")).run();
    assert!(answer.is_success && answer.output.is_empty(), "{answer:?}");
    assert!(answer.log[0].contains("cannot remove"), "{answer:?}");
    let del = Call::new("DEL", Path::new(AWAY)).variable("CNI_CONTAINERID", "");
    del.fails(4, "CNI_CONTAINERID");
}

#[test]
fn a_hanging_node_delays_del_by_seconds() {
    let folder = Folder::new();
    let socket = folder.path().join("node.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let begin = Instant::now();
    assert_eq!(Call::new("DEL", &socket).well(), "");
    let taken = begin.elapsed();
    // The limit is 3 s, but a busy machine takes longer.
    assert!(taken > Duration::from_secs(2), "{taken:?}");
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}

#[test]
fn check_finds_the_link() {
    let with = |status: u16, body: Value| {
        let node = FakeNode::start(move |_, _| (status, body.clone()));
        let check = Call::new("CHECK", &node.socket());
        (node, check)
    };
    let (node, check) = with(200, attached());
    assert_eq!(check.well(), "");
    assert_eq!(node.requests()[0].0, format!("GET /v1/attachments/{NAME}"));
    check.without_previous().fails(7, "prevResult");

    let changed = |field: &str, value: Value| {
        let mut body = attached();
        body[field] = value;
        body
    };
    let other = json!({ "target": { "netns": "/run/netns/other" } });
    let mut waiting = changed("state", json!("waiting"));
    waiting["reason"] = json!("there is no eth0");
    for (status, body, part) in [
        (404, json!({ "error": "none" }), "does not exist"),
        (200, waiting, "is waiting: there is no eth0"),
        (
            200,
            changed("interfaces", json!(["eth1"])),
            "is attached elsewhere",
        ),
        (200, changed("spec", other), "is attached elsewhere"),
    ] {
        let (_node, check) = with(status, body);
        check.fails(100, part);
    }

    let away = || Call::new("CHECK", Path::new(AWAY));
    away().fails(11, "start `longwire node`");
    away().field("required", json!(false)).well();
    away().field("attach", json!(false)).well();
    let eth1 = away().variable("CNI_IFNAME", "eth1");
    eth1.fails(7, "has no interface eth1");
}

#[test]
fn links_of_invalid_attachments_are_collected() {
    let all = [
        "cni-pods-1-eth0-6cccd23600000001",
        NAME,
        "web",
        "cni-pods-1-eth0-0000000000000002",
    ];
    let attachment = |name: &&str| json!({ "name": name, "state": "attached", "spec": {} });
    let list: Vec<Value> = all.iter().map(attachment).collect();
    let start = |status: u16| {
        let list = list.clone();
        FakeNode::start(move |line, _| match line {
            "GET /v1/attachments" => (200, json!({ "attachments": list })),
            _ => (status, json!({ "error": "a fault" })),
        })
    };
    let lines = |node: &FakeNode| -> Vec<String> {
        let requests = node.requests().into_iter().skip(1);
        requests.map(|(line, _)| line).collect()
    };
    let delete = |name: &str| format!("DELETE /v1/attachments/{name}");
    let valid = json!([{ "containerID": "3fa9c0ffee1234567890", "ifname": "eth0" }]);
    for field in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        let node = start(200);
        let gc = Call::new("GC", &node.socket()).without_previous();
        assert_eq!(gc.field(field, valid.clone()).well(), "");
        assert_eq!(lines(&node), [delete(all[0])]);
    }
    // The plugin tries all attachments and reports all errors.
    let node = start(500);
    let message = error_of(&Call::new("GC", &node.socket()).run(), 101);
    assert_eq!(lines(&node), [delete(all[0]), delete(NAME)]);
    assert!(message.contains(all[0]), "{message}");
    assert!(message.contains(NAME), "{message}");
    Call::new("GC", Path::new(AWAY)).fails(11, "start `longwire node`");
}

#[test]
fn the_status_is_that_of_the_node() {
    let node = FakeNode::start(|_, _| (200, json!({ "status": "ok" })));
    let status = Call::new("STATUS", &node.socket()).without_previous();
    assert_eq!(status.well(), "");
    assert_eq!(node.requests()[0].0, "GET /v1/health");
    let away = Call::new("STATUS", Path::new(AWAY));
    away.fails(50, "start `longwire node`");
    away.field("required", json!(false)).well();
}

#[test]
fn versions_have_their_operations() {
    let version = Call::new("VERSION", Path::new(AWAY));
    for asked in ["0.2.0", "1.0.0", "9.9.9"] {
        let answer = version.run_with(&json!({ "cniVersion": asked }).to_string());
        let output: Value = serde_json::from_str(&answer.output).expect("JSON");
        let supported = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];
        let expected = json!({ "cniVersion": asked, "supportedVersions": supported });
        assert_eq!(output, expected);
    }
    for (operation, version) in [
        ("ADD", "0.2.0"),
        ("ADD", "1.2.0"),
        ("ADD", ""),
        ("CHECK", "0.3.1"),
        ("GC", "1.0.0"),
        ("STATUS", "1.0.0"),
    ] {
        let call = Call::new(operation, Path::new(AWAY)).field("cniVersion", json!(version));
        let answer = call.run();
        let error: Value = serde_json::from_str(&answer.output).expect("JSON");
        assert_eq!(error["code"], 1, "{operation} {version}: {error}");
        assert!(error["details"].to_string().contains("1.1.0"), "{error}");
    }
    for version in ["0.3.1", "0.4.0", "1.0.0"] {
        let call = Call::new("ADD", Path::new(AWAY)).field("attach", json!(false));
        call.field("cniVersion", json!(version)).well();
    }
}

#[test]
fn the_version_is_in_the_form_of_other_plugins() {
    let about = longwire_cni::about();
    let (plugin, versions) = about.split_once('\n').expect("two lines");
    let version = plugin.strip_prefix("CNI longwire-cni plugin v");
    let numbers = version.expect("a version").split('.');
    let mut numbers = numbers.map(str::parse::<u32>);
    assert!(numbers.all(|number| number.is_ok()), "{plugin}");
    assert!(versions.ends_with("1.0.0, 1.1.0"), "{versions}");
}
