//! Messages about refusals by the system, and the findings of `doctor` in the same
//! cases.

use std::process::Command;

use longwire_testbed::support::namespace;
use serde_json::Value;

use super::{AS_ROOT, unshared};
use crate::common::site::run_in;
use crate::common::wire::inside;
use crate::common::{Ran, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longwire");

/// Runs a script as root in a user namespace, where its rights end; `$1` is the
/// program.
fn in_a_sandbox(options: &[&str], script: &str) -> Option<Ran> {
    unshared(&[&AS_ROOT, options].concat(), script, &[])
}

/// Returns the finding of `doctor` about a topic.
fn finding<'a>(report: &'a Value, topic: &str) -> &'a Value {
    let groups = report["groups"].as_array().or_else(|| report.as_array());
    let groups = groups.unwrap_or_else(|| panic!("no groups: {report}"));
    let findings = groups
        .iter()
        .filter_map(|group| group["findings"].as_array());
    let mut found = findings
        .flatten()
        .filter(|finding| finding["topic"] == topic);
    found
        .next()
        .unwrap_or_else(|| panic!("no {topic}: {report}"))
}

#[test]
fn a_run_without_rights_has_the_remedy_of_doctor() {
    let Some(refused) = in_a_sandbox(&[], "\"$1\" run packet:lo null") else {
        return;
    };
    assert_eq!(refused.code, 1, "{refused:?}");
    for word in [
        "Operation not permitted",
        "sudo setcap cap_net_admin",
        "longwire exec",
    ] {
        assert!(refused.stderr.contains(word), "no '{word}': {refused:?}");
    }
}

#[test]
fn doctor_does_not_count_rights_that_end_at_the_sandbox() {
    let Some(said) = in_a_sandbox(&[], "\"$1\" doctor --json") else {
        return;
    };
    let report = said.json();
    let ports = finding(&report, "ports");
    assert_eq!(ports["status"], "warn", "{ports}");
    let why = ports["found"].as_str().expect("a text");
    assert!(why.contains("another user namespace"), "{why}");
    for topic in ["priority", "xdp:"] {
        assert_eq!(finding(&report, topic)["status"], "warn", "{report}");
    }
    // In a network of the sandbox, a port opens.
    let script = "ip link set dev lo up; \"$1\" run packet:lo null --time 1ms >&2; \
                  \"$1\" doctor --json";
    let Some(said) = in_a_sandbox(&["--net"], script) else {
        return;
    };
    let found = finding(&said.json(), "ports")["found"].to_string();
    assert!(!found.contains("CAP_NET_"), "{found}");
}

#[test]
fn doctor_promises_no_exec_where_it_fails() {
    let script = "echo 0 > /proc/sys/user/max_net_namespaces; \"$1\" doctor --json";
    let Some(said) = in_a_sandbox(&["--net"], script) else {
        return;
    };
    let report = said.json();
    assert_eq!(finding(&report, "exec")["status"], "fail", "{report}");
    assert_ne!(finding(&report, "namespaces")["status"], "ok", "{report}");
    let ports = finding(&report, "ports").to_string();
    assert!(!ports.contains("exec works"), "{ports}");
}

#[test]
fn a_missing_control_file_of_tap_devices_has_a_remedy() {
    let script = "mount -t tmpfs none /dev/net && \"$1\" run tap:lw0 null --time 1ms; \
                  \"$1\" exec --port tap -- true";
    let Some(said) = in_a_sandbox(&["--net", "--mount"], script) else {
        return;
    };
    assert_eq!(said.stderr.matches("modprobe tun").count(), 2, "{said:?}");
    assert_eq!(
        said.stderr.matches("--device /dev/net/tun").count(),
        2,
        "{said:?}"
    );
}

#[test]
fn too_few_addresses_are_named_with_the_limit() {
    for words in ["run null null", "exec -q -- true"] {
        let script = format!("ulimit -v 420000; exec \"$1\" {words}");
        let said = Command::new("sh")
            .args(["-c", &script, "sh", PROGRAM])
            .output();
        let said = ran(said.expect("a shell"));
        assert_eq!(said.code, 1, "{said:?}");
        for word in [
            "ulimit -v` limits the address space to 410 MiB",
            "ulimit -v unlimited",
            "--memory",
        ] {
            assert!(said.stderr.contains(word), "no '{word}': {said:?}");
        }
    }
    let script = "ulimit -v 420000; exec \"$1\" doctor --json";
    let said = Command::new("sh")
        .args(["-c", script, "sh", PROGRAM])
        .output();
    let report = ran(said.expect("a shell")).json();
    assert_eq!(finding(&report, "addresses")["status"], "warn", "{report}");
}

#[test]
fn the_hint_for_a_device_that_is_down_works_for_any_name() {
    let Some(place) = namespace() else { return };
    // Each name is also an option of `ip link set`.
    let add = [
        "ip", "link", "add", "name", "a", "type", "veth", "peer", "name", "up",
    ];
    assert_eq!(run_in(&place, &add).code, 0);
    for device in ["a", "up"] {
        let run = ["run", &format!("packet:{device}"), "null", "--time", "1ms"];
        let refused = inside(&place, &run);
        assert_eq!(refused.code, 1, "{refused:?}");
        let hint = refused.stderr.split("bring it up with: ").nth(1);
        let hint = hint.unwrap_or_else(|| panic!("no hint: {refused:?}"));
        let words: Vec<&str> = hint.split_whitespace().collect();
        let followed = run_in(&place, &words);
        assert_eq!(followed.code, 0, "{words:?}: {followed:?}");
        let again = inside(&place, &run);
        assert_eq!(again.code, 0, "{again:?}");
    }
}
