//! Requests that a node relays to a slow run of a network.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use longwire_network::Controller;
use longwire_testbed::support::Folder;
use serde_json::Value;

use super::{socket, unix};
use crate::api::WORK_MAX;
use crate::bind;
use crate::server::CONNECTIONS_MAX;
use longwire_client::node::{
    AttachmentSpec, AttachmentView, Detached, NetworkEnded, NetworkSpec, NetworkView,
};

use crate::node::{Attachments, Networks, NodeRefusal};

/// A node with one network, whose run has this control socket.
struct OneNetwork(PathBuf);

impl Attachments for Arc<OneNetwork> {
    fn list(&self) -> Vec<AttachmentView> {
        Vec::new()
    }

    fn get(&self, _: &str) -> Option<AttachmentView> {
        None
    }

    fn put(&self, _: &str, _: &AttachmentSpec) -> Result<(bool, AttachmentView), NodeRefusal> {
        Err(NodeRefusal::Failed("not here".to_owned()))
    }

    fn remove(&self, _: &str) -> Option<Detached> {
        None
    }

    fn controller(&self, _: &str) -> Option<Arc<Controller>> {
        None
    }

    fn networks(&self) -> Option<Arc<dyn Networks>> {
        Some(Arc::clone(self) as Arc<dyn Networks>)
    }
}

impl Networks for OneNetwork {
    fn list(&self) -> Vec<NetworkView> {
        Vec::new()
    }

    fn get(&self, _: &str) -> Option<NetworkView> {
        None
    }

    fn put(&self, _: &str, _: &NetworkSpec) -> Result<(bool, NetworkView), NodeRefusal> {
        Err(NodeRefusal::Failed("not here".to_owned()))
    }

    fn remove(&self, _: &str) -> Option<NetworkEnded> {
        None
    }

    fn socket(&self, _: &str) -> Option<PathBuf> {
        Some(self.0.clone())
    }

    fn last_report(&self, _: &str) -> Option<Value> {
        None
    }
}

/// Relayed requests take permits, and their connections are not evicted.
#[test]
fn relayed_requests_take_permits() {
    let folder = Folder::new();
    let run = folder.path().join("run.sock");
    let listener = UnixListener::bind(&run).expect("a socket");
    // The run answers only after a signal.
    let (answer, told) = channel::<()>();
    let (here, all_here) = channel::<()>();
    thread::spawn(move || {
        let mut streams = Vec::new();
        for stream in listener.incoming().take(WORK_MAX) {
            streams.push(stream.expect("a connection"));
        }
        let _ = here.send(());
        let _ = told.recv();
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for stream in &mut streams {
            let _ = stream.write_all(text.as_bytes());
        }
    });
    let path = socket(&folder);
    let bound = bind(&unix(&path)).unwrap_or_else(|error| panic!("{error}"));
    let node: Arc<dyn Attachments> = Arc::new(Arc::new(OneNetwork(run)));
    let _server = bound.serve_node(node).expect("a server");
    let ask = || {
        let mut stream = UnixStream::connect(&path).expect("a connection");
        let request = "GET /v1/networks/mesh/stats HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    };
    let head = |stream: &mut UnixStream, timeout: Duration| {
        stream.set_read_timeout(Some(timeout)).expect("a limit");
        let mut bytes = [0; 12];
        let read = stream.read(&mut bytes).map_err(|error| error.kind());
        read.map(|length| String::from_utf8_lossy(&bytes[..length]).into_owned())
    };
    let mut waiting: Vec<UnixStream> = (0..WORK_MAX).map(|_| ask()).collect();
    all_here.recv().expect("they are passed on");
    let refused = head(&mut ask(), Duration::from_secs(30));
    assert_eq!(refused.as_deref(), Ok("HTTP/1.1 503"));
    // More connections than the limit, so idle ones are evicted. Both ends together stay below
    // 1,024 descriptors, a common limit of a process.
    let idle = 0..CONNECTIONS_MAX - WORK_MAX + 64;
    let idle: Vec<UnixStream> = idle
        .map(|_| UnixStream::connect(&path).expect("a connection"))
        .collect();
    let refused = head(&mut ask(), Duration::from_secs(30));
    assert_eq!(refused.as_deref(), Ok("HTTP/1.1 503"));
    drop(idle);
    for stream in &mut waiting {
        let nothing = head(stream, Duration::from_millis(1));
        assert_eq!(nothing, Err(ErrorKind::WouldBlock));
    }
    answer.send(()).expect("it waits");
    for stream in &mut waiting {
        let answered = head(stream, Duration::from_secs(30));
        assert_eq!(answered.as_deref(), Ok("HTTP/1.1 200"));
    }
}
