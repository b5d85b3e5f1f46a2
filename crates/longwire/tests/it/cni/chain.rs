//! A chain of plugins, called as a runtime does.

use std::thread;

use serde_json::json;

use super::{Machine, Pod};
use crate::common::longwire;

#[test]
fn a_container_has_its_link_until_it_is_removed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let config = machine.plugin(&json!({ "delay": "15ms" }));
    let pod = Pod::new("first");
    let (previous, address) = pod.add_to_bridge(&machine);
    machine.assert_round_trip(&address, 0.0);
    let added = pod.well(&machine, "ADD", &config, &previous);
    assert_eq!(added, previous, "the result is passed on");
    machine.assert_round_trip(&address, 30.0);
    pod.well(&machine, "CHECK", &config, &previous);
    // A second ADD for the same container changes the link.
    let other = machine.plugin(&json!({ "delay": "15ms", "up": { "delay": "5ms" } }));
    pod.well(&machine, "ADD", &other, &previous);
    machine.assert_round_trip(&address, 20.0);
    let attached = machine.attachments();
    assert_eq!(attached.len(), 1, "{attached:?}");

    for _ in 0..2 {
        assert_eq!(pod.well(&machine, "DEL", &config, &previous), "");
        machine.assert_round_trip(&address, 0.0);
    }
    pod.fails(&machine, "CHECK", &config, 100);
    assert!(machine.attachments().is_empty());
    pod.well(&machine, "DEL", &machine.bridge(), "");
}

#[test]
fn wrong_options_are_refused_with_their_place() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let pod = Pod::new("wrong");
    let (previous, address) = pod.add_to_bridge(&machine);
    for link in [
        json!({ "delay": "soon" }),
        json!({ "dealy": "1ms" }),
        json!({ "up": { "loss": "200%" } }),
    ] {
        let ran = pod.call(&machine, "ADD", &machine.plugin(&link), &previous);
        assert_eq!(ran.json()["code"], 7, "{link}: {ran:?}");
    }
    let mut other = machine.plugin(&json!({}));
    other["to"] = json!(["10.0.0.0/33"]);
    let ran = pod.call(&machine, "ADD", &other, &previous);
    assert_eq!(ran.json()["code"], 7, "{ran:?}");
    machine.assert_round_trip(&address, 0.0);
    assert!(machine.attachments().is_empty());
    pod.well(&machine, "DEL", &machine.bridge(), "");
}

#[test]
fn containers_start_and_stop_without_the_node() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    let config = machine.plugin(&json!({ "delay": "10ms" }));
    let pods = ["first", "second", "third"].map(Pod::new);
    let [first, second, third] = &pods;
    let (previous, one) = first.add_to_bridge(&machine);
    first.well(&machine, "ADD", &config, &previous);
    let (stays, two) = second.add_to_bridge(&machine);
    second.well(&machine, "ADD", &config, &stays);
    machine.assert_round_trip(&one, 20.0);

    machine.kill_node();
    machine.assert_round_trip(&one, 0.0);
    let mut status = config.clone();
    status["cniVersion"] = json!("1.1.0");
    first.fails(&machine, "STATUS", &status, 50);
    first.fails(&machine, "CHECK", &config, 11);
    // A container's removal always succeeds.
    first.well(&machine, "DEL", &config, &previous);
    first.well(&machine, "DEL", &machine.bridge(), "");
    let (previous, three) = third.add_to_bridge(&machine);
    third.fails(&machine, "ADD", &config, 11);
    let mut lenient = config.clone();
    lenient["required"] = json!(false);
    let passed = third.call(&machine, "ADD", &lenient, &previous);
    assert_eq!((passed.code, &passed.stdout), (0, &previous));
    assert!(passed.stderr.contains("no link is attached"), "{passed:?}");
    machine.assert_round_trip(&three, 0.0);

    // Links of remaining containers are restored. The link of the removed one is
    // deleted with the next ADD.
    machine.start_node();
    machine.assert_round_trip(&two, 20.0);
    let [first, second, third] = pods;
    drop(first);
    let added = third.well(&machine, "ADD", &config, &previous);
    assert_eq!(added, previous);
    machine.assert_round_trip(&three, 20.0);
    let names = machine.attachments().into_iter();
    let names: Vec<String> = names.map(|found| found["name"].to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.iter().all(|name| !name.contains("first")),
        "{names:?}"
    );

    // Garbage collection keeps the third.
    let mut gc = status;
    gc["cni.dev/valid-attachments"] = json!([{ "containerID": "third", "ifname": "eth0" }]);
    third.well(&machine, "GC", &gc, "");
    machine.assert_round_trip(&two, 0.0);
    machine.assert_round_trip(&three, 20.0);
    for pod in [second, third] {
        pod.well(&machine, "DEL", &config, "");
        pod.well(&machine, "DEL", &machine.bridge(), "");
    }
    assert!(machine.attachments().is_empty());
}

#[test]
fn containers_start_and_end_at_the_same_time() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let config = machine.plugin(&json!({ "delay": "15ms" }));
    let pods: Vec<Pod> = (0..6)
        .map(|number| Pod::new(&format!("pod{number}")))
        .collect();
    let start = |pod: &Pod| {
        let (previous, address) = pod.add_to_bridge(&machine);
        pod.well(&machine, "ADD", &config, &previous);
        address
    };
    let addresses: Vec<String> = thread::scope(|scope| {
        let started = pods.iter().map(|pod| scope.spawn(|| start(pod)));
        let started: Vec<_> = started.collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("an address"))
            .collect()
    });
    assert_eq!(machine.attachments().len(), pods.len());
    for address in &addresses {
        machine.assert_round_trip(address, 30.0);
    }
    thread::scope(|scope| {
        for pod in &pods {
            scope.spawn(|| {
                pod.well(&machine, "DEL", &config, "");
                pod.well(&machine, "DEL", &machine.bridge(), "");
            });
        }
    });
    assert!(machine.attachments().is_empty());
}

#[test]
fn the_plugin_is_installed_as_a_link_or_a_copy() {
    let folder = longwire_testbed::support::Folder::new();
    let dir = folder.file("new/bin");
    for (options, is_link) in [(&[][..], true), (&["--copy"], false), (&[], true)] {
        let words = [&["cni", "install", "--dir", &dir], options].concat();
        assert_eq!(longwire(&words).code, 0);
        let installed = folder.path().join("new/bin/longwire-cni");
        assert_eq!(installed.is_symlink(), is_link);
        let mut command = std::process::Command::new(&installed);
        command.env("CNI_COMMAND", "VERSION");
        let input = std::process::Stdio::null();
        let ran = crate::common::ran(command.stdin(input).output().expect("it starts"));
        // Called as the plugin: empty input is not JSON.
        assert_eq!(ran.json()["code"], 6, "{ran:?}");
        let left = std::fs::read_dir(folder.path().join("new/bin")).expect("a directory");
        assert_eq!(left.count(), 1);
    }
    let ran = longwire(&["cni"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("longwire cni install"), "{ran:?}");
}
