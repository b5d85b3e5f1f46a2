//! Messages for requests that the system refuses, and the findings of `doctor` in the same cases.

use longwire_testbed::support::namespace;
use serde_json::Value;

use super::{AS_ROOT, unshared};
use crate::common::list;
use crate::common::program::{Ran, change, run, run_in};

/// Runs a script as root of a user namespace, without privileges outside it; `$1` is the program.
fn in_a_sandbox(options: &[&str], script: &str) -> Option<Ran> {
    unshared(&[&AS_ROOT, options].concat(), script, &[])
}

/// Returns the finding of `doctor` on a topic.
#[track_caller]
fn finding<'a>(report: &'a Value, topic: &str) -> &'a Value {
    let groups = list(&report["groups"]).iter();
    let mut findings = groups.flat_map(|group| list(&group["findings"]));
    let Some(found) = findings.find(|finding| finding["topic"] == topic) else {
        panic!("no {topic}: {report}");
    };
    found
}

#[test]
fn a_run_without_rights_has_the_remedy_of_doctor() {
    let Some(refused) = in_a_sandbox(&[], "\"$1\" run packet:lo null") else {
        return;
    };
    let refused = refused.exits(1).says("Operation not permitted");
    refused
        .says("sudo setcap cap_net_admin")
        .says("longwire exec");
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
    // A port can be opened in a network that belongs to the sandbox.
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
    for remedy in ["modprobe tun", "--device /dev/net/tun"] {
        assert_eq!(said.stderr.matches(remedy).count(), 2, "{said:?}");
    }
}

#[test]
fn too_few_addresses_are_named_with_the_limit() {
    let longwire = env!("CARGO_BIN_EXE_longwire");
    let limited = |line| run(format!("sh -c 'ulimit -v 420000; exec {longwire} {line}'"));
    for line in ["run null null", "exec -q -- true"] {
        let said = limited(line).exits(1);
        let said = said.says("ulimit -v` limits the address space to 410 MiB");
        said.says("ulimit -v unlimited").says("--memory");
    }
    let report = limited("doctor --json").json();
    assert_eq!(finding(&report, "addresses")["status"], "warn", "{report}");
}

#[test]
fn the_hint_for_a_device_that_is_down_works_for_any_name() {
    let Some(place) = namespace() else { return };
    // Each name is also a keyword of `ip link set`.
    change(&place, "ip link add name a type veth peer name up");
    for device in ["a", "up"] {
        let line = format!("longwire run packet:{device} null --time 1ms");
        let refused = run_in(&place, &line).exits(1);
        let hint = refused.stderr.split("bring it up with: ").nth(1);
        change(
            &place,
            hint.unwrap_or_else(|| panic!("no hint: {refused:?}")),
        );
        run_in(&place, &line).well();
    }
}
