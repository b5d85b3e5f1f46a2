//! Pods of containerd's CRI, created as the kubelet does.

use longwire_testbed::support::Folder;
use serde_json::json;

use super::Machine;
use crate::common::containerd::{Engine, image, remove_cgroups};
use crate::common::program::run as run_program;
use crate::common::write;

/// URL prefix of the methods.
const SERVICE: &str = "http://localhost/runtime.v1.RuntimeService";

/// Encodes a protobuf field of wire type 2 from its number and bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

/// Returns the name of the parent cgroup of this test's pods.
fn cgroup() -> String {
    format!("longwire-cri-{}", std::process::id())
}

/// Encodes a pod's configuration (`PodSandboxConfig` of CRI version 1).
fn pod(name: &str, folder: &Folder, annotations: &[(&str, &str)]) -> Vec<u8> {
    let metadata = [
        field(1, name.as_bytes()),
        field(2, format!("uid-{name}").as_bytes()),
        field(3, b"default"),
    ];
    let mut config = field(1, &metadata.concat());
    config.extend(field(2, name.as_bytes()));
    config.extend(field(3, folder.file("logs").as_bytes()));
    for (key, value) in annotations {
        let entry = [field(1, key.as_bytes()), field(2, value.as_bytes())];
        config.extend(field(7, &entry.concat()));
    }
    // Pods are in this test's own cgroup.
    let linux = field(1, format!("/{}", cgroup()).as_bytes());
    config.extend(field(8, &linux));
    config
}

/// Calls a CRI method (gRPC over HTTP/2) with curl. Returns the response message, or the headers on
/// error.
fn call(engine: &Engine, method: &str, message: &[u8]) -> Result<Vec<u8>, String> {
    let file = |name: &str| engine.folder().file(name);
    let length = u32::try_from(message.len()).expect("a short message");
    write(
        file("request"),
        [&[0][..], &length.to_be_bytes(), message].concat(),
    );
    let line = format!(
        "curl -sS --http2-prior-knowledge --unix-socket {} -H 'content-type: application/grpc' \
         -H 'te: trailers' --data-binary @{} --dump-header {} -o {} {SERVICE}/{method}",
        engine.socket(),
        file("request"),
        file("headers"),
        file("response"),
    );
    let ran = run_program(line);
    let headers = std::fs::read_to_string(file("headers")).unwrap_or_default();
    let response = std::fs::read(file("response")).unwrap_or_default();
    if headers.contains("grpc-status: 0") && response.len() >= 5 {
        return Ok(response[5..].to_vec());
    }
    Err(format!("{headers}{ran:?}"))
}

/// Starts a pod; returns its ID.
fn run(engine: &Engine, config: &[u8]) -> Result<String, String> {
    let answer = call(engine, "RunPodSandbox", &field(1, config))?;
    // The message has a single field, the ID, after a tag byte and a length byte.
    String::from_utf8(answer[2..].to_vec()).map_err(|error| error.to_string())
}

fn stop(engine: &Engine, id: &str) {
    for method in ["StopPodSandbox", "RemovePodSandbox"] {
        let stopped = call(engine, method, &field(1, id.as_bytes()));
        stopped.unwrap_or_else(|error| panic!("{method}: {error}{}", engine.log()));
    }
}

/// Returns containerd's settings, with the machine's plugin directory.
fn settings(machine: &Machine, folder: &Folder, lists: &str) -> String {
    // containerd searches only one directory for plugins.
    let bin = folder.file("bin");
    run_program(format!("cp -a {} {bin}", machine.folder.file("bin"))).well();
    for plugin in ["bridge", "host-local", "loopback"] {
        let source = format!("{}/{plugin}", super::REFERENCE);
        std::os::unix::fs::symlink(source, format!("{bin}/{plugin}")).expect("a link");
    }
    format!(
        "[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = '{}'\n\
         disable_tcp_service = true\nrestrict_oom_score_adj = true\n\
         netns_mounts_under_state_dir = true\nstream_server_port = '0'\n\
         [plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = 'native'\n\
         [plugins.'io.containerd.grpc.v1.cri'.cni]\nbin_dir = '{bin}'\nconf_dir = '{lists}'\n",
        image::NAME
    )
}

#[test]
fn pods_have_the_links_of_their_annotations() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut plugin = machine.plugin(&json!({ "delay": "10ms" }));
    plugin["capabilities"] = json!({ "io.kubernetes.cri.pod-annotations": true });
    let lists = machine.write_list(&json!({
        "cniVersion": "1.0.0", "name": "pods", "plugins": [machine.bridge(), plugin],
    }));
    let engine = Engine::start_with("k8s.io", &machine.network, |folder| {
        settings(&machine, folder, &lists)
    });
    let Some(engine) = engine else { return };
    let folder = engine.folder();

    let start = |name: &str, annotations: &[(&str, &str)]| {
        run(&engine, &pod(name, folder, annotations))
            .unwrap_or_else(|error| panic!("{name}: {error}{}", engine.log()))
    };
    let plain = start("plain", &[("example.com/x", "y")]);
    machine.assert_crossed("10.91.0.2", 20.0);
    let own = [
        ("longwire.dev/link", "delay=25ms"),
        ("longwire.dev/seed", "7"),
    ];
    let slow = start("slow", &own);
    machine.assert_crossed("10.91.0.3", 50.0);
    let free = start("free", &[("longwire.dev/attach", "false")]);
    machine.assert_crossed("10.91.0.4", 0.0);
    let attached = machine.attachments();
    assert_eq!(attached.len(), 2, "{attached:?}");
    for (id, delay) in [(&plain, "10ms"), (&slow, "25ms")] {
        let mut found = attached.iter();
        let found = found.find(|found| found["name"].to_string().contains(&id[..13]));
        let found = found.unwrap_or_else(|| panic!("{id} in {attached:?}"));
        assert_eq!(found["spec"]["link"]["delay"], delay, "{found}");
    }

    // A pod with an invalid annotation does not start; its events give the reason.
    let wrong = pod("wrong", folder, &[("longwire.dev/link", "delay=soon")]);
    let error = run(&engine, &wrong).expect_err("it is wrong");
    assert!(error.contains("soon"), "{error}");

    for id in [plain, slow, free] {
        stop(&engine, &id);
    }
    assert!(machine.attachments().is_empty());
    remove_cgroups(&cgroup());
}
