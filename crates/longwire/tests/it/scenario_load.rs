//! Scenarios with more work than time: signals end them between any two commands, live
//! and in virtual time.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::process::RunningProgram;
use crate::common::site::Site;
use crate::common::{EPOCH, write};
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_testbed::support::{Folder, compile_plugin, namespace};
use nix::sys::signal::Signal;

/// A scenario of maximum load.
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

/// Writes two frames, a day apart.
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
    let Some(here) = namespace() else { return };
    let dir = Folder::new();
    let (file, input) = (dir.file("busy.toml"), dir.file("in.pcap"));
    write(&file, BUSY.as_bytes());
    capture(&input);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["simulate", &file, "--in", &format!("a={input}")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = RunningProgram::start(&here, &mut command);
    std::thread::sleep(Duration::from_millis(1_500));
    running.signal(Signal::SIGTERM);
    // The test waits for the end of the run, but not for a day.
    let ended = running.end();
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("interrupted"), "{ended:?}");
}

#[test]
fn a_run_ends_at_a_signal_however_much_its_scenario_does() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    let dir = Folder::new();
    let file = dir.file("busy.toml");
    write(&file, BUSY.as_bytes());
    let running = site.start(&file);
    std::thread::sleep(Duration::from_millis(1_500));
    let report = running.stop();
    let changes = &report["changes"];
    assert!(changes["forgotten"].as_u64() > Some(0), "{changes}");
}

/// A plugin that creates states slowly.
const SLOW: &str = r#"
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include "longwire_plugin.h"

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **out)
{
    struct timespec time = {2, 0};
    (void)host; (void)parameters; (void)hints;
    nanosleep(&time, NULL);
    *out = (void *)host;
    return LONGWIRE_OK;
}

static void destroy(void *state)
{
    (void)state;
}

static int lose(void *state, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    (void)state; (void)random; (void)packets;
    for (size_t i = 0; i < count; i++)
        fates[i] = LONGWIRE_DELIVER;
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "slow",
    .create = create,
    .destroy = destroy,
    .lose = lose,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void)
{
    return &plugin;
}
"#;

#[test]
fn a_single_command_that_takes_long_to_prepare_counts_as_late() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    let dir = Folder::new();
    let (source, library) = (dir.file("slow.c"), dir.file("slow.so"));
    write(&source, SLOW.as_bytes());
    compile_plugin(&source, &library);
    // Preparation begins 2 s before the command is due, and creates two states.
    let text = format!(
        "[ports]\na = \"packet:p0\"\nb = \"packet:p1\"\n\n[[link]]\nname = \"x\"\n\n\
         [[at]]\ntime = \"2500ms\"\nset = {{ x = {{ loss = \"plugin:{library}\" }} }}\n"
    );
    let file = dir.file("slow.toml");
    write(&file, text.as_bytes());
    let ran = site.start_with(&[&file, "--time", "9s"]).end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let late = "the scenario fell behind: 1 command";
    assert!(ran.stdout.contains(late), "{ran:?}");
}
