//! Tests with `cnitool`, the CNI project's runtime, installed by `cargo xtask cni`.

use serde_json::json;

use super::{Machine, Pod};
use crate::common::program::{Ran, command};

/// Environment variable with the path of `cnitool`.
const PROGRAM: &str = "CNITOOL";

/// Runs `cnitool` with a line of arguments.
fn cnitool(machine: &Machine, line: &str, variables: &[(&str, &str)]) -> Ran {
    let program = std::env::var(PROGRAM).expect("the variable");
    let mut command = command(format!("{program} {line}"));
    command.envs(variables.iter().copied());
    command
        .env("NETCONFPATH", machine.folder.file("net.d"))
        .env("CNI_PATH", machine.path());
    machine
        .network
        .run(|| Ran::of(&mut command))
        .expect("entered")
}

#[test]
fn cnitool_runs_the_plugin() {
    if std::env::var_os(PROGRAM).is_none() {
        // Only the check `cni` of `cargo xtask` installs `cnitool`, because that needs Go.
        eprintln!("not run: `cargo xtask cni` sets {PROGRAM}");
        return;
    }
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut plugin = machine.plugin(&json!({ "delay": "10ms" }));
    plugin["capabilities"] = json!({ "longwire": true, "io.kubernetes.cri.pod-annotations": true });
    // A list in nerdctl's format, with this plugin last.
    machine.write_list(&json!({
        "cniVersion": "1.0.0", "name": "shop", "nerdctlID": "3fa9", "nerdctlLabels": {},
        "plugins": [machine.bridge(), { "type": "tuning" }, plugin],
    }));
    machine.write_list(&json!({
        "cniVersion": "1.1.0", "name": "links", "plugins": [machine.plugin(&json!({}))],
    }));
    let pod = Pod::new("unused: cnitool chooses an ID");
    let path = pod.path();
    let network = |operation| format!("{operation} shop {path}");
    let annotated = r#"{"io.kubernetes.cri.pod-annotations":{"longwire.dev/up":"delay=20ms"}}"#;
    let direct = r#"{"longwire":{"link":{"delay":"25ms"}}}"#;
    let argument = "IgnoreUnknown=1;LONGWIRE_DELAY=5ms";
    for (variables, expected) in [
        (&[][..], 20.0),
        (&[("CAP_ARGS", annotated)], 30.0),
        (&[("CAP_ARGS", direct)], 50.0),
        (&[("CAP_ARGS", direct), ("CNI_ARGS", argument)], 10.0),
    ] {
        let added = cnitool(&machine, &network("add"), variables).well();
        let address = added.json()["ips"][0]["address"].clone();
        let address = address.as_str().expect("an address");
        machine.assert_crossed(address.trim_end_matches("/24"), expected);
        for operation in ["check", "del", "del"] {
            cnitool(&machine, &network(operation), variables).well();
        }
        assert!(machine.attachments().is_empty());
    }
    let wrong = [("CNI_ARGS", "IgnoreUnknown=1;LONGWIRE_DELAY=soon")];
    cnitool(&machine, &network("add"), &wrong)
        .exits(1)
        .says("soon");
    let _ = cnitool(&machine, &network("del"), &wrong);
    for operation in ["status", "gc"] {
        cnitool(&machine, &format!("{operation} links {path}"), &[]).well();
    }
    let mut machine = machine;
    machine.kill_node();
    cnitool(&machine, &format!("status links {path}"), &[]).says("no node answers");
}
