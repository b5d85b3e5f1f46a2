//! Verdicts on real runs: they name faults and make `--require` fail.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::program::{RunningProgram, eventually};
use crate::common::{count, list, number, read_json};
use crate::exec::User;

/// The requirement that the documentation recommends for CI.
const CI: &str = "nearly-faithful,packets_in>0";

/// Returns the total of one kind of artifact over all ports of a report.
fn artifacts(report: &Value, kind: &str) -> u64 {
    let ports = list(&report["ports"]).iter();
    ports.map(|port| count(&port["artifacts"][kind])).sum()
}

/// Returns the number of frames over all ports that were later than `bound` microseconds, counting
/// only histogram bins entirely above it.
fn count_later_than(report: &Value, bound: f64) -> u64 {
    let ports = list(&report["ports"]).iter();
    let ranges = ports.flat_map(|port| list(&port["lateness_histogram_us"]));
    // Upper bounds of bins are 1, 2 and 5 of each decade, and null above a second.
    let later = ranges.filter(|range| range[0].as_f64().unwrap_or(f64::INFINITY) / 2.5 >= bound);
    later.map(|range| count(&range[1])).sum()
}

#[test]
fn a_stopped_process_is_named_and_fails_the_requirement() {
    for user in User::with(["ping"]).into_iter().take(1) {
        let command = "sh -c 'touch begun; exec ping -q -i 0.01 -c 200 far'";
        let options = format!("--delay 20ms --require {CI} --report r.json");
        let running =
            RunningProgram::spawn(&mut user.exec_piped(format!("{options} -- {command}")));
        let begun = user.dir.file("begun");
        eventually("no command", || Path::new(&begun).exists());
        std::thread::sleep(Duration::from_millis(500));
        running.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(1_200));
        running.signal(Signal::SIGCONT);
        running.end().exits(3).says("the process was stopped");
        let report = read_json(&user.dir.file("r.json"));
        assert!(count(&report["stops"]["count"]) >= 1, "{report}");
        assert!(number(&report["stops"]["max_us"]) > 400_000.0, "{report}");
        // Frames more than 300 ms late are late because of the stop. They count as `late`: a stop is
        // not a machine pause, and a pause above 100 ms excuses nothing.
        let stopped = count_later_than(&report, 300_000.0);
        let late = artifacts(&report, "late");
        assert!(stopped > 0 && late >= stopped, "{stopped}: {report}");
    }
}

#[test]
fn too_little_memory_is_named_and_fails_the_requirement() {
    for user in User::with(["ping"]).into_iter().take(1) {
        let link = format!("--delay 1s --memory 256kb --require {CI} --report r.json");
        // Four requests fill the memory, even if ping sends slowly.
        let ran = user
            .exec(format!("{link} -- ping -q -i 0.02 -s 60000 -c 30 far"))
            .exits(3);
        let ran = ran
            .says("not faithful: the emulator lost frames")
            .says("raise --memory");
        ran.says("not met: nearly-faithful");
        assert!(artifacts(&read_json(&user.dir.file("r.json")), "memory") > 0);
    }
}
