//! Plugins on the command line: their decisions, failures with exit code 1 and a
//! message, and errors reported before the run starts.

use std::path::Path;

use crate::common::{EPOCH, frames, longwire, pcap, write};
use longwire_testbed::support::{Folder, compile_plugin, words};

/// Compiles a plugin of the repository.
fn compile(dir: &Folder, source: &str) -> String {
    let library = dir.file("plugin.so");
    compile_plugin(source, &library);
    library
}

const PROBE: &str = "crates/longwire-runtime/tests/it/plugins/probe.c";

/// Writes a capture of 300 frames, 1 ms apart; the first byte of each is its number.
/// Returns its path.
fn capture(dir: &Folder) -> String {
    let input = dir.file("in.pcap");
    let frame = |number: u64| (EPOCH + number * 1_000_000, 60);
    write(&input, &pcap(&(0..300).map(frame).collect::<Vec<_>>()));
    input
}

#[test]
fn a_plugin_decides_and_the_report_shows_it() {
    let dir = Folder::new();
    let library = compile(&dir, "examples/plugins/data_loss.c");
    let (input, output) = (capture(&dir), dir.file("out.pcap"));
    // The first byte is the number modulo 256: 0x1f occurs twice in 300.
    let loss = format!("plugin:file={library},bytes=1f2021");
    let ran = longwire(&["simulate", &input, &output, "--loss", &loss, "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = &ran.json()["links"][0];
    assert_eq!(report["drops"]["content"], 2, "{report}");
    assert_eq!(report["config"]["loss"], loss);
    assert_eq!(frames(&output).len(), 298);
}

/// Runs a command whose plugin fails at the 101st frame: the output capture holds at
/// most the frames before it.
fn assert_fault_ends(command: &str) {
    let dir = Folder::new();
    let library = compile(&dir, PROBE);
    let (input, output) = (capture(&dir), dir.file("out.pcap"));
    let delay = format!("--delay plugin:{library},after=100,fault=hook");
    let command = command.replace("INPUT", &input).replace("OUTPUT", &output);
    let ran = longwire(&words(&format!("{command} {delay}")));
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = format!("plugin {library}: delay: no more of this");
    assert!(ran.stderr.contains(&expected), "{ran:?}");
    let came = frames(&output).len();
    assert!(came <= 100, "{came} frames after a fault at the 101st");
}

#[test]
fn a_fault_ends_the_simulation_with_its_message() {
    assert_fault_ends("simulate INPUT OUTPUT");
}

#[test]
fn a_fault_ends_the_generation_of_a_capture_with_its_message() {
    assert_fault_ends("generate --to pcap:OUTPUT --rate 1kpps --count 300");
}

#[test]
fn a_fault_ends_a_live_run_with_its_message() {
    let dir = Folder::new();
    let library = compile(&dir, PROBE);
    let a = format!("pcap:in={}", capture(&dir));
    let b = format!("pcap:out={}", dir.file("out.pcap"));
    let rewrite = format!("plugin:{library},after=20,fault=hook");
    let ran = longwire(&["run", &a, &b, "--one-way", "--rewrite", &rewrite, "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let message = format!("plugin {library}: rewrite: no more of this");
    assert_eq!(ran.json()["error"], message);
    assert!(ran.stderr.contains(&message), "{ran:?}");
}

#[test]
fn logs_of_a_plugin_reach_standard_error_within_limits() {
    let dir = Folder::new();
    let library = compile(&dir, PROBE);
    let (input, output) = (capture(&dir), dir.file("out.pcap"));
    let delay = format!("plugin:{library},fault=log");
    let ran = longwire(&["simulate", &input, &output, "--delay", &delay]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let line = "plugin probe: a line of the plugin's\n";
    assert_eq!(ran.stderr.matches(line).count(), 100, "{ran:?}");
    let last = "plugin probe: omitting further messages\n";
    assert_eq!(ran.stderr.matches(last).count(), 1, "{ran:?}");
}

#[test]
fn errors_in_a_plugin_are_reported_before_anything_runs() {
    let dir = Folder::new();
    let library = compile(&dir, PROBE);
    let (input, output) = (capture(&dir), dir.file("out.pcap"));
    for (loss, words) in [
        ("plugin:no-such.so".to_owned(), "no such file"),
        (
            format!("plugin:{library},fault=create"),
            "this one is made to fail",
        ),
        (
            format!("plugin:{library},colour=red"),
            "unknown parameter 'colour'",
        ),
        (
            format!("plugin:{library},real=x"),
            "real: 'x' is not a number",
        ),
        ("plugin:".to_owned(), "'file' must be given"),
    ] {
        let ran = longwire(&["simulate", &input, &output, "--loss", &loss]);
        assert_eq!(ran.code, 2, "{loss}: {ran:?}");
        assert!(ran.stderr.contains(words), "{loss}: {ran:?}");
        assert!(ran.stderr.contains("loss"), "{loss}: {ran:?}");
        assert!(!Path::new(&output).exists(), "{loss}");
    }
}

#[test]
fn its_cost_is_measured_hook_by_hook() {
    let dir = Folder::new();
    let library = compile(&dir, "examples/plugins/bursty_wireless.c");
    let arguments = ["bench", "plugin", &library, "good=8ms,bad=1ms", "loss=30%"];
    let quick: Vec<&str> = arguments.into_iter().chain(["--quick", "--json"]).collect();
    let ran = longwire(&quick);
    assert_eq!(ran.code, 0, "{ran:?}");
    let rows = ran.json();
    let hooks: Vec<&str> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["hook"].as_str().expect("a hook"))
        .collect();
    assert_eq!(hooks, ["loss", "delay"]);
    assert!(rows[0]["arrays_of_1"].as_f64().expect("a figure") > 0.0);
    let ran = longwire(&["bench", "plugin", &library, "good=8ms", "--quick"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("missing parameter bad"), "{ran:?}");
}
