//! The client with servers that answer correctly, incorrectly, or not at all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{UnixSocket, UnixStream};
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::connection::connect_unix;
use super::*;

/// Starts a server that accepts one connection per answer, reads a request, and writes the parts of
/// the answer with pauses. Returns the address, and the requests at the end.
fn server(answers: Vec<Vec<&'static [u8]>>) -> (Address, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address: SocketAddr = listener.local_addr().expect("its address");
    let thread = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = vec![0; 65_536];
            let read = stream.read(&mut bytes).expect("a request");
            requests.push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            for part in answer {
                stream.write_all(part).expect("sent");
                std::thread::sleep(Duration::from_millis(30));
            }
        }
        requests
    });
    (Address::Tcp(address), thread)
}

/// Returns the client's result for this answer.
fn get(answer: Vec<&'static [u8]>) -> Result<Value, ClientError> {
    let (address, thread) = server(vec![answer]);
    let mut client = Client::new(address, Some(b"0123456789abcdef")).expect("a client");
    let got = client.get("/v1/links?match=%2A");
    let requests = thread.join().expect("the server ends");
    assert!(requests[0].starts_with("GET /v1/links?match=%2A HTTP/1.1\r\n"));
    assert!(requests[0].contains("authorization: Bearer 0123456789abcdef\r\n"));
    assert!(requests[0].contains("host: 127.0.0.1:"));
    got
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

#[test]
fn bodies_may_have_a_length_or_chunks() {
    let whole = get(vec![OK, b"content-length: 9\r\n\r\n", b"{\"a\"", b": 1} "]);
    assert_eq!(whole.expect("an answer"), json!({ "a": 1 }));
    let chunked: Vec<&[u8]> = vec![
        OK,
        b"transfer-encoding: chunked\r\n\r\n3\r\n{\"a",
        b"\r\n5;x=y\r\n\": 1}\r",
        b"\n0\r\n\r\n",
    ];
    assert_eq!(get(chunked).expect("an answer"), json!({ "a": 1 }));
}

#[test]
fn a_truncated_response_is_an_error() {
    let halves: [Vec<&[u8]>; 4] = [
        vec![],
        vec![b"HTTP/1.1 200 O"],
        vec![OK, b"content-length: 9\r\n\r\n{\"a\""],
        vec![OK, b"transfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n"],
    ];
    for half in halves {
        let shown = half.concat();
        let error = get(half).expect_err("truncated");
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let is_lost = matches!(error, ClientError::ConnectionLost { .. });
        assert!(is_lost, "{shown}: {error}");
        assert!(!error.is_usage());
    }
}

#[test]
fn other_servers_are_not_longwire() {
    let others: [Vec<&[u8]>; 3] = [
        vec![b"SSH-2.0-OpenSSH_9.2\r\n"],
        vec![OK, b"content-length: 6\r\n\r\n<html>"],
        vec![b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot found"],
    ];
    for other in others {
        let error = get(other).expect_err("not Longwire");
        assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
    }
}

#[test]
fn a_refusal_has_all_problems() {
    let refusal = get(vec![
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        br#"{"error":"set.a.rate: no; and 1 more","problems":[
        {"field":"set.a.rate","reason":"'fast' is not a rate","remedy":"write 5mbit"},
        {"field":"","reason":"no link fits","remedy":""}]}"#,
    ]);
    let error = refusal.expect_err("it is refused");
    assert!(error.is_usage());
    let problems = "set.a.rate: 'fast' is not a rate; write 5mbit\n  no link fits";
    let expected = format!("refused; nothing was changed:\n  {problems}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_unreachable_server_is_reported_with_a_remedy() {
    let missing = Address::Unix("/nowhere/at/all.sock".into());
    let mut client = Client::new(missing, None).expect("a client");
    let error = client.get("/v1").expect_err("no server");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    let text = error.to_string();
    let remedy = "longwire run network.toml --control /nowhere";
    assert!(text.contains(remedy), "{text}");
    assert!(!error.is_usage());
}

#[test]
fn a_closed_connection_is_reopened() {
    let answer = || vec![OK, b"content-length: 2\r\n\r\n{}".as_slice()];
    let (address, thread) = server(vec![answer(), answer()]);
    let mut client = Client::new(address, None).expect("a client");
    client.get("/v1").expect("the first answer");
    // The server closes the connection after each response.
    std::thread::sleep(Duration::from_millis(200));
    let second = client.post("/v1/changes", &json!({ "on": ["a"] }));
    second.expect("the second");
    let requests = thread.join().expect("the server ends");
    assert!(requests[1].starts_with("POST /v1/changes"));
    assert!(requests[1].ends_with("{\"on\":[\"a\"]}"), "{}", requests[1]);
}

const EVENTS: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Returns the first `most` events of a stream, and its end.
fn stream(answer: Vec<&'static [u8]>, most: usize) -> (Vec<Value>, Result<StreamEnd, ClientError>) {
    let (address, thread) = server(vec![answer]);
    let mut client = Client::new(address, None).expect("a client");
    let mut events = Vec::new();
    let stop = AtomicBool::new(false);
    let ended = client.stream("/v1/stats/stream", &stop, |event| {
        events.push(event);
        Ok::<_, ClientError>(if events.len() < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    });
    thread.join().expect("the server ends");
    (events, ended)
}

#[test]
fn both_sides_can_end_a_stream() {
    const TWO: &[u8] = b"12\r\ndata: 1\n\ndata: 2\n\n\r\n";
    let (events, ended) = stream(vec![EVENTS, TWO, b"0\r\n\r\n"], 9);
    assert_eq!(events, [json!(1), json!(2)]);
    assert!(matches!(ended, Ok(StreamEnd::Closed)), "{ended:?}");
    let (events, ended) = stream(vec![EVENTS, TWO], 1);
    assert_eq!(events, [json!(1)]);
    assert!(matches!(ended, Ok(StreamEnd::Stopped)), "{ended:?}");
    let (events, ended) = stream(vec![EVENTS, TWO], 9);
    assert_eq!(events.len(), 2);
    let is_lost = matches!(ended, Err(ClientError::ConnectionLost { .. }));
    assert!(is_lost, "{ended:?}");
    let end: &[u8] = b"15\r\nevent: end\ndata: {}\n\n\r\n";
    let (_, ended) = stream(vec![EVENTS, end], 9);
    assert!(matches!(ended, Ok(StreamEnd::Closed)), "{ended:?}");
}

#[test]
fn a_refused_stream_reports_the_reason() {
    let late: &[u8] = b"29\r\nevent: error\ndata: {\"error\":\"too many\"}\n\n\r\n";
    let (_, ended) = stream(vec![EVENTS, late], 9);
    let error = ended.expect_err("it is refused");
    assert!(error.is_usage());
    assert!(error.to_string().contains("too many"), "{error}");
    let (_, ended) = stream(vec![OK, b"content-length: 2\r\n\r\n{}"], 9);
    let error = ended.expect_err("not an event stream");
    assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
}

#[test]
fn a_silent_stream_can_be_stopped() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes).expect("a request");
        stream.write_all(EVENTS).expect("sent");
        // Read until the client disconnects.
        while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
    });
    let stop = AtomicBool::new(false);
    let mut client = Client::new(Address::Tcp(address), None).expect("a client");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        client.stream("/v1/stats/stream", &stop, |_| {
            Ok::<_, ClientError>(ControlFlow::Continue(()))
        })
    });
    assert!(matches!(ended, Ok(StreamEnd::Stopped)), "{ended:?}");
    drop(client);
    server.join().expect("the server ends");
}

#[test]
fn a_request_has_a_time_limit() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut client = Client::new(Address::Tcp(address), None).expect("a client");
    client.set_time_limit(Duration::from_millis(100));
    let error = client.delete("/v1/attachments/web").expect_err("no answer");
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}

#[test]
fn a_full_accept_queue_is_awaited() {
    let path = std::env::temp_dir().join(format!("longwire-client-{}", std::process::id()));
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let socket = UnixSocket::new_stream().expect("a socket");
        socket.bind(&path).expect("a free path");
        let listener = socket.listen(1).expect("a listener");
        let mut queued = Vec::new();
        let full = loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => queued.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
        let accepted = async {
            sleep(Duration::from_millis(50)).await;
            listener.accept().await
        };
        let (connected, accepted) = tokio::join!(connect_unix(&path), accepted);
        std::fs::remove_file(&path).expect("it exists");
        connected.expect("a connection");
        accepted.expect("a client");
    });
}
