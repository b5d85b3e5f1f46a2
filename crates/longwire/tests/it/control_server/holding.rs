//! Resources that one client could exhaust: connections, memory, request rate and streams. The
//! server still answers other clients.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longwire_testbed::support::within;
use nix::sys::signal::Signal;

use super::client::{ask, connect, exchange, request};
use super::{ADDRESS, NETWORK, Stage, TOKEN};
use crate::common::program::{eventually, memory_of};

/// Maximum number of connections per address, and of streams in total (docs/control.md).
const CONNECTIONS: usize = 256;
const STREAMS: usize = 64;

/// Maximum time until the resources of disconnected clients are free.
const RELEASE_MAX: Duration = Duration::from_secs(20);

/// Server timeout for an incomplete request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Opens a connection and sends this text.
fn sending(socket: &str, text: &str) -> UnixStream {
    let mut stream = connect(socket);
    stream.write_all(text.as_bytes()).expect("it is sent");
    stream
}

#[test]
fn idle_connections_give_way_to_others() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_on_tcp(NETWORK, "");
    let connect = || within(&stage.namespace, || TcpStream::connect(ADDRESS));
    let mut idle: Vec<TcpStream> = (0..CONNECTIONS + 40).map(|_| connect()).collect();
    let began = Instant::now();
    assert_eq!(stage.ask_tcp("GET /v1", TOKEN, "").status, 200);
    // A slot is free before the server closes idle connections, after 10 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    // The oldest connections have been closed.
    let first = &mut idle[0];
    let timeout = Some(Duration::from_secs(5));
    first.set_read_timeout(timeout).expect("a timeout");
    assert_eq!(first.read(&mut [0; 1]).ok(), Some(0), "it is closed");
}

#[test]
fn a_stopped_run_does_not_take_its_clients_for_slow() {
    let Some(stage) = Stage::new() else { return };
    let (socket, running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let text = request("GET /v1", &["Host: x"], "");
    let (first, rest) = text.split_at(20);
    let begun: Vec<UnixStream> = (0..8).map(|_| sending(&socket, first)).collect();
    // The server has accepted the earlier connections, and waits for the rest of their requests.
    assert_eq!(stage.ask("GET /v1", "").status, 200);
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
    let (socket, _running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let mut stream = stream(&socket, "every=50ms");
    let _idle: Vec<UnixStream> = (0..CONNECTIONS + 40).map(|_| connect(&socket)).collect();
    assert_eq!(stage.ask("GET /v1", "").status, 200);
    for _ in 0..10 {
        assert!(stream.read(&mut [0; 4096]).expect("an event") > 0);
    }
}

#[test]
fn clients_without_a_token_use_up_no_requests_of_others() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_on_tcp(NETWORK, "--control-limit 5");
    let none = "0123456789abcdef-none";
    let refused: Vec<u16> = (0..30)
        .map(|_| stage.ask_tcp("GET /v1", none, "").status)
        .collect();
    assert!(
        refused.contains(&401) && refused.contains(&429),
        "{refused:?}"
    );
    assert_eq!(stage.ask_tcp("GET /v1", TOKEN, "").status, 200);
}

#[test]
fn large_bodies_leave_no_memory_behind_and_take_little_together() {
    let Some(stage) = Stage::new() else { return };
    let (socket, running) = (stage.socket(), stage.start_at_socket(NETWORK));
    assert_eq!(stage.ask("GET /v1", "").status, 200);
    let before = memory_of(running.id(), "VmRSS");
    let name = "x".repeat(15 << 20);
    // Invalid JSON, an unknown link, and a valid change after 15 MiB of spaces.
    let bodies = &[
        format!("{{\"off\": [\"{name}\""),
        format!("{{\"off\": [\"{name}\"]}}"),
        format!("{}{{\"on\": [\"home\"]}}", " ".repeat(15 << 20)),
    ];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let socket = &socket;
            scope.spawn(move || ask(socket, "POST /v1/changes", &bodies[number % 3]).status)
        };
        let threads: Vec<_> = (0..60).map(ask).collect();
        let threads = threads.into_iter();
        threads
            .map(|thread| thread.join().expect("an answer"))
            .collect()
    });
    // The server may ask clients to retry (503), but it must reject some invalid bodies (400).
    assert!(statuses.contains(&400), "{statuses:?}");
    let known = statuses
        .iter()
        .all(|status| [200, 400, 503].contains(status));
    assert!(known, "{statuses:?}");
    let most = memory_of(running.id(), "VmHWM");
    assert!(
        most < before + (400 << 10),
        "{before} KiB before, {most} KiB at most"
    );
    let began = Instant::now();
    eventually("memory is left behind", || {
        memory_of(running.id(), "VmRSS") < before + (48 << 10)
    });
    assert!(began.elapsed() < RELEASE_MAX);
}

