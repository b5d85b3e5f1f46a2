//! Tests of ADD.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::node::FakeNode;
use crate::{AWAY, Call, NAME, PREVIOUS};

/// Starts a node that accepts every attachment, and already has others.
fn willing(others: Value) -> FakeNode {
    FakeNode::start(move |line, _| match line.split_once(' ') {
        Some(("GET", "/v1/attachments")) => (200, json!({ "attachments": others })),
        Some(("PUT", _)) => (201, json!({ "name": NAME })),
        _ => (204, Value::Null),
    })
}

#[test]
fn add_sends_the_namespace_and_keeps_the_result() {
    let node = willing(json!([]));
    let add = Call::new("ADD", &node.socket())
        .field("link", json!({ "delay": "20ms", "rate": "1mbit" }))
        .field("up", json!({ "loss": "1%" }))
        .field("to", json!(["10.0.0.0/8"]))
        .field("seed", json!(7));
    assert_eq!(add.well(), PREVIOUS);
    let expected = json!({
        "target": { "netns": "/proc/self/ns/net" }, "interface": "eth0",
        "link": { "delay": "20ms", "rate": "1mbit", "up": { "loss": "1%" } },
        "to": ["10.0.0.0/8"], "seed": 7,
    });
    let requests = node.requests();
    let put = format!("PUT /v1/attachments/{NAME}");
    assert_eq!(requests[0], (put, expected));
    assert_eq!(requests.len(), 2, "{requests:?}");
}

#[test]
fn more_specific_sources_win() {
    let node = willing(json!([]));
    let link = |call: &Call| -> Value {
        call.well();
        node.requests()[0].1["link"]["delay"].clone()
    };
    let call = Call::new("ADD", &node.socket());
    let call = call.field("link", json!({ "delay": "1ms" }));
    assert_eq!(link(&call), "1ms");
    let mut runtime = json!({ "longwire": { "link": { "delay": "2ms" } }, "portMappings": [] });
    let call = call.field("runtimeConfig", runtime.clone());
    assert_eq!(link(&call), "2ms");
    runtime["io.kubernetes.cri.pod-annotations"] = json!({
        "longwire.dev/link": "delay=3ms", "example.com/other": "x",
    });
    let call = call.field("runtimeConfig", runtime);
    assert_eq!(link(&call), "3ms");
    let arguments = "IgnoreUnknown=1;LONGWIRE_DELAY=4ms;K8S_POD_NAME=a";
    assert_eq!(link(&call.variable("CNI_ARGS", arguments)), "4ms");
}

#[test]
fn containers_without_a_link_are_passed_on() {
    let add = Call::new("ADD", Path::new(AWAY)).field("attach", json!(false));
    assert_eq!(add.well(), PREVIOUS);
    let pod = json!({ "io.kubernetes.cri.pod-annotations": { "longwire.dev/attach": "true" } });
    add.field("runtimeConfig", pod)
        .fails(11, "start `longwire node`");
}

#[test]
fn without_the_node_a_container_waits_or_has_no_link() {
    let add = Call::new("ADD", Path::new(AWAY));
    add.fails(11, "start `longwire node`");
    let answer = add.field("required", json!(false)).run();
    assert!(answer.is_success);
    assert_eq!(answer.output, PREVIOUS);
    assert!(answer.log[0].contains("no link is attached"), "{answer:?}");
}

#[test]
fn stale_links_are_removed() {
    let attachment = |name: &str, state: &str, netns: &str| {
        let spec = json!({ "target": { "netns": netns }, "link": {} });
        json!({ "name": format!("cni-{name}"), "state": state, "interfaces": [], "spec": spec })
    };
    let [here, gone, other] = [
        "/proc/self/ns/net",
        "/run/netns/gone",
        "/run/netns/other-mounts",
    ];
    let node = willing(json!([
        attachment("pods-1-eth0-6cccd23600000000", "waiting", gone),
        attachment("pods-2-eth0-6cccd23600000000", "waiting", here),
        attachment("pods-3-eth0-6cccd23600000000", "attached", other),
        attachment("others-4-eth0-1111111100000000", "waiting", gone),
        json!({ "name": "web", "state": "attached", "spec": { "target": { "container": "web" } } }),
    ]));
    Call::new("ADD", &node.socket()).well();
    let lines: Vec<String> = node.requests().into_iter().map(|(line, _)| line).collect();
    let deleted = "DELETE /v1/attachments/cni-pods-1-eth0-6cccd23600000000";
    assert_eq!(lines[2..], [deleted], "{lines:?}");
}

