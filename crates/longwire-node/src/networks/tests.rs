//! Networks in a directory on a full disk or modified by other programs. The network process does
//! nothing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_client::node::{NetworkSpec, NetworkView};
use longwire_control::node::{Networks, NodeRefusal};
use longwire_testbed::support::{Folder, fill_disk, with_small_disk};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

use super::*;
use crate::pool::Pool;

struct Site {
    networks: NodeNetworks,
    said: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(directory: &Path) -> Site {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&said);
        let idle = |_: &NetworkFiles, _: &NetworkRun| {
            let mut command = Command::new("sleep");
            command.arg("1000");
            command
        };
        let notify = Arc::new(move |name: &str, sentence: String| {
            let mut heard = heard.lock().expect("no panic");
            heard.push(format!("{name} {sentence}"));
        });
        let pool = Arc::new(Pool::new().expect("threads"));
        let networks = NodeNetworks::start(directory.to_owned(), Arc::new(idle), notify, pool);
        Site { networks, said }
    }

    /// Waits for the process of a network; returns its PID.
    fn pid(&self, name: &str) -> u32 {
        let began = Instant::now();
        loop {
            if let Some(pid) = self.networks.get(name).and_then(|view| view.pid) {
                return pid;
            }
            let view: Option<NetworkView> = self.networks.get(name);
            assert!(began.elapsed() < Duration::from_secs(30), "{view:?}");
            sleep(Duration::from_millis(5));
        }
    }
}

/// Files of a running network.
const KEPT: [&str; 4] = ["log", "network.key", "network.toml", "spec.json"];

/// Returns a network whose link has this delay. Each of its files fills two pages.
fn spec(delay: &str) -> NetworkSpec {
    let file = format!(
        "# {}\n[ports]\na = \"null\"\nb = \"null\"\n[[link]]\nname = \"x\"\ndelay = \"{delay}\"\n",
        "-".repeat(5000)
    );
    serde_json::from_value(json!({ "file": file, "key": "0".repeat(64) })).expect("a network")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn text(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).expect("it is there")
}

/// A request that cannot be stored changes nothing, no matter how much space is free.
#[test]
fn a_full_disk_changes_nothing() {
    with_small_disk(|disk| {
        let site = Site::start(disk);
        let (old, new) = (spec("1ms"), spec("2ms"));
        site.networks.put("mesh", &old).expect("there is room");
        let pid = site.pid("mesh");
        let mesh = disk.join("mesh");
        let ballast = disk.join("ballast");
        fill_disk(&ballast);
        let full = fs::metadata(&ballast).expect("it is there").len();
        // Free one more page each time, so that each file is the first to fail once.
        let mut refused = 0;
        for pages in 0.. {
            let file = fs::File::options().write(true).open(&ballast);
            let left = full.saturating_sub(pages * 4096);
            file.and_then(|file| file.set_len(left)).expect("smaller");
            match site.networks.put("mesh", &new) {
                Err(NodeRefusal::Storage { is_full, reason }) => {
                    assert!(is_full, "{reason}");
                    assert!(reason.contains("nothing was changed"), "{reason}");
                    refused += 1;
                }
                other => {
                    other.expect("there is room");
                    break;
                }
            }
            let view = site.networks.get("mesh").expect("it is there");
            assert_eq!((view.restarts, view.spec.file), (0, old.file.clone()));
            assert_eq!(site.pid("mesh"), pid);
            assert_eq!(names(&mesh), KEPT);
            assert!(text(&mesh, "network.toml").contains("1ms"));
            let other = site.networks.put("other", &spec("3ms"));
            let is_refused = matches!(other, Err(NodeRefusal::Storage { .. }));
            assert!(is_refused, "{other:?}");
            assert_eq!(names(disk), ["ballast", "mesh"]);
            assert!(site.networks.get("other").is_none());
        }
        assert!(refused > 2, "{refused}");
        assert_ne!(site.pid("mesh"), pid);
        assert_eq!(names(&mesh), KEPT);
        assert!(text(&mesh, "network.toml").contains("2ms"));
        assert!(text(&mesh, "spec.json").contains("2ms"));
    });
}

/// If a node is killed between writing two files, the next node restores the network in the
/// specification.
#[test]
fn the_topology_is_restored_from_the_specification() {
    let folder = Folder::new();
    let mesh = folder.path().join("mesh");
    let site = Site::start(folder.path());
    site.networks.put("mesh", &spec("1ms")).expect("it is kept");
    site.pid("mesh");
    drop(site);
    fs::write(mesh.join("network.toml"), "half of a topo").expect("written");
    fs::remove_file(mesh.join("network.key")).expect("removed");
    fs::write(mesh.join(".spec.json.1.0.tmp"), "left").expect("written");
    let site = Site::start(folder.path());
    site.pid("mesh");
    assert!(text(&mesh, "network.toml").contains("1ms"));
    assert_eq!(text(&mesh, "network.key").trim(), "0".repeat(64));
    assert_eq!(names(&mesh), KEPT);
}

/// Reading a FIFO without a writer would block.
#[test]
fn special_files_do_not_block() {
    let folder = Folder::new();
    let fifo = |path: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        let _ = fs::remove_file(&path);
        mkfifo(&path, Mode::S_IRWXU).expect("a FIFO");
    };
    let site = Site::start(folder.path());
    site.networks.put("mesh", &spec("1ms")).expect("it is kept");
    site.pid("mesh");
    drop(site);
    for path in ["mesh/log", "mesh/report.json", "mesh/network.toml"] {
        fifo(path);
    }
    fifo("other/spec.json");
    let site = Site::start(folder.path());
    site.pid("mesh");
    assert_eq!(site.networks.last_report("mesh"), None);
    assert!(text(&folder.path().join("mesh"), "network.toml").contains("1ms"));
    let said = site.said.lock().expect("no panic").join("\n");
    let why = "other cannot be restarted; remove it: not a regular";
    assert!(said.contains(why), "{said}");
    assert!(site.networks.remove("other").is_none());
    assert_eq!(names(folder.path()), ["mesh"]);
}