#[test]
fn bodies_that_do_not_end_hold_up_no_small_change() {
    let Some(stage) = Stage::new() else { return };
    let (socket, _running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let length = 15 << 20;
    let head = format!("POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let part = " ".repeat(length - 1);
    let begin = |_| {
        let mut stream = connect(&socket);
        let timeout = Some(Duration::from_secs(5));
        stream.set_write_timeout(timeout).expect("a timeout");
        // The server does not read the data of a refused client.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(part.as_bytes());
        stream
    };
    let _waiting: Vec<UnixStream> = (0..12).map(begin).collect();
    let answer = stage.ask("PATCH /v1/links/home", r#"{"delay": "8ms"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Opens an event stream and reads its first event.
fn stream(socket: &str, query: &str) -> UnixStream {
    let line = format!("GET /v1/stats/stream?{query}");
    let mut stream = sending(socket, &request(&line, &["Host: x"], ""));
    let mut first = [0; 64];
    assert!(stream.read(&mut first).expect("an answer") > 0);
    let first = String::from_utf8_lossy(&first);
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    stream
}

#[test]
fn unread_streams_block_nothing() {
    let Some(stage) = Stage::new() else { return };
    let (socket, running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let open = |_| stream(&socket, "every=50ms&links=each");
    let _streams: Vec<UnixStream> = (0..STREAMS).map(open).collect();
    let before = memory_of(running.id(), "VmRSS");
    assert_eq!(stage.ask("GET /v1/stats/stream", "").status, 503);
    for _ in 0..20 {
        assert_eq!(stage.ask("GET /v1/links", "").status, 200);
        let answer = stage.ask("PATCH /v1/links/home", r#"{"delay": "8ms"}"#);
        assert_eq!(answer.status, 200, "{answer:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = memory_of(running.id(), "VmRSS");
    assert!(
        after < before + (32 << 10),
        "{before} KiB, then {after} KiB"
    );
}

/// Closes the sending direction of a connection; returns the answer.
fn half_closed(socket: &str, text: &str) -> String {
    let mut stream = sending(socket, text);
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn half_closed_connections_are_answered() {
    let Some(stage) = Stage::new() else { return };
    let (socket, _running) = (stage.socket(), stage.start_at_socket(NETWORK));
    for round in 0..20 {
        let body = format!(r#"{{"delay": "{round}ms"}}"#);
        for (line, body) in [("PATCH /v1/links/home", &*body), ("GET /v1/links", "")] {
            let answer = half_closed(&socket, &request(line, &["Host: x"], body));
            assert!(answer.starts_with("HTTP/1.1 200"), "{line}: {answer}");
        }
    }
    // A truncated request has no effect.
    let cut = "PATCH /v1/links/home HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{\"delay\"";
    let answer = half_closed(&socket, cut);
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(stage.home("delay"), "19ms");
}

#[test]
fn half_closed_streams_end() {
    let Some(stage) = Stage::new() else { return };
    let (socket, _running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let open = |_| {
        let stream = stream(&socket, "every=1h");
        stream.shutdown(Shutdown::Write).expect("it is open");
        stream
    };
    let _streams: Vec<UnixStream> = (0..STREAMS).map(open).collect();
    // The slots of streams closed by the server are free again, although this side still reads.
    let began = Instant::now();
    eventually("no slot is freed", || {
        let mut stream = sending(&socket, &request("GET /v1/stats/stream", &["Host: x"], ""));
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("an answer");
        first[9..] != *b"503"
    });
    assert!(began.elapsed() < RELEASE_MAX);
}

#[test]
fn pipelined_requests_with_unread_responses_block_nothing() {
    let Some(stage) = Stage::new() else { return };
    let (socket, running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let before = memory_of(running.id(), "VmRSS");
    let one = "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000);
    let send = |_| {
        let mut stream = connect(&socket);
        stream.set_nonblocking(true).expect("a mode");
        let _ = stream.write(one.as_bytes());
        stream
    };
    let _many: Vec<UnixStream> = (0..20).map(send).collect();
    for _ in 0..10 {
        assert_eq!(stage.ask("GET /v1/links", "").status, 200);
        std::thread::sleep(Duration::from_millis(50));
    }
    let after = memory_of(running.id(), "VmRSS");
    assert!(
        after < before + (64 << 10),
        "{before} KiB, then {after} KiB"
    );
}

#[test]
fn a_head_without_end_is_refused() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    let long = vec![format!("X-Long: {}", "y".repeat(100 << 10))];
    let many = (0..200).map(|number| format!("X-{number}: y")).collect();
    for headers in [long, many] {
        let mut headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        headers.push("Host: x");
        let text = request("GET /v1", &headers, "");
        let answer = exchange(connect(&stage.socket()), &text);
        assert_eq!(answer.status, 431, "{answer:?}");
    }
    assert_eq!(stage.ask("GET /v1", "").status, 200);
}
