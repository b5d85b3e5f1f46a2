//! Rootless runtimes, whose users control their directories.

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Tree, container, id};

/// The user `nobody`.
const USER: u32 = 65_534;

/// A process in [`USER`]'s user namespace and network namespace.
struct Rootless(Child);

impl Rootless {
    fn start() -> Rootless {
        let mut command = Command::new("setpriv");
        let user = USER.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        let child = command.args(["unshare", "-Urn", "sleep", "1000"]).spawn();
        let process = Rootless(child.expect("setpriv"));
        let inode = |path: &str| std::fs::metadata(path).map(|metadata| metadata.ino()).ok();
        let own = inode("/proc/self/ns/net");
        let begin = Instant::now();
        while inode(&process.namespace()) == own {
            assert!(begin.elapsed() < Duration::from_secs(20), "no namespace");
            thread::sleep(Duration::from_millis(5));
        }
        process
    }

    fn namespace(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
}

impl Drop for Rootless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a container to the user's Podman directory.
fn write(tree: &Tree, id: &str, pid: u32, name: &str) {
    let directory = format!("run/user/{USER}/containers/overlay-containers/{id}/userdata");
    tree.file(&format!("{directory}/pidfile"), pid.to_string());
    let configuration = json!({ "annotations": { "nerdctl/name": name } });
    let file = format!("{directory}/config.json");
    tree.json(&file, &configuration);
}

#[test]
fn a_container_of_a_user_is_found() {
    let Some(mut tree) = Tree::new() else { return };
    if !nix::unistd::geteuid().is_root() {
        return longwire_testbed::support::skip("needs root, for another user").unwrap_or(());
    }
    let rootless = Rootless::start();
    let web = id("3fa9");
    let cgroup = format!("0::/user.slice/libpod-{web}.scope/container");
    tree.process(10, 1, &cgroup);
    write(&tree, &web, 10, "web");
    // The process is in another user's namespace.
    let reason = format!("PID 10 does not belong to user {USER}");
    tree.refuse(&container("web"), &reason);

    std::fs::remove_file(tree.path("proc/10/ns/net")).expect("a link");
    tree.link("proc/10/ns/net", rootless.namespace());
    let found = tree.resolve(&container("podman:web")).expect("the user's");
    let description = "container 3fa900000000 (web) of podman, user 65534, PID 10";
    assert_eq!(found.description, description);
}

#[test]
fn a_user_cannot_give_a_name_to_a_container_of_root() {
    let Some(mut tree) = Tree::new() else { return };
    let web = id("3fa9");
    tree.process(10, 1, &format!("0::/default/{web}"));
    tree.task("default", &web, 10, &json!({ "nerdctl/name": "web" }));
    write(&tree, &web, 10, "payments");
    tree.refuse(&container("payments"), "no container");
    tree.expect("web", 10);
    tree.expect("3fa9", 10);
    // Root's container is known only from a process.
    let hidden = id("5b");
    tree.process(11, 1, &format!("0::/docker/{hidden}"));
    write(&tree, &hidden, 11, "payments");
    tree.refuse(&container("payments"), "does not belong to user");
}

#[test]
fn a_user_cannot_name_a_service() {
    let Some(mut tree) = Tree::new() else { return };
    tree.process(20, 1, "0::/system.slice/ssh.service");
    write(&tree, "ssh.service", 20, "web");
    for name in ["web", "ssh.service"] {
        tree.refuse(&container(name), "no container");
    }
}
