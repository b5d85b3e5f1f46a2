//! Scenarios with more work than time: signals end them between any two
//! commands, live and in virtual time.

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::process::Running;
use common::site::Site;
use common::wire::namespace;
use common::{Dir, EPOCH, write};
use longwire_engine::Nanos;
use longwire_io::port::pcap::CaptureWriter;
use nix::sys::signal::Signal;

/// As much as a scenario may do.
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

/// Two frames, a day apart.
fn capture(file: &str) {
    let mut writer = CaptureWriter::create(file).expect("a file");
    for at in [EPOCH, EPOCH + 86_400 * 1_000_000_000] {
        let written = writer.write(Nanos::from_nanos(at), &[2; 60], 60);
        written.expect("room");
    }
    writer.finish().expect("room");
}

#[test]
fn a_simulation_ends_at_a_signal_between_two_frames() {
    let Some(here) = namespace() else {
        return;
    };
    let dir = Dir::new();
    let (file, input) = (dir.file("busy.toml"), dir.file("in.pcap"));
    write(&file, BUSY.as_bytes());
    capture(&input);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["simulate", &file, "--in", &format!("a={input}")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::start(&here, &mut command);
    std::thread::sleep(Duration::from_millis(1_500));
    running.signal(Signal::SIGTERM);
    // Its end is waited for, but not for the day.
    let ended = running.end();
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("interrupted"), "{ended:?}");
}

#[test]
fn a_run_ends_at_a_signal_however_much_its_scenario_does() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    let dir = Dir::new();
    let file = dir.file("busy.toml");
    write(&file, BUSY.as_bytes());
    let running = site.start(&file);
    std::thread::sleep(Duration::from_millis(1_500));
    let report = running.stop();
    let changes = &report["changes"];
    assert!(changes["forgotten"].as_u64() > Some(0), "{changes}");
}
