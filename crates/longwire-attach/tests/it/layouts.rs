//! The directories of each runtime.

use longwire_attach::{Runtime, Target, TargetError};
use longwire_io::net::NetNamespace;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::{TASKS, Tree, container, id, pod};

/// Annotations of containerd's CRI plugin.
fn cri(kind: &str, namespace: &str, name: &str, container: &str) -> Value {
    let mut annotations = json!({
        "io.kubernetes.cri.container-type": kind,
        "io.kubernetes.cri.sandbox-namespace": namespace,
        "io.kubernetes.cri.sandbox-name": name,
    });
    if !container.is_empty() {
        annotations["io.kubernetes.cri.container-name"] = json!(container);
    }
    annotations
}

fn kubepods(id: &str) -> String {
    format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope")
}

#[test]
fn containerd_by_id_prefix_name_and_pod() {
    let Some(mut tree) = Tree::new() else { return };
    let (sandbox, web, other) = (id("5a"), id("3fa9c1d2e4f5"), id("3fb"));
    tree.process(10, 500, &kubepods(&sandbox));
    tree.process(11, 501, &kubepods(&web));
    tree.process(12, 502, &kubepods(&other));
    let pod_annotations = cri("sandbox", "shop", "web-0", "");
    tree.task("k8s.io", &sandbox, 10, &pod_annotations);
    let nginx = cri("container", "shop", "web-0", "nginx");
    tree.task("k8s.io", &web, 11, &nginx);
    let redis = cri("container", "shop", "web-1", "redis");
    tree.task("k8s.io", &other, 12, &redis);
    let description = "container 3fa9c1d2e4f5 (nginx) of containerd, namespace k8s.io, \
                       pod shop/web-0, PID 11";
    for name in [&web, "3fa", "nginx", "containerd:nginx", "containerd:3fa9"] {
        let found = tree.expect(name, 11);
        assert_eq!(found.label, "nginx");
        assert_eq!(found.description, description);
        assert!(!found.is_host);
        // The returned target finds the same container.
        assert_eq!(found.target, container(&format!("containerd:{web}")));
        tree.expect_target(&found.target, 11);
    }
    let found = tree.expect_target(&pod("shop/web-0"), 10);
    assert_eq!(found.label, "shop/web-0");
    assert_eq!(found.target, pod("shop/web-0"));
    // Without a running sandbox, another container provides the namespace.
    tree.expect_target(&pod("shop/web-1"), 12);

    tree.refuse(&container("3f"), "matches 2 running");
    tree.refuse(&container("docker:nginx"), "no container");
    tree.refuse(&pod("web-0"), "--pod shop/web-0");
    tree.refuse(&container("web-1"), "a pod has this name: --pod shop/web-1");
}

#[test]
fn the_newest_running_sandbox_of_a_pod_counts() {
    let Some(mut tree) = Tree::new() else { return };
    let annotations = cri("sandbox", "default", "web-0", "");
    for (pid, started, beginning) in [(20, 100, "a"), (21, 300, "b"), (22, 200, "c")] {
        tree.process(pid, started, &kubepods(&id(beginning)));
        tree.task("k8s.io", &id(beginning), pid, &annotations);
    }
    // This task has ended.
    tree.task("k8s.io", &id("d"), 23, &annotations);
    tree.expect_target(&pod("web-0"), 21);
}

#[test]
fn the_environment_names_another_containerd() {
    let Some(mut tree) = Tree::new() else { return };
    tree.process(30, 1, "5:devices:/default/web\n0::/");
    tree.task("default", "web", 30, &json!({ "nerdctl/name": "shop" }));
    let from = tree.path(TASKS);
    let state = tree.path("opt/state");
    std::fs::create_dir_all(&state).expect("a directory");
    std::fs::rename(from, state.join("io.containerd.runtime.v2.task")).expect("it exists");
    assert!(tree.resolve(&container("shop")).is_err());
    let socket = state.join("containerd.sock").display().to_string();
    let variables = [("CONTAINERD_ADDRESS", socket)];
    let machine = tree.machine().with_variables(variables);
    for name in ["shop", "web"] {
        assert_eq!(machine.resolve(&container(name)).expect(name).pid, Some(30));
    }
}

/// Writes a CRI-O container.
fn crio(tree: &Tree, id: &str, pid: Option<u32>, kind: &str, name: &str) {
    let directory = format!("run/containers/storage/overlay-containers/{id}/userdata");
    let configuration = json!({ "annotations": {
        "io.container.manager": "cri-o",
        "io.kubernetes.cri-o.ContainerType": kind,
        "io.kubernetes.pod.name": "web-0",
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.container.name": name,
        "io.kubernetes.cri-o.Name": format!("k8s_{name}_web-0_shop_1_0"),
    }});
    tree.json(&format!("{directory}/config.json"), &configuration);
    if let Some(pid) = pid {
        tree.file(&format!("{directory}/pidfile"), pid.to_string());
    }
}