#[test]
fn a_stale_attachment_is_replaced() {
    let deleted = AtomicBool::new(false);
    let node = FakeNode::start(move |line, _| match line.split_once(' ') {
        Some(("PUT", _)) if deleted.load(Ordering::Relaxed) => (201, json!({})),
        Some(("PUT", _)) => (409, json!({ "error": "it has another target" })),
        Some(("DELETE", path)) => {
            deleted.fetch_or(path.ends_with(NAME), Ordering::Relaxed);
            (200, json!({ "name": NAME }))
        }
        _ => {
            let spec = json!({ "target": { "netns": "/run/netns/gone" } });
            let gone = json!({ "name": NAME, "state": "attached", "spec": spec });
            (200, json!({ "attachments": [gone] }))
        }
    });
    Call::new("ADD", &node.socket()).well();
}

#[test]
fn refusals_of_the_node_have_codes() {
    let problem = json!({ "field": "link.delay", "reason": "'soon' is not a time", "remedy": "" });
    let wrong = json!({ "error": "link.delay: 'soon' is not a time", "problems": [problem] });
    let plain = json!({ "error": "there is no interface eth0" });
    for (status, body, code, part) in [
        (400, wrong.clone(), 7, "'soon' is not a time"),
        (422, wrong, 7, "'soon' is not a time"),
        (422, plain.clone(), 101, "no interface eth0"),
        (409, plain.clone(), 101, "no interface eth0"),
        (500, plain, 101, "no interface eth0"),
    ] {
        let node = FakeNode::start(move |line, _| match line {
            "GET /v1/attachments" => (200, json!({ "attachments": [] })),
            _ => (status, body.clone()),
        });
        let call = Call::new("ADD", &node.socket()).field("required", json!(false));
        call.fails(code, part);
    }
}

#[test]
fn invalid_calls_do_not_reach_the_node() {
    let node = willing(json!([]));
    let call = || Call::new("ADD", &node.socket());
    let runtime = |config: Value| call().field("runtimeConfig", config);
    call().without_previous().fails(7, "prevResult");
    let null = call().field("prevResult", Value::Null);
    null.without_previous().fails(7, "prevResult");
    let unknown = call().field("lnik", json!({ "delay": 1 }));
    unknown.fails(2, r#""lnik": {"delay":1}"#);
    call().field("link", json!("80ms")).fails(6, "'link'");
    runtime(json!({ "longwire": { "x": 1 } })).fails(6, "runtimeConfig");
    let annotations = json!({ "longwire.dev/link": "80ms" });
    let annotated = runtime(json!({ "io.kubernetes.cri.pod-annotations": annotations }));
    annotated.fails(7, "OPTION=VALUE");
    for (variable, text, code, part) in [
        ("CNI_NETNS", "/run/netns/gone", 3, "/run/netns/gone"),
        ("CNI_NETNS", "", 4, "CNI_NETNS"),
        ("CNI_CONTAINERID", "../x", 4, "CNI_CONTAINERID"),
        ("CNI_IFNAME", "a/b", 4, "CNI_IFNAME"),
        ("CNI_COMMAND", "PUT", 4, "CNI_COMMAND"),
        ("CNI_COMMAND", "", 4, "container runtime"),
    ] {
        call().variable(variable, text).fails(code, part);
    }
    for text in ["", "[]", "{", "{\"cniVersion\":1}"] {
        crate::error_of(&call().run_with(text), 6);
    }
    assert_eq!(node.requests(), []);
}
