//! A plugin chain, called as by a runtime.

use std::thread;

use longwire_testbed::support::Folder;
use serde_json::json;

use super::{Machine, Pod};
use crate::common::longwire;
use crate::common::program::{Ran, command};

#[test]
fn a_container_has_its_link_until_it_is_removed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let config = machine.plugin(&json!({ "delay": "15ms" }));
    let pod = Pod::new("first");
    let (previous, address) = pod.add_to_bridge(&machine);
    machine.assert_crossed(&address, 0.0);
    let added = pod.well(&machine, "ADD", &config, &previous);
    assert_eq!(added, previous, "the result is passed on");
    machine.assert_crossed(&address, 30.0);
    pod.well(&machine, "CHECK", &config, &previous);
    // A second ADD for the same container changes the link.
    let other = machine.plugin(&json!({ "delay": "15ms", "up": { "delay": "5ms" } }));
    pod.well(&machine, "ADD", &other, &previous);
    machine.assert_crossed(&address, 20.0);
    let attached = machine.attachments();
    assert_eq!(attached.len(), 1, "{attached:?}");

    for _ in 0..2 {
        assert_eq!(pod.well(&machine, "DEL", &config, &previous), "");
        machine.assert_crossed(&address, 0.0);
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
    let mut elsewhere = machine.plugin(&json!({}));
    elsewhere["to"] = json!(["10.0.0.0/33"]);
    let slow = machine.plugin(&json!({ "delay": "soon" }));
    let typo = machine.plugin(&json!({ "dealy": "1ms" }));
    let lossy = machine.plugin(&json!({ "up": { "loss": "200%" } }));
    for config in [slow, typo, lossy, elsewhere] {
        let ran = pod.call(&machine, "ADD", &config, &previous);
        assert_eq!(ran.json()["code"], 7, "{config}: {ran:?}");
    }
    machine.assert_crossed(&address, 0.0);
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
    machine.assert_crossed(&one, 20.0);

    machine.kill_node();
    machine.assert_crossed(&one, 0.0);
    let mut status = config.clone();
    status["cniVersion"] = json!("1.1.0");
    first.fails(&machine, "STATUS", &status, 50);
    first.fails(&machine, "CHECK", &config, 11);
    // Removing a container succeeds even without a node.
    first.well(&machine, "DEL", &config, &previous);
    first.well(&machine, "DEL", &machine.bridge(), "");
    let (previous, three) = third.add_to_bridge(&machine);
    third.fails(&machine, "ADD", &config, 11);
    let mut lenient = config.clone();
    lenient["required"] = json!(false);
    let passed = third.call(&machine, "ADD", &lenient, &previous).well();
    assert_eq!(passed.says("no link is attached").stdout, previous);
    machine.assert_crossed(&three, 0.0);

    // Links of remaining containers are restored; the next ADD deletes the removed container's
    // link.
    machine.start_node();
    machine.assert_crossed(&two, 20.0);
    let [first, second, third] = pods;
    drop(first);
    let added = third.well(&machine, "ADD", &config, &previous);
    assert_eq!(added, previous);
    machine.assert_crossed(&three, 20.0);
    let names = machine.attachments().into_iter();
    let names: Vec<String> = names.map(|found| found["name"].to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.iter().all(|name| !name.contains("first")),
        "{names:?}"
    );

    // Garbage collection keeps the third container.
    let mut gc = status;
    gc["cni.dev/valid-attachments"] = json!([{ "containerID": "third", "ifname": "eth0" }]);
    third.well(&machine, "GC", &gc, "");
    machine.assert_crossed(&two, 0.0);
    machine.assert_crossed(&three, 20.0);
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
    let pods = [0, 1, 2, 3, 4, 5].map(|number| Pod::new(&format!("pod{number}")));
    let start = |pod: &Pod| {
        let (previous, address) = pod.add_to_bridge(&machine);
        pod.well(&machine, "ADD", &config, &previous);
        address
    };
    let addresses: Vec<String> = thread::scope(|scope| {
        let started = pods.each_ref().map(|pod| scope.spawn(|| start(pod)));
        let addresses = started
            .into_iter()
            .map(|thread| thread.join().expect("an address"));
        addresses.collect()
    });
    assert_eq!(machine.attachments().len(), pods.len());
    for address in &addresses {
        machine.assert_crossed(address, 30.0);
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
    let folder = Folder::new();
    let dir = folder.file("new/bin");
    for (option, is_link) in [("", true), ("--copy", false), ("", true)] {
        longwire(format!("cni install --dir {dir} {option}")).well();
        let installed = folder.path().join("new/bin/longwire-cni");
        assert_eq!(installed.is_symlink(), is_link);
        let mut plugin = command(installed.display().to_string());
        // Called as the plugin, the program refuses empty input, which is not valid JSON.
        let ran = Ran::of(plugin.env("CNI_COMMAND", "VERSION"));
        assert_eq!(ran.json()["code"], 6, "{ran:?}");
        assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 1);
    }
    longwire("cni").exits(2).says("longwire cni install");
}