#[test]
fn crio_with_and_without_a_process_of_the_sandbox() {
    let Some(mut tree) = Tree::new() else { return };
    let (sandbox, web) = (id("5a"), id("3fa9"));
    let cgroup = format!("0::/kubepods.slice/crio-{web}.scope/container");
    tree.process(40, 400, &cgroup);
    crio(&tree, &sandbox, None, "sandbox", "POD");
    crio(&tree, &web, Some(40), "container", "nginx");
    for name in ["nginx", "cri-o:3fa", "k8s_nginx_web-0_shop_1_0"] {
        let description = tree.expect(name, 40).description;
        assert!(description.contains("of cri-o, pod shop/web-0"));
    }
    tree.expect_target(&pod("shop/web-0"), 40);
    tree.refuse(&container("POD"), "no container POD");

    tree.process(39, 390, &format!("0::/kubepods.slice/crio-{sandbox}.scope"));
    crio(&tree, &sandbox, Some(39), "sandbox", "POD");
    tree.expect_target(&pod("shop/web-0"), 39);
}

#[test]
fn a_pod_without_processes_is_found_by_the_file_of_its_sandbox() {
    let Some(mut tree) = Tree::new() else { return };
    tree.process(45, 1, "0::/");
    let annotations = cri("sandbox", "shop", "vm-0", "");
    let write = |path: &str| {
        let linux =
            json!({ "namespaces": [{ "type": "pid" }, { "type": "network", "path": path }] });
        let configuration = json!({ "annotations": annotations, "linux": linux });
        let file = format!("{TASKS}/k8s.io/{}/config.json", id("5a"));
        tree.json(&file, &configuration);
    };
    // A path in `/proc` may belong to another process by now.
    write("/proc/45/ns/net");
    tree.refuse(&pod("shop/vm-0"), "is not running");
    write("/var/run/netns/cni-1");
    tree.refuse(&pod("shop/vm-0"), "is not running");
    tree.link("var/run/netns/cni-1", tree.path("proc/45/ns/net"));
    let found = tree.resolve(&pod("shop/vm-0")).expect("by its file");
    let inode = tree.expect_target(&Target::Pid(45), 45).inode();
    assert_eq!((found.inode(), found.pid), (inode, None));
    assert_eq!(found.label, "shop/vm-0");
    assert_eq!(found.target, pod("shop/vm-0"));
}

