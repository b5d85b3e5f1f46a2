//! Plugins that hang, call `exit` or crash: the program ends with the plugin's name,
//! and never with exit code 0.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::process::{RunningProgram, eventually};
use crate::common::{EPOCH, pcap, write};
use longwire_testbed::support::{Folder, compile_plugin};
use nix::sys::signal::Signal;

/// A plugin with every fault, and a capture of 300 frames, 1 ms apart.
struct Site {
    dir: Folder,
    library: String,
    input: String,
}

impl Site {
    fn new() -> Site {
        let dir = Folder::new();
        let (library, input) = (dir.file("plugin.so"), dir.file("in.pcap"));
        compile_plugin("crates/longwire-runtime/tests/it/plugins/probe.c", &library);
        let frame = |number: u64| (EPOCH + number * 1_000_000, 60);
        write(&input, &pcap(&(0..300).map(frame).collect::<Vec<_>>()));
        Site {
            dir,
            library,
            input,
        }
    }

    /// Returns the model whose 21st call has this fault.
    fn model(&self, fault: &str) -> String {
        format!("plugin:{},after=20,fault={fault}", self.library)
    }

    /// Starts a live run with this fault in the hook `delay`.
    fn run(&self, fault: &str, more: &[&str]) -> RunningProgram {
        let a = format!("pcap:in={}", self.input);
        let b = format!("pcap:out={}", self.dir.file("out.pcap"));
        let model = self.model(fault);
        let given = ["run", &a, &b, "--one-way", "--delay", &model, "--json"];
        start(given.iter().chain(more).copied())
    }

    /// Starts a simulation with this fault in the hook `delay`.
    fn simulate(&self, fault: &str, more: &[&str]) -> RunningProgram {
        let output = self.dir.file("out.pcap");
        let model = self.model(fault);
        let given = ["simulate", &self.input, &output, "--delay", &model];
        start(given.iter().chain(more).copied())
    }

    /// Starts generating a capture with this fault in the hook `delay`.
    fn generate(&self, fault: &str, more: &[&str]) -> RunningProgram {
        let to = format!("pcap:{}", self.dir.file("out.pcap"));
        let model = self.model(fault);
        let given = ["generate", "--to", &to, "--rate", "1kpps", "--count", "300"];
        let given = given.into_iter().chain(["--delay", &model]);
        start(given.chain(more.iter().copied()))
    }

    /// Waits until the thread `thread` is in the call that hangs.
    fn wait_until_stuck(&self, child: &mut RunningProgram, thread: &str) {
        // The call sleeps for a second at a time, so its thread is in the kernel's
        // nanosleep.
        let threads = format!("/proc/{}/task", child.child().id());
        eventually("no stuck thread", || {
            let entries = std::fs::read_dir(&threads).into_iter().flatten().flatten();
            let mut entries = entries.map(|entry| entry.path());
            entries.any(|entry| {
                let name = std::fs::read_to_string(entry.join("comm")).unwrap_or_default();
                let call = std::fs::read_to_string(entry.join("syscall")).unwrap_or_default();
                let sleeps = call.starts_with(&format!("{} ", libc::SYS_clock_nanosleep));
                name.trim_end() == thread && sleeps && self.has_begun()
            })
        });
    }

    fn has_begun(&self) -> bool {
        Path::new(&self.dir.file("out.pcap")).exists()
    }

    /// Returns the message about the hook.
    fn says(&self, what: &str) -> String {
        format!("plugin {}: delay: {what}", self.library)
    }
}

fn start<'a>(arguments: impl Iterator<Item = &'a str>) -> RunningProgram {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    RunningProgram::of(command.spawn().expect("it starts"))
}

/// Asserts exit code 1 and a report with this error.
fn assert_reported(child: RunningProgram, message: &str) {
    let ran = child.end();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains(message), "{ran:?}");
    let error = ran.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains(message), "{error}");
}

#[test]
fn a_stop_ends_a_run_whose_plugin_does_not_return() {
    let site = Site::new();
    for stop in [Signal::SIGTERM, Signal::SIGINT] {
        let mut child = site.run("loop", &[]);
        site.wait_until_stuck(&mut child, "longwire-0");
        child.signal(stop);
        assert_reported(child, &site.says("has not returned"));
    }
}

#[test]
fn a_second_stop_ends_it_at_once_with_its_report() {
    let site = Site::new();
    let log = site.dir.file("log.csv");
    let mut child = site.run("loop", &["--log", &log]);
    site.wait_until_stuck(&mut child, "longwire-0");
    child.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(100));
    child.signal(Signal::SIGTERM);
    assert_reported(child, &site.says("has not returned"));
}

#[test]
fn the_watchdog_ends_a_run_whose_plugin_does_not_return() {
    let site = Site::new();
    let log = site.dir.file("log.csv");
    let child = site.run("loop", &["--log", &log]);
    assert_reported(child, &site.says("has not returned for 5 s"));
    // Rows recorded before the fault are written.
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.lines().count() > 10, "{log}");
}

#[test]
fn the_watchdog_ends_offline_commands_whose_plugin_does_not_return() {
    let site = Site::new();
    let message = site.says("has not returned for 5 s");
    let report = site.dir.file("report.json");
    assert_reported(
        site.simulate("loop", &["--json", "--report", &report]),
        &message,
    );
    let report = std::fs::read_to_string(report).expect("a report");
    assert!(report.contains("has not returned for 5 s"), "{report}");
    assert_reported(site.generate("loop", &["--json"]), &message);
}

#[test]
fn two_stops_end_a_simulation_whose_plugin_does_not_return() {
    let site = Site::new();
    let mut child = site.simulate("loop", &["--json"]);
    site.wait_until_stuck(&mut child, "longwire");
    for _ in 0..2 {
        child.signal(Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_reported(child, &site.says("has not returned"));
}

#[test]
fn exit_in_a_plugin_fails_the_run() {
    let site = Site::new();
    let child = site.run("exit", &["--require", "packets_in=300"]);
    assert_reported(child, &site.says("called exit"));
    let ran = site.simulate("exit", &[]).end();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains(&site.says("called exit")), "{ran:?}");
    let ran = site.run("thread", &[]).end();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("called exit"), "{ran:?}");
}

#[test]
fn a_crash_in_a_plugin_names_it() {
    let site = Site::new();
    for (fault, by) in [
        ("memory", libc::SIGSEGV),
        ("abort", libc::SIGABRT),
        ("divide", libc::SIGFPE),
    ] {
        for child in [site.run(fault, &[]), site.simulate(fault, &[])] {
            let ran = child.end();
            assert_eq!(ran.signal, Some(by), "{fault}: {ran:?}");
            let message = site.says("crashed (SIG");
            assert_eq!(ran.stderr.matches(&message).count(), 1, "{fault}: {ran:?}");
        }
    }
    // The standard library also reports a stack overflow, then aborts.
    for child in [site.run("stack", &[]), site.simulate("stack", &[])] {
        let ran = child.end();
        assert!(ran.signal.is_some(), "{ran:?}");
        assert!(ran.stderr.contains(&site.says("crashed (SIG")), "{ran:?}");
    }
}
