//! The Docker and Podman API.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use longwire_attach::Runtime;
use serde_json::{Value, json};

use crate::common::server::{Script, Server};
use crate::common::{Tree, container, id, pod};

const DOCKER: &str = "Server: Docker/27.0.1 (linux)\r\nApi-Version: 1.46\r\n";
const PODMAN: &str = "Server: Libpod/5.0.0 (linux)\r\nLibpod-Api-Version: 5.0.0\r\n";
const LIST: &str = "/containers/json?all=true";

fn row(id: &str, name: &str, state: &str) -> Value {
    json!({ "Id": id, "Names": [format!("/{name}"), "/other/link"], "Image": "x",
        "State": state, "Status": "Up 3 minutes", "Labels": {} })
}

/// Returns an engine's responses for these containers.
fn script(headers: &'static str, rows: &[Value], pids: &[(&str, u32)]) -> Script {
    let mut values = BTreeMap::from([(LIST.to_owned(), json!(rows))]);
    for (id, pid) in pids {
        let state = json!({ "Status": "running", "Running": true, "Pid": pid });
        let value = json!({ "Id": id, "State": state });
        values.insert(format!("/containers/{id}/json"), value);
    }
    Script::Json(headers, values)
}

#[test]
fn docker_and_podman_are_asked_for_one_container() {
    let Some(mut tree) = Tree::new() else { return };
    let (web, db, old) = (id("3fa9"), id("3fb0"), id("77"));
    // These processes are not in a cgroup with the ID; the daemon's report suffices.
    tree.process(10, 100, "0::/");
    tree.process(11, 100, "0::/");
    let rows = [row(&web, "web", "running"), row(&old, "old", "exited")];
    let docker = script(DOCKER, &rows, &[(&web, 10)]);
    let podman = script(PODMAN, &[row(&db, "db", "paused")], &[(&db, 11)]);
    let docker = Server::start(&tree.path("run/docker.sock"), docker);
    let _podman = Server::start(&tree.path("run/podman/podman.sock"), podman);
    let description = tree.expect("web", 10).description;
    let expected = "container 3fa900000000 (web) of docker, PID 10";
    assert_eq!(description, expected);
    for name in ["db", "podman:db", "3fb"] {
        tree.expect(name, 11);
    }
    tree.refuse(&container("link"), "no container link");
    tree.refuse(&container("old"), "is not running");
    tree.refuse(&container("3f"), "matches 2 running");
    let mut running = tree.machine().containers();
    running.sort_by_key(longwire_attach::Container::pid);
    let running: Vec<_> = running.iter().map(|c| (c.runtime, c.label())).collect();
    let named = |runtime, name: &str| (runtime, name.to_owned());
    let expected = [named(Runtime::Docker, "web"), named(Runtime::Podman, "db")];
    assert_eq!(running, expected);
    // One request for the list, one for the selected container.
    let requests = [LIST.to_owned(), format!("/containers/{web}/json")];
    assert_eq!(docker.requests()[..2], requests);
}

#[test]
fn a_container_of_docker_is_also_one_of_its_containerd() {
    let Some(mut tree) = Tree::new() else { return };
    let web = id("3fa9");
    tree.process(20, 100, &format!("0::/system.slice/docker-{web}.scope"));
    tree.task("moby", &web, 20, &json!({}));
    let rows = [row(&web, "web", "running")];
    let server = Server::start(&tree.path("run/docker.sock"), script(DOCKER, &rows, &[]));
    // `/var/run` is a link to the same directory, as on real systems.
    std::fs::create_dir_all(tree.path("var")).expect("a directory");
    tree.link("var/run", tree.path("run"));
    tree.expect("docker:web", 20);
    assert_eq!(tree.machine().containers().len(), 1);
    // containerd's record has the PID. Each of the two calls queries the socket once.
    assert_eq!(server.requests(), [LIST, LIST]);
}

#[test]
fn labels_of_kubernetes_are_read() {
    let Some(mut tree) = Tree::new() else { return };
    let sandbox = id("5a");
    tree.process(30, 100, "0::/");
    let mut row = row(&sandbox, "k8s_POD_web-0_shop", "running");
    row["Labels"] = json!({ "io.kubernetes.pod.name": "web-0",
        "io.kubernetes.pod.namespace": "shop", "io.kubernetes.docker.type": "podsandbox" });
    let script = script(DOCKER, &[row], &[(&sandbox, 30)]);
    let _server = Server::start(&tree.path("run/docker.sock"), script);
    tree.expect_target(&pod("shop/web-0"), 30);
}

#[test]
fn the_environment_names_an_engine() {
    let Some(mut tree) = Tree::new() else { return };
    let web = id("3fa9");
    tree.process(40, 100, "0::/");
    let socket = tree.path("somewhere/docker.sock");
    let rows = [row(&web, "web", "running")];
    let _server = Server::start(&socket, script(DOCKER, &rows, &[(&web, 40)]));
    let with = |address: String| tree.machine().with_variables([("DOCKER_HOST", address)]);
    let machine = with(format!("unix://{}", socket.display()));
    let found = machine.resolve(&container("web")).expect("web");
    assert_eq!(found.pid, Some(40));
    let remote = with("tcp://192.0.2.1:2375".to_owned());
    let error = remote.resolve(&container("web")).expect_err("remote");
    let expected = "DOCKER_HOST is not the address of a local socket";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_broken_engine_delays_and_hides_nothing() {
    use Script::{Bytes, Endless, Silence};
    let endless = b"HTTP/1.1 200 OK\r\n\r\n[[[[";
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]";
    for (script, reason) in [
        (Silence, "no answer within 2 s"),
        (Endless(endless), "no answer within|longer than"),
        (Endless(b"x"), "not HTTP"),
        (Bytes(b"HTTP/1.1 500 Oops\r\n\r\n"), "status 500"),
        (Bytes(b"HTTP/1.1 200 OK\r\n\r\n{}"), "unknown response"),
        (Bytes(short), "end of file"),
    ] {
        let Some(mut tree) = Tree::new() else { return };
        tree.process(50, 1, "0::/default/a1");
        tree.task("default", "a1", 50, &json!({}));
        let _server = Server::start(&tree.path("run/docker.sock"), script.clone());
        let begin = Instant::now();
        tree.expect("a1", 50);
        // The timeout is 2 s; a loaded machine takes longer.
        assert!(begin.elapsed() < Duration::from_secs(20), "{script:?}");
        let message = tree.refusal(&container("web"));
        let line = message.lines().find(|line| line.contains("docker.sock: "));
        let line = line.unwrap_or_else(|| panic!("{message}"));
        let is_named = reason.split('|').any(|reason| line.contains(reason));
        assert!(is_named, "{script:?}: {line}");
    }
}

#[test]
fn ids_that_are_paths_are_left_out() {
    let Some(tree) = Tree::new() else { return };
    let rows = ["../../etc", ""].map(|id| row(id, "web", "running"));
    let server = Server::start(&tree.path("run/docker.sock"), script(DOCKER, &rows, &[]));
    tree.refuse(&container("web"), "no container");
    assert!(server.requests().iter().all(|path| path == LIST));
}
