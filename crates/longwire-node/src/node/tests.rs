//! Changes of an attachment whose interface disappears before the node notices.

use std::process::{Child, Command};

use longwire_io::net::link_delete;
use longwire_testbed::support::{Folder, Stations, skip};
use serde_json::{Value, json};

use super::*;

/// A process that is killed at the end of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A failed change is not stored, and leaves the attachment unchanged.
#[test]
fn a_failed_selection_changes_nothing() {
    let stations = match Stations::new(1) {
        Ok(stations) => stations,
        Err(error) => return skip(error).unwrap_or_default(),
    };
    let started = stations.hosts[0].run(|| Command::new("sleep").arg("1000").spawn());
    let process = Ended(started.expect("a namespace").expect("a process"));
    let folder = Folder::new();
    // This node has no threads that check interfaces.
    let node = NodeShared {
        config: NodeConfig::in_directory(folder.path()),
        store: Store::open(folder.path()).expect("a directory"),
        entries: Mutex::default(),
        restoring: AtomicUsize::new(0),
    };
    let put = |to: &str, delay: &str| {
        let body = json!({
            "target": { "pid": process.0.id() }, "interface": Stations::DEVICE,
            "to": [to], "link": { "delay": delay },
        });
        let spec = serde_json::from_value(body).expect("an attachment");
        node.put("web", &AttachmentRequest::read(&spec)?)
    };
    match put("10.0.0.0/8", "1ms") {
        Err(NodeRefusal::Failed(error)) => return skip(error).unwrap_or_default(),
        made => made.expect("it is attached"),
    };
    let seen = || {
        let entry = Arc::clone(&node.entries()["web"]);
        let state = entry.state();
        let link = Arc::clone(&state.link.as_ref().expect("a link").controller);
        drop(state);
        let delay = link.link("eth0").expect("a link").up.options["delay"].clone();
        let kept = std::fs::read_to_string(folder.path().join("web.json")).expect("a file");
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        (delay, kept["spec"].clone(), json!(entry.view().spec))
    };
    let before = seen();
    let removed = stations.hosts[0].run(|| link_delete(Stations::DEVICE));
    removed.expect("a namespace").expect("it is removed");
    let refused = put("10.1.0.0/16", "2ms").expect_err("there is no interface");
    assert!(matches!(refused, NodeRefusal::Failed(_)), "{refused:?}");
    assert_eq!(seen(), before);
}
