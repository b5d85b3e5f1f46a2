//! Resources that one client could exhaust: connections, memory, request rate, streams.
//! Other clients still get responses.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::client::{ask, ask_tcp, connect, exchange, request};
use super::{NETWORK, Stage};
use crate::common::process::RunningProgram;

const TOKEN: &str = "0123456789abcdef-full";
const ADDRESS: &str = "127.0.0.1:9470";

/// Maximum connections per address, and streams in total (docs/control.md).
const CONNECTIONS: usize = 256;
const STREAMS: usize = 64;

/// Timeout of the server for an incomplete request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Starts a network with TCP and a socket.
fn on_tcp(stage: &Stage, more: &[&str]) -> RunningProgram {
    let token = stage.token_file("token", TOKEN);
    let (tcp, socket) = (format!("tcp:{ADDRESS}"), stage.socket());
    let mut arguments = vec!["--control", &tcp, "--control-token-file", &token];
    arguments.extend(["--control", &socket]);
    arguments.extend(more);
    stage.start(NETWORK, &arguments)
}

/// Returns the status of a TCP request with this token.
fn status(stage: &Stage, line: &str, token: &str, body: &str) -> u16 {
    let headers = [
        format!("Host: {ADDRESS}"),
        format!("Authorization: Bearer {token}"),
    ];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    ask_tcp(&stage.namespace, ADDRESS, &request(line, &headers, body)).status
}

/// Returns a field of /proc/PID/status, in KiB.
fn memory(running: &mut RunningProgram, field: &str) -> u64 {
    let id = running.child().id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn idle_connections_give_way_to_others() {
    let Some(stage) = Stage::new() else { return };
    let _running = on_tcp(&stage, &[]);
    let connect = || stage.namespace.run(|| TcpStream::connect(ADDRESS));
    let connect = || connect().expect("it is entered").expect("it listens");
    let mut idle: Vec<TcpStream> = (0..CONNECTIONS + 40).map(|_| connect()).collect();
    let began = Instant::now();
    assert_eq!(status(&stage, "GET /v1", TOKEN, ""), 200);
    // The server closes an idle connection after 10 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    // The oldest connections have been closed.
    let first = &mut idle[0];
    first
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a timeout");
    assert_eq!(first.read(&mut [0; 1]).ok(), Some(0), "it is closed");
}

#[test]
fn a_stopped_run_does_not_take_its_clients_for_slow() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let running = stage.start(NETWORK, &["--control", &socket]);
    let text = request("GET /v1", &["Host: x"], "");
    let (first, rest) = text.split_at(20);
    let begun: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = connect(&socket);
            stream.write_all(first.as_bytes()).expect("it is sent");
            stream
        })
        .collect();
    // The server has accepted them by now and waits for the rest.
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
    running.signal(Signal::SIGSTOP);
    for mut stream in &begun {
        stream.write_all(rest.as_bytes()).expect("it is sent");
    }
    std::thread::sleep(HEAD_TIME + Duration::from_secs(1));
    running.signal(Signal::SIGCONT);
    for stream in begun {
        assert_eq!(exchange(stream, "").status, 200);
    }
}

#[test]
fn a_stream_does_not_give_way_to_idle_connections() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let mut stream = stream(&socket, "every=50ms");
    let _idle: Vec<UnixStream> = (0..CONNECTIONS + 40).map(|_| connect(&socket)).collect();
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
    let mut part = [0; 4096];
    for _ in 0..10 {
        assert!(stream.read(&mut part).expect("an event") > 0);
    }
}

#[test]
fn who_has_no_token_uses_up_no_requests_of_who_has_one() {
    let Some(stage) = Stage::new() else { return };
    let _running = on_tcp(&stage, &["--control-limit", "5"]);
    let mut refused = Vec::new();
    for _ in 0..30 {
        refused.push(status(&stage, "GET /v1", "0123456789abcdef-none", ""));
    }
    assert!(refused.contains(&401), "{refused:?}");
    assert!(refused.contains(&429), "{refused:?}");
    assert_eq!(status(&stage, "GET /v1", TOKEN, ""), 200);
}

#[test]
fn large_bodies_leave_no_memory_behind_and_take_little_together() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let mut running = stage.start(NETWORK, &["--control", &socket]);
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
    let before = memory(&mut running, "VmRSS:");
    let name = "x".repeat(15 << 20);
    // Invalid JSON, an unknown link, and a valid change with a long remark.
    let bodies = [
        format!("{{\"off\": [\"{name}\""),
        format!("{{\"off\": [\"{name}\"]}}"),
        format!("{}{{\"on\": [\"home\"]}}", " ".repeat(15 << 20)),
    ];
    let bodies = &bodies;
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..60)
            .map(|number| {
                let socket = &socket;
                scope.spawn(move || ask(socket, "POST /v1/changes", &bodies[number % 3]).status)
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("an answer"))
            .collect()
    });
    // Some clients must retry; the rest get responses.
    assert!(statuses.contains(&400), "{statuses:?}");
    assert!(
        statuses
            .iter()
            .all(|status| [200, 400, 503].contains(status)),
        "{statuses:?}"
    );
    let most = memory(&mut running, "VmHWM:");
    assert!(
        most < before + (400 << 10),
        "{before} KiB before, {most} KiB at most"
    );
    let began = Instant::now();
    let mut left = memory(&mut running, "VmRSS:");
    while left > before + (48 << 10) && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        left = memory(&mut running, "VmRSS:");
    }
    assert!(
        left < before + (48 << 10),
        "{before} KiB before, {left} KiB after"
    );
}

