//! `simulate` end to end, compared with results computed by hand.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use longwire_testbed::support::{Folder, capture};
use nix::sys::signal::Signal;

use crate::common::program::{Ran, RunningProgram, longwire, piped, run};
use crate::common::{EPOCH, Frame, MS, frames, pcap, read_json, write};

/// Runs `simulate` on a capture with these bytes. Returns the run and the path of the output.
fn simulate(dir: &Folder, input: &[u8], options: &str) -> (Ran, String) {
    let (from, to) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&from, input);
    (longwire(format!("simulate {from} {to} {options}")), to)
}

/// Simulates these frames; returns the delivered ones.
#[track_caller]
fn simulated(input: &[Frame], options: &str) -> (Ran, Vec<Frame>) {
    let dir = Folder::new();
    let (ran, out) = simulate(&dir, &pcap(input), options);
    (ran.well(), frames(&out))
}

#[test]
fn a_full_queue_and_the_mtu_drop_and_say_so() {
    let input = [1000, 1000, 1000, 1000, 1000, 1515].map(|len| (EPOCH, len));
    let options = "--rate 1mbit --delay 50ms --queue 2p --mtu 1500 --json";
    let (ran, left) = simulated(&input, options);
    assert_eq!(left, [(EPOCH + 58 * MS, 1000), (EPOCH + 66 * MS, 1000)]);
    let report = ran.json();
    let link = &report["links"][0];
    assert_eq!(
        (&link["name"], &link["config"]["queue"]),
        (&"link.up".into(), &"2p".into())
    );
    let counts = ["packets_in", "packets_out", "bytes_in", "bytes_out"].map(|name| &link[name]);
    assert_eq!(counts, [6, 2, 6515, 2000]);
    let drops = ["queue_full", "mtu", "loss"].map(|reason| &link["drops"][reason]);
    assert_eq!(drops, [3, 1, 0]);
    for measure in ["p50", "p99", "p999", "max", "mean", "stddev"] {
        assert_eq!(report["ports"][0]["lateness_us"][measure], 0.0, "{measure}");
    }
    assert_eq!(ran.stderr, "", "--json says nothing on the side");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("a queue of 2p is too small"),
        "but warnings are in it: {notes}"
    );
}

#[test]
fn a_seed_repeats_itself_and_others_differ() {
    let input: Vec<_> = (0..2_000).map(|n| (EPOCH + n * MS, 200)).collect();
    let simulated = |options: &str| {
        let link = "--loss 10% --delay uniform:min=1ms,max=9ms";
        simulated(&input, &format!("{link} {options}")).1
    };
    let first = simulated("--seed 7");
    assert_eq!(first, simulated("--seed 7"));
    assert_ne!(first, simulated("--seed 8"));
    assert_ne!(first, simulated("--seed 7 --link down"));
    assert_eq!(simulated(""), simulated("--seed 1 --link up"));
}

#[test]
fn schedules_begin_with_the_first_frame_or_at_the_epoch() {
    let input: Vec<_> = (0..9).map(|n| (EPOCH + n * MS, 1_000)).collect();
    // One frame per millisecond; the link stalls after 4 ms.
    let rate = "--rate steps:at=0s/8mbit;4ms/0bit --json";
    let earlier = EPOCH - 2 * MS;
    for (epoch, begun, count) in [("", EPOCH, 4), (&*format!("--epoch {earlier}"), earlier, 2)] {
        let (ran, left) = simulated(&input, &format!("{rate} {epoch}"));
        assert_eq!(ran.json()["epoch_ns"], begun);
        assert_eq!(left.len(), count, "{ran:?}");
    }
}

#[test]
fn records_that_go_back_in_time_are_simultaneous_and_counted() {
    let input = [(EPOCH + 5 * MS, 100), (EPOCH, 200), (EPOCH + 6 * MS, 300)];
    let (ran, left) = simulated(&input, "--delay 1ms");
    assert_eq!(
        left,
        [(6, 100), (6, 200), (7, 300)].map(|(ms, len)| (EPOCH + ms * MS, len))
    );
    ran.prints("faithful but for").prints("time_went_back");
}

#[test]
fn frames_without_a_header_pass_by_their_length() {
    let input = [0, 5, 14].map(|len| (EPOCH, len));
    let (_, left) = simulated(&input, "--rate 8mbit --mtu 1500");
    assert_eq!(left, [(EPOCH, 0), (EPOCH + 5_000, 5), (EPOCH + 19_000, 14)]);
}

