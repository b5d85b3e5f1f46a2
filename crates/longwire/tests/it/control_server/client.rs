//! A minimal HTTP client that sends a test's text unchanged.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use longwire_io::net::NetNamespace;
use longwire_testbed::support::within;
use serde_json::Value;

/// Read timeout. An answer about many links is slow on a busy machine; only a hang exceeds this.
pub const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Headers in lower case, one per line.
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Formats a request from method and target, headers and body.
pub fn request(line: &str, headers: &[&str], body: &str) -> String {
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}");
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

/// Connects to a Unix socket.
pub fn connect(path: &str) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

/// Sends a request over a Unix socket.
pub fn ask(path: &str, line: &str, body: &str) -> Answer {
    exchange(connect(path), &request(line, &["Host: x"], body))
}

/// Sends the text of a request over TCP from a namespace.
pub fn ask_tcp(namespace: &NetNamespace, address: &str, text: &str) -> Answer {
    let stream = within(namespace, || TcpStream::connect(address));
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    exchange(stream, text)
}

/// Sends a request and reads the whole response.
pub fn exchange(mut stream: impl Read + Write, text: &str) -> Answer {
    // A server that refuses a request may stop reading.
    let _ = stream.write_all(text.as_bytes());
    let mut bytes = Vec::new();
    let mut part = [0; 65_536];
    while let Ok(read @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
    }
    // The page is compressed, but its text is not needed.
    answer(&String::from_utf8_lossy(&bytes))
}

fn answer(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no answer: {text}")),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}
