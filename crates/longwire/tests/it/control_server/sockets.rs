//! The Unix socket, from before the run until its end.

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::client::{ask, connect, request};
use super::{NETWORK, Stage};

#[test]
fn the_socket_is_private_and_removed_with_the_run() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let running = stage.start(NETWORK, &["--control", &socket]);
    let there = std::fs::metadata(&socket).expect("it is there");
    assert!(there.file_type().is_socket());
    assert_eq!(there.mode() & 0o777, 0o600);
    assert_eq!(ask(&socket, "GET /v1", "").json()["seed"], 5);
    // A second run at the same socket is refused without side effects.
    let second = stage.refused(&["--control", &socket]);
    assert_eq!(second.code, 2, "{second:?}");
    assert!(
        second.stderr.contains("another program listens there"),
        "{second:?}"
    );
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
    // An open stream ends with the run.
    let mut stream = connect(&socket);
    let line = "GET /v1/stats/stream?every=1h";
    stream
        .write_all(request(line, &["Host: x"], "").as_bytes())
        .expect("it is sent");
    let mut first = [0; 512];
    assert!(stream.read(&mut first).expect("the first event") > 0);
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("its end");
    assert!(rest.contains("event: end\n"), "{rest}");
    // The empty last chunk: the answer is complete.
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    let ended = running.end();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn two_runs_and_two_addresses_of_one() {
    let Some(stage) = Stage::new() else { return };
    let (a, b) = (stage.dir.file("a.sock"), stage.dir.file("b.sock"));
    let first = stage.start(NETWORK, &["--control", &a, "--control", &b]);
    assert_eq!(
        ask(&a, "PATCH /v1/links/home", r#"{"delay":"7ms"}"#).status,
        200
    );
    let delay = ask(&b, "GET /v1/links/home", "").json()["up"]["options"]["delay"].clone();
    assert_eq!(delay, "7ms");
    let Some(other) = Stage::new() else { return };
    let second = other.start(NETWORK, &["--control", &other.socket()]);
    let delay = ask(&other.socket(), "GET /v1/links/home", "").json();
    assert_eq!(delay["up"]["options"]["delay"], "5ms");
    for running in [first, second] {
        running.signal(Signal::SIGINT);
        assert_eq!(running.end().code, 0);
    }
}

#[test]
fn options_of_control_without_it_are_refused() {
    let Some(stage) = Stage::new() else { return };
    for option in [
        ["--control-limit", "5"],
        ["--metrics-links", "each"],
        ["--control-token-file", "x"],
        ["--control-read-token-file", "x"],
    ] {
        let refused = stage.refused(&option);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("--control"), "{refused:?}");
    }
}
