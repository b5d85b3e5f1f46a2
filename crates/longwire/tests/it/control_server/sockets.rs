//! Access to the control API: through the Unix socket, from before the run until its end, and with
//! tokens, over TCP and over the socket.

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::client::{ask, connect, exchange, request};
use super::{NETWORK, Stage, TOKEN};
use crate::common::program::RunningProgram;

#[test]
fn the_socket_is_private_and_removed_with_the_run() {
    let Some(stage) = Stage::new() else { return };
    let (socket, running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let there = std::fs::metadata(&socket).expect("it is there");
    assert!(there.file_type().is_socket());
    assert_eq!(there.mode() & 0o777, 0o600);
    assert_eq!(stage.get("/v1")["seed"], 5);
    // A second run with the same socket is refused, without side effects.
    let control = format!("--control {socket}");
    stage
        .refuses(&control, "another program is listening on it")
        .exits(2);
    assert_eq!(stage.ask("GET /v1", "").status, 200);
    // An open stream ends with the run.
    let mut stream = connect(&socket);
    let text = request("GET /v1/stats/stream?every=1h", &["Host: x"], "");
    stream.write_all(text.as_bytes()).expect("it is sent");
    let mut first = [0; 512];
    assert!(stream.read(&mut first).expect("the first event") > 0);
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("its end");
    assert!(rest.contains("event: end\n"), "{rest}");
    // The empty last chunk marks a complete answer.
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    running.end().well();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn two_runs_and_two_addresses_of_one() {
    let (Some(stage), Some(other)) = (Stage::new(), Stage::new()) else {
        return;
    };
    let (a, b) = (stage.dir.file("a.sock"), stage.dir.file("b.sock"));
    let first = stage.start(NETWORK, &format!("--control {a} --control {b}"));
    let changed = ask(&a, "PATCH /v1/links/home", r#"{"delay":"7ms"}"#);
    assert_eq!(changed.status, 200);
    let home = ask(&b, "GET /v1/links/home", "").json();
    assert_eq!(home["up"]["options"]["delay"], "7ms");
    let second = other.start_at_socket(NETWORK);
    assert_eq!(other.home("delay"), "5ms");
    let _ = [first, second].map(RunningProgram::stop);
}

#[test]
fn options_of_control_without_it_are_refused() {
    let Some(stage) = Stage::new() else { return };
    for option in [
        "--control-limit 5",
        "--metrics-links each",
        "--control-token-file x",
        "--control-read-token-file x",
    ] {
        stage.refuses(option, "--control").exits(2);
    }
}

#[test]
fn tokens_say_who_may_read_and_who_may_change() {
    const READ: &str = "0123456789abcdef-read";
    const CHANGE: &str = r#"{"delay":"9ms"}"#;
    let Some(stage) = Stage::new() else { return };
    let read = stage.token_file("read", READ);
    let _running = stage.start_on_tcp(NETWORK, &format!("--control-read-token-file {read}"));
    assert_eq!(stage.ask_tcp("GET /v1/links/home", READ, "").status, 200);
    for (line, body) in [
        ("PATCH /v1/links/home", CHANGE),
        ("POST /v1/links", r#"{"name":"x","match":"any"}"#),
        ("DELETE /v1/links/home", ""),
        ("POST /v1/changes", r#"{"off":"home"}"#),
        ("POST /v1/changes?check=true", r#"{"off":"home"}"#),
    ] {
        let answer = stage.ask_tcp(line, READ, body);
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
        assert!(answer.body.contains("read-only token"), "{answer:?}");
    }
    assert_eq!(stage.home("delay"), "5ms");
    let changed = stage.ask_tcp("PATCH /v1/links/home", TOKEN, CHANGE);
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(stage.home("delay"), "9ms");
    // The socket's owner needs no token, but a token in a request is checked.
    for (token, status) in [(TOKEN, 200), (READ, 403), ("nonsense", 401)] {
        let token = format!("Authorization: Bearer {token}");
        let text = request("PATCH /v1/links/home", &["Host: x", &token], CHANGE);
        assert_eq!(exchange(connect(&stage.socket()), &text).status, status);
    }
}
