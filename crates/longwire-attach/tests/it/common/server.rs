//! A Unix-socket server that imitates Docker's API.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;

/// A running server, stopped on drop. A panic of its thread fails the test.
#[derive(Debug)]
pub struct Server {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    requests: Arc<Mutex<Vec<String>>>,
}

/// The response to a connection.
#[derive(Clone, Debug)]
pub enum Script {
    /// JSON by path, with additional headers. Chunked, as Docker sends long bodies.
    Json(&'static str, BTreeMap<String, Value>),
    /// Bytes repeated endlessly.
    Endless(&'static [u8]),
    /// Bytes, sent once.
    Bytes(&'static [u8]),
    /// Never responds.
    Silence,
}

impl Server {
    pub fn start(socket: &Path, script: Script) -> Server {
        std::fs::create_dir_all(socket.parent().expect("a directory")).expect("directories");
        let listener = UnixListener::bind(socket).expect("a socket");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (paths, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                // The client may have disconnected.
                let _ = answer(&stream.expect("a connection"), &script, &paths);
            }
        });
        Server {
            socket: socket.to_owned(),
            stop,
            thread: Some(thread),
            requests,
        }
    }

    /// Returns the paths of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("a list").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread. Fails if the thread has panicked.
        drop(UnixStream::connect(&self.socket));
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(ended, Some(Ok(()))),
            "the server panicked"
        );
    }
}

fn answer(stream: &UnixStream, script: &Script, paths: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    paths.lock().expect("a list").push(path.clone());
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut writer = stream;
    match script {
        Script::Json(headers, values) => match values.get(&path) {
            Some(value) => {
                let body = value.to_string();
                let (a, b) = body.split_at(body.len() / 2);
                write!(
                    writer,
                    "HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n\
                     {:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
                    a.len(),
                    b.len()
                )?;
            }
            None => write!(
                writer,
                "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{{}}"
            )?,
        },
        Script::Endless(bytes) => loop {
            writer.write_all(bytes)?;
        },
        Script::Bytes(bytes) => writer.write_all(bytes)?,
        Script::Silence => drop(reader.read_line(&mut line)?),
    }
    Ok(())
}