#[test]
fn targets_are_kept_as_json() {
    for (target, text) in [
        (container("docker:web"), r#"{"container":"docker:web"}"#),
        (pod("web-0"), r#"{"pod":"default/web-0"}"#),
        (Target::Pid(7), r#"{"pid":7}"#),
        (Target::Netns("/n/a".into()), r#"{"netns":"/n/a"}"#),
    ] {
        assert_eq!(serde_json::to_string(&target).expect("JSON"), text);
        let read: Target = serde_json::from_str(text).expect("a target");
        assert_eq!(read, target);
    }
    let wrong = json!([{ "container": "../x" }, { "pod": "a/b/c" }, { "pid": -1 }]);
    for value in wrong.as_array().expect("an array") {
        assert!(Target::deserialize(value).is_err(), "{value}");
    }
}

#[test]
fn podman_with_names_of_the_list_of_containers() {
    let Some(mut tree) = Tree::new() else { return };
    let web = id("3fa9");
    let cgroup = format!("0::/machine.slice/libpod-{web}.scope/container");
    tree.process(50, 1, &cgroup);
    let directory = format!("storage/overlay-containers/{web}/userdata");
    tree.file(&format!("run/containers/{directory}/pidfile"), "50\n");
    let configuration = json!({ "annotations": { "io.container.manager": "libpod" } });
    let file = format!("var/lib/containers/{directory}/config.json");
    tree.json(&file, &configuration);
    let list = json!([{ "id": web, "names": ["web"], "layer": "x" }, { "id": "other" }]);
    let file = "var/lib/containers/storage/overlay-containers/containers.json";
    tree.json(file, &list);
    let description = tree.expect("podman:web", 50).description;
    let expected = "container 3fa900000000 (web) of podman, PID 50";
    assert_eq!(description, expected);
}

#[test]
fn docker_without_its_socket() {
    let Some(mut tree) = Tree::new() else { return };
    let (web, old) = (id("3fa9"), id("77"));
    tree.process(60, 6_000, "0::/");
    let saved = |name: &str, running: bool, pid: u32| {
        let state = json!({ "Running": running, "Paused": false, "Pid": pid });
        json!({ "Name": name, "State": state, "Config": { "Labels": {} } }).to_string()
    };
    let file = |id: &str| format!("var/lib/docker/containers/{id}/config.v2.json");
    tree.file(&file(&web), saved("/web", true, 60));
    tree.file(&file(&old), saved("/old", false, 0));
    // The process is in none of the container's cgroups (`--cgroup-parent`, cgroup namespaces).
    // Only runc's record proves that it belongs to the container.
    tree.refuse(&container("web"), "not in a cgroup");
    let state = json!({ "init_process_pid": 60, "init_process_start": 6_000, "config": {} });
    let runc = format!("run/docker/runtime-runc/moby/{web}/state.json");
    tree.json(&runc, &state);
    assert_eq!(tree.expect("docker:web", 60).label, "web");
    tree.refuse(&container("old"), "is not running; start it");
}

#[test]
fn any_runtime_by_its_cgroups() {
    let Some(mut tree) = Tree::new() else { return };
    let (web, other) = (id("3fa9"), id("5a"));
    tree.process(72, 300, &format!("5:devices:/ecs/task/{web}\n1:cpu:/"));
    tree.process(71, 200, &format!("5:devices:/ecs/task/{web}\n1:cpu:/"));
    tree.process(73, 100, &format!("0::/system.slice/docker-{other}.scope"));
    let description = tree.expect("3fa", 71).description;
    let expected = "container 3fa900000000 of an unknown runtime, PID 71";
    assert_eq!(description, expected);
    tree.expect("docker:5a", 73);
    let containers = tree.machine().containers();
    let mut shown: Vec<_> = containers.iter().map(|c| (c.pid(), c.runtime)).collect();
    shown.sort_unstable();
    let expected = [(Some(71), Runtime::Unknown), (Some(73), Runtime::Docker)];
    assert_eq!(shown, expected);
}

#[test]
fn a_name_of_several_containers_is_refused_with_all_of_them() {
    let Some(mut tree) = Tree::new() else { return };
    for (pid, id) in [(90, "a1"), (91, "a2")] {
        tree.process(pid, 1, &format!("0::/default/{id}"));
        tree.task("default", id, pid, &json!({ "nerdctl/name": "web" }));
    }
    // A stopped container is not a candidate.
    tree.task("default", "a3", 92, &json!({ "nerdctl/name": "web" }));
    let error = tree.resolve(&container("web")).expect_err("ambiguous");
    let TargetError::Ambiguous { candidates, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(candidates.len(), 2);
    let message = error.to_string();
    assert!(message.contains("container a1 (web)") && message.contains("container a2 (web)"));
    // An ID takes precedence over names and IDs of which it is a prefix.
    tree.process(93, 1, "0::/default/a");
    tree.task("default", "a", 93, &json!({}));
    tree.expect("a", 93);
}

#[test]
fn an_unknown_name_is_answered_with_places_and_running_containers() {
    let Some(mut tree) = Tree::new() else { return };
    tree.process(95, 1, "0::/default/a1");
    tree.task("default", "a1", 95, &json!({ "nerdctl/name": "shop" }));
    let message = tree.refusal(&container("web"));
    for part in [
        "no container web",
        "running: shop",
        "io.containerd.runtime.v2.task: 1 container",
        "absent: ",
        "/run/docker.sock",
        "--pid",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // Each place is listed once.
    assert_eq!(message.matches("/proc: ").count(), 1, "{message}");
}

#[test]
fn named_namespaces() {
    let Some(mut tree) = Tree::new() else { return };
    tree.process(99, 1, "0::/");
    let found = tree.expect_target(&Target::Pid(99), 99);
    let inode = found.inode();
    for directory in ["run/netns", "var/run/netns"] {
        let name = directory.replace('/', "-");
        tree.link(&format!("{directory}/{name}"), tree.path("proc/99/ns/net"));
        let target = Target::Netns(name.clone().into());
        let found = tree.resolve(&target).expect("named");
        let shown = (found.inode(), found.pid, found.label.as_str());
        assert_eq!(shown, (inode, None, name.as_str()));
        assert!(found.process().is_none() && !found.is_host);
        tree.resolve(&found.target).expect("by its path");
    }
    let known = "existing: run-netns, var-run-netns";
    tree.refuse(&Target::Netns("web".into()), known);
    // A container in the host's namespace is marked as such.
    let host = NetNamespace::current().expect("the test's namespace");
    tree.process_in(80, 1, "0::/default/web", host);
    tree.task("default", "web", 80, &json!({}));
    assert!(tree.expect("web", 80).is_host);
}
