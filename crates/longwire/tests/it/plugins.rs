//! Plugins on the command line: decisions, errors, hangs and crashes. A fault ends the program with
//! an error that names the plugin, and with a nonzero exit code.

use std::path::Path;
use std::time::Duration;

use longwire_testbed::support::{Folder, compile_plugin};
use nix::sys::signal::Signal;

use crate::common::program::{RunningProgram, eventually, json_of, longwire, start};
use crate::common::{EPOCH, MS, assert_refused, frames, list, number, pcap, read, write};

/// A compiled plugin, and a capture of 300 frames, 1 ms apart. Each frame's first byte is its
/// number.
struct Site {
    dir: Folder,
    library: String,
    input: String,
    output: String,
}

impl Site {
    /// Compiles a plugin from the repository.
    fn of(source: &str) -> Site {
        let dir = Folder::new();
        let [library, input, output] =
            ["plugin.so", "in.pcap", "out.pcap"].map(|name| dir.file(name));
        compile_plugin(source, &library);
        let frames = (0..300).map(|number| (EPOCH + number * MS, 60));
        write(&input, pcap(&frames.collect::<Vec<_>>()));
        Site {
            dir,
            library,
            input,
            output,
        }
    }

    /// Compiles a plugin that can cause every fault.
    fn new() -> Site {
        Site::of("crates/longwire-runtime/tests/it/plugins/probe.c")
    }

    fn run_line(&self) -> String {
        format!(
            "run pcap:in={} pcap:out={} --one-way",
            self.input, self.output
        )
    }

    fn simulate_line(&self) -> String {
        format!("simulate {} {}", self.input, self.output)
    }

    fn generate_line(&self) -> String {
        format!(
            "generate --to pcap:{} --rate 1kpps --count 300",
            self.output
        )
    }

    /// Starts a command with a plugin that has this fault in the 21st call of its `delay` hook.
    fn start(&self, line: &str, fault: &str, more: &str) -> RunningProgram {
        let model = format!("--delay plugin:{},after=20,fault={fault}", self.library);
        start(format!("longwire {line} {model} {more}"))
    }

    /// Starts a live run with a fault.
    fn run(&self, fault: &str, more: &str) -> RunningProgram {
        self.start(&self.run_line(), fault, &format!("--json {more}"))
    }

    /// Starts a simulation with a fault.
    fn simulate(&self, fault: &str, more: &str) -> RunningProgram {
        self.start(&self.simulate_line(), fault, more)
    }

    /// Waits until a thread is in the plugin call that hangs.
    fn wait_until_stuck(&self, child: &RunningProgram, thread: &str) {
        // The call sleeps for one second at a time, so its thread is in the kernel's nanosleep.
        let threads = format!("/proc/{}/task", child.id());
        eventually("no stuck thread", || {
            let entries = std::fs::read_dir(&threads).into_iter().flatten().flatten();
            let mut entries = entries.map(|entry| entry.path());
            entries.any(|entry| {
                let name = std::fs::read_to_string(entry.join("comm")).unwrap_or_default();
                let call = std::fs::read_to_string(entry.join("syscall")).unwrap_or_default();
                let sleeps = call.starts_with(&format!("{} ", libc::SYS_clock_nanosleep));
                name.trim_end() == thread && sleeps && Path::new(&self.output).exists()
            })
        });
    }

    /// Returns the message about the hook.
    fn says(&self, what: &str) -> String {
        format!("plugin {}: delay: {what}", self.library)
    }

    /// Asserts exit code 1 and a report with this error.
    #[track_caller]
    fn assert_reported(&self, child: RunningProgram, what: &str) {
        let message = self.says(what);
        let error = child.end().exits(1).says(&message).json()["error"].to_string();
        assert!(error.contains(&message), "{error}");
    }
}

#[test]
fn a_plugin_decides_and_the_report_shows_it() {
    let site = Site::of("examples/plugins/data_loss.c");
    // The first byte is the number modulo 256, so 0x1f occurs twice in 300 frames.
    let loss = format!("plugin:file={},bytes=1f2021", site.library);
    let ran = longwire(format!("{} --loss {loss} --json", site.simulate_line())).well();
    let report = &ran.json()["links"][0];
    assert_eq!(report["drops"]["content"], 2, "{report}");
    assert_eq!(report["config"]["loss"], loss);
    assert_eq!(frames(&site.output).len(), 298);
}

/// The output capture contains only frames before the fault.
#[test]
fn a_fault_ends_offline_commands_with_its_message() {
    let site = Site::new();
    for line in [site.simulate_line(), site.generate_line()] {
        let delay = format!("--delay plugin:{},after=100,fault=hook", site.library);
        longwire(format!("{line} {delay}"))
            .exits(1)
            .says(site.says("no more of this"));
        let came = frames(&site.output).len();
        assert!(came <= 100, "{came} frames after a fault at the 101st");
    }
}

