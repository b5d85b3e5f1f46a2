//! Tests with `cnitool`, the CNI project's runtime, installed by `cargo xtask cni`.

use std::process::Command;

use serde_json::json;

use super::{Machine, Pod};
use crate::common::{Ran, ran};

/// The environment variable with the path of `cnitool`.
const PROGRAM: &str = "CNITOOL";

/// Runs `cnitool` on a network.
fn cnitool(machine: &Machine, words: [&str; 3], variables: &[(&str, &str)]) -> Ran {
    let program = std::env::var(PROGRAM).expect("the variable");
    let mut command = Command::new(program);
    command.args(words).envs(variables.iter().copied());
    command.env("NETCONFPATH", machine.folder.file("net.d"));
    command.env("CNI_PATH", machine.path());
    let output = machine.network.run(|| command.output()).expect("entered");
    ran(output.expect("it starts"))
}

#[test]
fn cnitool_runs_the_plugin() {
    if std::env::var_os(PROGRAM).is_none() {
        // Installing it needs Go: a step of `cargo xtask full`.
        eprintln!("not run: `cargo xtask cni` sets {PROGRAM}");
        return;
    }
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut plugin = machine.plugin(&json!({ "delay": "10ms" }));
    plugin["capabilities"] = json!({ "longwire": true, "io.kubernetes.cri.pod-annotations": true });
    // In nerdctl's format, with the plugin last.
    machine.write_list(&json!({
        "cniVersion": "1.0.0", "name": "shop", "nerdctlID": "3fa9", "nerdctlLabels": {},
        "plugins": [machine.bridge(), { "type": "tuning" }, plugin],
    }));
    machine.write_list(&json!({
        "cniVersion": "1.1.0", "name": "links", "plugins": [machine.plugin(&json!({}))],
    }));
    let pod = Pod::new("unused: cnitool chooses an ID");
    let path = pod.path();
    let network = |operation| [operation, "shop", &*path];
    let annotated = r#"{"io.kubernetes.cri.pod-annotations":{"longwire.dev/up":"delay=20ms"}}"#;
    let direct = r#"{"longwire":{"link":{"delay":"25ms"}}}"#;
    let argument = "IgnoreUnknown=1;LONGWIRE_DELAY=5ms";
    for (variables, expected) in [
        (&[][..], 20.0),
        (&[("CAP_ARGS", annotated)], 30.0),
        (&[("CAP_ARGS", direct)], 50.0),
        (&[("CAP_ARGS", direct), ("CNI_ARGS", argument)], 10.0),
    ] {
        let added = cnitool(&machine, network("add"), variables);
        assert_eq!(added.code, 0, "{added:?}");
        let address = added.json()["ips"][0]["address"].clone();
        let address = address.as_str().expect("an address");
        machine.assert_round_trip(address.trim_end_matches("/24"), expected);
        for operation in ["check", "del", "del"] {
            let ran = cnitool(&machine, network(operation), variables);
            assert_eq!(ran.code, 0, "{operation}: {ran:?}");
        }
        assert!(machine.attachments().is_empty());
    }
    let wrong = [("CNI_ARGS", "IgnoreUnknown=1;LONGWIRE_DELAY=soon")];
    let refused = cnitool(&machine, network("add"), &wrong);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("soon"), "{refused:?}");
    let _ = cnitool(&machine, network("del"), &wrong);
    for operation in ["status", "gc"] {
        let ran = cnitool(&machine, [operation, "links", &path], &[]);
        assert_eq!(ran.code, 0, "{operation}: {ran:?}");
    }
    let mut machine = machine;
    machine.kill_node();
    let ran = cnitool(&machine, ["status", "links", &path], &[]);
    assert!(ran.stderr.contains("no node answers"), "{ran:?}");
}
