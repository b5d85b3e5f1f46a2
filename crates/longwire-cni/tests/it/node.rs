//! A scripted node that records requests.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use longwire_testbed::support::Folder;
use serde_json::Value;

/// Method with path, and the body or null.
pub type Request = (String, Value);

/// Maps a request to a status and a body.
type Script = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;

pub struct FakeNode {
    folder: Folder,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl FakeNode {
    /// Starts a node; its thread ends with the test process.
    pub fn start(script: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.file("node.sock")).expect("a socket");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (Arc::clone(&requests), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                thread::spawn(move || serve(stream.expect("a connection"), &kept, &*script));
            }
        });
        FakeNode { folder, requests }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("node.sock")
    }

    /// Takes the recorded requests.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().expect("a list"))
    }
}

fn serve(mut stream: UnixStream, requests: &Mutex<Vec<Request>>, script: &Script) {
    while let Some((line, body)) = read(&mut stream) {
        let (status, answer) = script(&line, &body);
        requests.lock().expect("a list").push((line, body));
        let text = match answer {
            Value::Null => String::new(),
            answer => answer.to_string(),
        };
        let length = text.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}"
        );
    }
}

/// Reads a request; `None` at the end.
fn read(stream: &mut UnixStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let line = head.lines().next().expect("a line");
    let line = line.trim_end_matches(" HTTP/1.1").to_owned();
    let lengths = head.lines().filter_map(|line| line.split_once(": "));
    let length = lengths
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .find_map(|(_, length)| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("a body");
    Some((line, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
