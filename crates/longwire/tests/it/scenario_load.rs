//! Scenarios with more work than time: a signal ends them between any two commands, both live and
//! in virtual time.

use std::time::Duration;

use crate::common::plugin::compile_threaded;
use crate::common::program::start;
use crate::common::site::Site;
use crate::common::{EPOCH, count, pcap, write};
use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;

/// A scenario with as much work as possible.
const BUSY: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[[link]]
name = "x"

[[at]]
time = "0s"
set = { x = { delay = "1ms" } }
every = "10us"
"#;

/// Time after which a run is busy with its scenario.
const SOON: Duration = Duration::from_millis(1_500);

#[test]
fn a_simulation_ends_at_a_signal_between_two_frames() {
    let dir = Folder::new();
    let (file, input) = (dir.file("busy.toml"), dir.file("in.pcap"));
    write(&file, BUSY);
    // The two frames are a day apart.
    write(
        &input,
        pcap(&[(EPOCH, 60), (EPOCH + 86_400_000_000_000, 60)]),
    );
    let running = start(format!("longwire simulate {file} --in a={input}"));
    std::thread::sleep(SOON);
    // `end_by` waits for the end of the run, which must come soon.
    running.end_by(Signal::SIGTERM).exits(1).says("interrupted");
}

#[test]
fn a_run_ends_at_a_signal_however_much_its_scenario_does() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    let running = site.start_network(&Folder::new(), BUSY, "");
    std::thread::sleep(SOON);
    let changes = &running.stop()["changes"];
    assert!(count(&changes["forgotten"]) > 0, "{changes}");
}

#[test]
fn a_single_command_that_takes_long_to_prepare_counts_as_late() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    let dir = Folder::new();
    let library = compile_threaded(&dir);
    // Preparation begins 2 s before the command is due, and creates two states.
    let text = format!(
        "[ports]\na = \"packet:p0\"\nb = \"packet:p1\"\n\n[[link]]\nname = \"x\"\n\n\
         [[at]]\ntime = \"2500ms\"\nset = {{ x = {{ loss = \"plugin:file={library},sleep=2\" }} }}\n"
    );
    let ran = site.start_network(&dir, &text, "--time 9s").running.end();
    ran.well().prints("the scenario fell behind: 1 command");
}