#[test]
fn a_capture_cut_in_the_middle_is_simulated_up_to_there() {
    let dir = Folder::new();
    let mut input = pcap(&[(EPOCH, 100), (EPOCH + MS, 100), (EPOCH + 2 * MS, 100)]);
    input.truncate(input.len() - 30);
    let (ran, out) = simulate(&dir, &input, "--delay 20ms");
    // The message gives the position of the record.
    ran.exits(1).says("at byte 256").prints("the run failed");
    assert_eq!(
        frames(&out),
        [(EPOCH + 20 * MS, 100), (EPOCH + 21 * MS, 100)]
    );
}

#[test]
fn a_requirement_decides_the_exit_code() {
    let dir = Folder::new();
    let input = pcap(&[(EPOCH, 100), (EPOCH, 100)]);
    let (ran, _) = simulate(&dir, &input, "--require artifacts=0,packets_out=2");
    ran.well();
    let (ran, _) = simulate(&dir, &input, "--require drops=0,packets_out>2");
    let ran = ran.exits(3).says("not met: packets_out>2: link.up had 2\n");
    assert_eq!(ran.stderr.matches("not met").count(), 1);
    let (ran, _) = simulate(&dir, &input, "--require down.drops=0,a.artifacts=0");
    let refused = "--require: down.drops=0: no link named 'down'; there are a, b, link.up\n";
    ran.exits(2).says(refused);
}

#[test]
fn the_report_is_also_written_to_a_file() {
    let dir = Folder::new();
    let file = dir.file("report.json");
    let (ran, _) = simulate(&dir, &pcap(&[(EPOCH, 100)]), &format!("--report {file}"));
    ran.well();
    assert_eq!(read_json(&file)["links"][0]["packets_out"], 1);
    let (ran, _) = simulate(&dir, &pcap(&[]), "--report /no/such/dir/report.json");
    ran.exits(1).says("/no/such/dir/report.json");
}

#[test]
fn captures_pass_through_pipes() {
    let dir = Folder::new();
    let (ran, out) = simulate(&dir, &pcap(&[(EPOCH, 100)]), "--delay 1ms");
    ran.well();
    let (longwire, input) = (env!("CARGO_BIN_EXE_longwire"), dir.file("in.pcap"));
    let piped = dir.file("piped.pcap");
    let pipe = format!("cat {input} | {longwire} simulate - - --delay 1ms > {piped}");
    run(format!("sh -c '{pipe}'")).says("faithful: ");
    assert_eq!(std::fs::read(piped).ok(), std::fs::read(out).ok());
}

#[test]
fn records_without_an_ethernet_form_are_counted_with_their_reason() {
    let dir = Folder::new();
    // PPP frames: two IPv4 packets and an LCP message.
    let packet = [&[0xff, 3, 0, 0x21, 0x45][..], &[0; 39]].concat();
    let control = vec![0xff, 3, 0xc0, 0x21, 1, 1, 0, 4];
    let records = [packet.clone(), control, packet];
    let timed = (0..).zip(records).map(|(n, record)| (EPOCH + n, record));
    let file = capture::pcap(9, timed);
    let (ran, out) = simulate(&dir, &file, "--json");
    let json = ran.well().json();
    assert_eq!(frames(&out), [(EPOCH, 54), (EPOCH + 2, 54)]);
    assert_eq!(json["records"]["given_ethernet_header"], 2);
    assert_eq!(json["records"]["not_ethernet"], 1);
    let said = "skipped 1 record: the protocol has no EtherType";
    assert!(json["notes"].to_string().contains(said), "{json}");
    simulate(&dir, &file, "").0.says(said);
    let (ran, _) = simulate(&dir, &pcap(&[(EPOCH, 100)]), "--interface east");
    ran.exits(1).says("no interface 'east'");
}

#[test]
fn an_interrupted_simulation_keeps_and_reports_its_output() {
    let dir = Folder::new();
    let out = dir.file("out.pcap");
    let mut command = piped(format!("longwire simulate - {out}"));
    let mut running = RunningProgram::spawn(command.stdin(Stdio::piped()));
    let many: Vec<_> = (0..20_000).map(|n| (EPOCH + n, 100)).collect();
    let input = pcap(&many);
    let mut stdin = running.child().stdin.take().expect("a pipe");
    // The first half exceeds a pipe's capacity, so the simulation runs once it is written.
    assert!(stdin.write_all(&input[..input.len() / 2]).is_ok());
    running.signal(Signal::SIGINT);
    // Write the rest slowly, because the signal may take effect late on a busy machine. The
    // simulation must end before reading everything.
    for piece in input[input.len() / 2..].chunks(20_000) {
        if stdin.write_all(piece).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stdin);
    let ran = running.end().exits(1);
    ran.says("interrupted")
        .says("has the frames released so far");
    let written = frames(&out).len();
    assert!(written > 0 && written < 20_000, "{written}");
}