#[test]
fn a_fault_ends_a_live_run_with_its_message() {
    let site = Site::new();
    let rewrite = format!("--rewrite plugin:{},after=20,fault=hook", site.library);
    let ran = longwire(format!("{} {rewrite} --json", site.run_line())).exits(1);
    let message = format!("plugin {}: rewrite: no more of this", site.library);
    assert_eq!(ran.json()["error"], message);
    ran.says(message);
}

#[test]
fn logs_of_a_plugin_reach_standard_error_within_limits() {
    let site = Site::new();
    let delay = format!("--delay plugin:{},fault=log", site.library);
    let ran = longwire(format!("{} {delay}", site.simulate_line())).well();
    let line = "plugin probe: a line of the plugin's\n";
    assert_eq!(ran.stderr.matches(line).count(), 100, "{ran:?}");
    let last = "plugin probe: omitting further messages\n";
    assert_eq!(ran.stderr.matches(last).count(), 1, "{ran:?}");
}

#[test]
fn errors_in_a_plugin_are_reported_before_anything_runs() {
    let site = Site::new();
    let with = format!("{} --loss plugin:", site.simulate_line());
    let library = &site.library;
    assert_refused(&format!(
        "
        {with}no-such.so | 2 | loss; no such file
        {with}{library},fault=create | 2 | loss; this one is made to fail
        {with}{library},colour=red | 2 | loss; unknown parameter 'colour'
        {with}{library},real=x | 2 | loss; real: 'x' is not a number
        {with} | 2 | loss; 'file' is required
        "
    ));
    assert!(!Path::new(&site.output).exists());
}

#[test]
fn its_cost_is_measured_hook_by_hook() {
    let site = Site::of("examples/plugins/bursty_wireless.c");
    let bench = format!("bench plugin {} good=8ms --quick", site.library);
    let rows = json_of(format!("{bench} bad=1ms loss=30% --json"));
    let hooks: Vec<&str> = list(&rows)
        .iter()
        .filter_map(|row| row["hook"].as_str())
        .collect();
    assert_eq!(hooks, ["loss", "delay"]);
    assert!(number(&rows[0]["arrays_of_1"]) > 0.0);
    assert_refused(&format!("{bench} | 2 | missing parameter bad"));
}

#[test]
fn a_stop_ends_a_run_whose_plugin_does_not_return() {
    let site = Site::new();
    for stop in [Signal::SIGTERM, Signal::SIGINT] {
        let child = site.run("loop", "");
        site.wait_until_stuck(&child, "longwire-0");
        child.signal(stop);
        site.assert_reported(child, "has not returned");
        std::fs::remove_file(&site.output).expect("an output");
    }
}

#[test]
fn a_second_stop_ends_it_at_once_with_its_report() {
    let site = Site::new();
    let log = format!("--log {}", site.dir.file("log.csv"));
    let stop_twice = |child: RunningProgram, thread: &str, signal| {
        site.wait_until_stuck(&child, thread);
        child.signal(signal);
        std::thread::sleep(Duration::from_millis(100));
        child.signal(signal);
        site.assert_reported(child, "has not returned");
        std::fs::remove_file(&site.output).expect("an output");
    };
    stop_twice(site.run("loop", &log), "longwire-0", Signal::SIGTERM);
    stop_twice(site.simulate("loop", "--json"), "longwire", Signal::SIGINT);
}

#[test]
fn the_watchdog_ends_commands_whose_plugin_does_not_return() {
    let site = Site::new();
    let (log, report) = (site.dir.file("log.csv"), site.dir.file("report.json"));
    let overdue = "has not returned for 5 s";
    site.assert_reported(site.run("loop", &format!("--log {log}")), overdue);
    let simulated = site.simulate("loop", &format!("--json --report {report}"));
    site.assert_reported(simulated, overdue);
    site.assert_reported(site.start(&site.generate_line(), "loop", "--json"), overdue);
    // Rows recorded before the fault are in the log.
    let log = read(&log);
    assert!(log.lines().count() > 10, "{log}");
    assert!(read(&report).contains(overdue));
}

#[test]
fn exit_in_a_plugin_fails_the_run() {
    let site = Site::new();
    let child = site.run("exit", "--require packets_in=300");
    site.assert_reported(child, "called exit");
    site.simulate("exit", "")
        .end()
        .exits(1)
        .says(site.says("called exit"));
    site.run("thread", "").end().exits(1).says("called exit");
}

#[test]
fn a_crash_in_a_plugin_names_it() {
    let site = Site::new();
    let message = site.says("crashed (SIG");
    for (fault, by) in [
        ("memory", Some(libc::SIGSEGV)),
        ("abort", Some(libc::SIGABRT)),
        ("divide", Some(libc::SIGFPE)),
        // On a stack overflow, the standard library reports it, then aborts.
        ("stack", None),
    ] {
        // Start the programs one after the other, because both write the same capture.
        for start in [Site::run, Site::simulate] {
            let ran = start(&site, fault, "").end();
            let is_by = ran.signal.is_some() && (by.is_none() || ran.signal == by);
            assert!(is_by, "{fault}: {ran:?}");
            let said = ran.stderr.matches(&message).count();
            assert!(said == 1 || (by.is_none() && said > 1), "{fault}: {ran:?}");
        }
    }
}
