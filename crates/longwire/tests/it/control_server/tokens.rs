//! Authorisation of TCP clients, and of those of a socket that send a token.

use super::client::{Answer, ask, ask_tcp, connect, exchange, request};
use super::{NETWORK, Stage};
use crate::common::process::RunningProgram;

const FULL: &str = "0123456789abcdef-full";
const READ: &str = "0123456789abcdef-read";
const ADDRESS: &str = "127.0.0.1:9470";

const CHANGE: &str = r#"{"delay":"9ms"}"#;

/// Returns the header that sends a token.
fn says(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Starts a network with both tokens, on TCP and at a socket; returns a function for
/// TCP requests.
fn guarded(stage: &Stage) -> (RunningProgram, impl Fn(&str, &[&str], &str) -> Answer) {
    let (full, read) = (
        stage.token_file("full", FULL),
        stage.token_file("read", READ),
    );
    let tcp = format!("tcp:{ADDRESS}");
    let mut arguments = vec!["--control", &tcp, "--control-token-file", &full];
    let socket = stage.socket();
    arguments.extend(["--control", &socket, "--control-read-token-file", &read]);
    let running = stage.start(NETWORK, &arguments);
    let ask = |line: &str, headers: &[&str], body: &str| {
        let host = format!("Host: {ADDRESS}");
        let mut all = vec![host.as_str()];
        all.extend(headers);
        ask_tcp(&stage.namespace, ADDRESS, &request(line, &all, body))
    };
    (running, ask)
}

#[test]
fn tokens_say_who_may_read_and_who_may_change() {
    let Some(stage) = Stage::new() else { return };
    let (_running, ask_with) = guarded(&stage);
    let (full, read) = (says(FULL), says(READ));
    assert_eq!(ask_with("GET /v1/links/home", &[&read], "").status, 200);
    for (line, body) in [
        ("PATCH /v1/links/home", CHANGE),
        ("POST /v1/links", r#"{"name":"x","match":"any"}"#),
        ("DELETE /v1/links/home", ""),
        ("POST /v1/changes", r#"{"off":"home"}"#),
        ("POST /v1/changes?check=true", r#"{"off":"home"}"#),
    ] {
        let answer = ask_with(line, &[&read], body);
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
        assert!(answer.body.contains("read-only token"), "{answer:?}");
    }
    let socket = stage.socket();
    let delay = || ask(&socket, "GET /v1/links/home", "").json()["up"]["options"]["delay"].clone();
    assert_eq!(delay(), "5ms");
    let changed = ask_with("PATCH /v1/links/home", &[&full], CHANGE);
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(delay(), "9ms");
    // The socket's owner needs no token, but a given one is checked.
    let over_socket = |token: &str| {
        let text = request("PATCH /v1/links/home", &["Host: x", token], CHANGE);
        exchange(connect(&socket), &text).status
    };
    assert_eq!(over_socket(&full), 200);
    assert_eq!(over_socket(&read), 403);
    assert_eq!(over_socket(&says("nonsense")), 401);
}