#[test]
fn bodies_that_do_not_end_hold_up_no_small_change() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let length = 15 << 20;
    let head = format!("POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let part = " ".repeat(length - 1);
    let waiting: Vec<UnixStream> = (0..12)
        .map(|_| {
            let mut stream = connect(&socket);
            stream
                .set_write_timeout(Some(Duration::from_secs(5)))
                .expect("a timeout");
            // A refused client's data is not read.
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(part.as_bytes());
            stream
        })
        .collect();
    let answer = ask(&socket, "PATCH /v1/links/home", r#"{"delay": "8ms"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(waiting);
}

/// Opens a stream of events and reads the first.
fn stream(socket: &str, query: &str) -> UnixStream {
    let mut stream = connect(socket);
    let line = format!("GET /v1/stats/stream?{query}");
    stream
        .write_all(request(&line, &["Host: x"], "").as_bytes())
        .expect("it is sent");
    let mut first = [0; 64];
    assert!(stream.read(&mut first).expect("an answer") > 0);
    assert!(
        first.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&first)
    );
    stream
}

#[test]
fn unread_streams_block_nothing() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let mut running = stage.start(NETWORK, &["--control", &socket]);
    let streams: Vec<UnixStream> = (0..STREAMS)
        .map(|_| stream(&socket, "every=50ms&links=each"))
        .collect();
    let before = memory(&mut running, "VmRSS:");
    assert_eq!(ask(&socket, "GET /v1/stats/stream", "").status, 503);
    for _ in 0..20 {
        assert_eq!(ask(&socket, "GET /v1/links", "").status, 200);
        let answer = ask(&socket, "PATCH /v1/links/home", r#"{"delay": "8ms"}"#);
        assert_eq!(answer.status, 200, "{answer:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = memory(&mut running, "VmRSS:");
    assert!(
        after < before + (32 << 10),
        "{before} KiB, then {after} KiB"
    );
    drop(streams);
}

#[test]
fn half_closed_connections_are_answered() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    for round in 0..20 {
        let body = format!(r#"{{"delay": "{round}ms"}}"#);
        for (line, body) in [
            ("PATCH /v1/links/home", body.as_str()),
            ("GET /v1/links", ""),
        ] {
            let mut stream = connect(&socket);
            let text = request(line, &["Host: x"], body);
            stream.write_all(text.as_bytes()).expect("it is sent");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200"), "{line}: {answer}");
        }
    }
    // A truncated request has no effect.
    let mut stream = connect(&socket);
    let cut = "PATCH /v1/links/home HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{\"delay\"";
    stream.write_all(cut.as_bytes()).expect("it is sent");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an end");
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    let home = ask(&socket, "GET /v1/links/home", "").json();
    assert_eq!(home["up"]["options"]["delay"], "19ms", "{home}");
}

#[test]
fn half_closed_streams_end() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let streams: Vec<UnixStream> = (0..STREAMS)
        .map(|_| {
            let stream = stream(&socket, "every=1h");
            stream.shutdown(Shutdown::Write).expect("it is open");
            stream
        })
        .collect();
    // Their slots are free again, though this side still reads.
    let began = Instant::now();
    while ask_head(&socket) == 503 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "no place is freed"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(streams);
}

/// Opens a stream that is not read; returns the status.
fn ask_head(socket: &str) -> u16 {
    let mut stream = connect(socket);
    stream
        .write_all(request("GET /v1/stats/stream", &["Host: x"], "").as_bytes())
        .expect("it is sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    String::from_utf8_lossy(&first[9..])
        .parse()
        .expect("a status")
}

#[test]
fn pipelined_requests_with_unread_responses_block_nothing() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let mut running = stage.start(NETWORK, &["--control", &socket]);
    let before = memory(&mut running, "VmRSS:");
    let one = "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000);
    let many: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&socket);
            stream.set_nonblocking(true).expect("a mode");
            let _ = stream.write(one.as_bytes());
            stream
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(ask(&socket, "GET /v1/links", "").status, 200);
        std::thread::sleep(Duration::from_millis(50));
    }
    let after = memory(&mut running, "VmRSS:");
    assert!(
        after < before + (64 << 10),
        "{before} KiB, then {after} KiB"
    );
    drop(many);
}

#[test]
fn a_head_without_end_is_refused() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let long = format!("X-Long: {}", "y".repeat(100 << 10));
    let answer = exchange(
        connect(&socket),
        &request("GET /v1", &["Host: x", &long], ""),
    );
    assert_eq!(answer.status, 431, "{answer:?}");
    let many: Vec<String> = (0..200).map(|number| format!("X-{number}: y")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.push("Host: x");
    let answer = exchange(connect(&socket), &request("GET /v1", &many, ""));
    assert_eq!(answer.status, 431, "{answer:?}");
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
}
