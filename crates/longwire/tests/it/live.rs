//! `run` and `exec` through the program: reports and exit codes.
//!
//! `exec` needs namespaces. Without permission to create them, its tests pass without
//! running, except in CI.

use crate::common::{EPOCH, Ran, longwire, pcap, write};
use longwire_testbed::support::{Folder, words};

const MS: u64 = 1_000_000;

/// Runs `exec -q` with these arguments, if namespaces can be created.
fn exec(arguments: &[&str]) -> Option<Ran> {
    let ran = longwire(&[&["exec", "-q"], arguments].concat());
    let impossible = ran.code == 1 && ran.stderr.contains("namespace");
    assert!(!impossible || std::env::var_os("CI").is_none(), "{ran:?}");
    (!impossible).then_some(ran)
}

#[test]
fn run_names_its_directions_and_ends_with_its_time() {
    let dir = Folder::new();
    let input = dir.file("in.pcap");
    write(&input, &pcap(&[(EPOCH, 100), (EPOCH + 60_000 * MS, 100)]));
    let from = format!("pcap:in={input}");
    let to = format!("pcap:out={}", dir.file("out.pcap"));
    let links = ["--ab-delay", "1ms", "--down-delay", "2ms"];
    let ran = longwire(
        &[
            &["run", &from, &to, "--time", "300ms", "--json"],
            &links[..],
        ]
        .concat(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    assert_eq!(report["links"][0]["name"], "link.up");
    assert_eq!(report["links"][0]["config"]["delay"], "1ms");
    assert_eq!(report["links"][0]["packets_out"], 1);
    assert_eq!(report["links"][1]["name"], "link.down");
    assert_eq!(report["links"][1]["config"]["delay"], "2ms");
    // --require knows every kind of artifact that the runtime counts.
    let artifacts = report["ports"][0]["artifacts"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    assert!(!artifacts.is_empty());
    for kind in artifacts.keys() {
        assert!(longwire_runtime::Artifact::named(kind).is_some(), "{kind}");
    }
    let took = report["duration_s"].as_f64().unwrap_or(0.0);
    assert!((0.3..30.0).contains(&took), "{took}");
}

#[test]
fn exec_passes_on_the_exit_code_of_its_command() {
    for (command, code) in [("true", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let Some(ran) = exec(&["--delay", "1ms", "--", "sh", "-c", command]) else {
            return;
        };
        assert_eq!(ran.code, code, "{command}: {ran:?}");
        assert!(ran.stderr.is_empty(), "-q says nothing: {ran:?}");
    }
    let missing = exec(&["--", "no-such-command"]);
    assert_eq!(
        missing.as_ref().map(|ran| ran.code),
        Some(127),
        "{missing:?}"
    );
    assert!(missing.is_some_and(|ran| ran.stderr.contains("no-such-command")));
}

#[test]
fn exec_reports_next_to_the_commands_own_output() {
    let dir = Folder::new();
    let file = dir.file("report.json");
    let options = format!("--up-delay 1ms --down-rate 5mbit --report {file}");
    let command = ["--", "sh", "-c", "echo $LONGWIRE_FAR"];
    let Some(ran) = exec(&[&words(&options)[..], &command].concat()) else {
        return;
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "10.77.0.2\n");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(report["links"][0]["name"], "link.up");
    assert_eq!(report["links"][0]["config"]["delay"], "1ms");
    assert_eq!(report["links"][1]["name"], "link.down");
    assert_eq!(report["links"][1]["config"]["rate"], "5mbit");

    let unmet = exec(&["--require", "packets_in>=1000000", "--", "true"]);
    assert_eq!(unmet.as_ref().map(|ran| ran.code), Some(3), "{unmet:?}");
}

#[test]
fn exec_without_a_command_probes_the_link() {
    let Some(ran) = exec(&["--delay", "10ms", "--rate", "20mbit", "--json"]) else {
        return;
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    let rtt = report["probe"]["rtt_ms"].as_f64().unwrap_or(0.0);
    // Never early; the benches measure lateness.
    assert!(rtt >= 20.0, "{rtt}");
    assert!(
        report["links"][0]["packets_out"].as_u64() > Some(100),
        "{report}"
    );
}
