//! `simulate` end to end, compared with numbers calculated by hand.

use crate::common::{EPOCH, Ran, frames, longwire, pcap, write};
use longwire_testbed::support::{Folder, words};

const MS: u64 = 1_000_000;

/// Simulates these bytes; returns the run and the path of the output.
fn simulate(dir: &Folder, input: &[u8], options: &[&str]) -> (Ran, String) {
    let (from, to) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&from, input);
    let mut arguments = vec!["simulate", &from, &to];
    arguments.extend(options);
    (longwire(&arguments), to)
}

#[test]
fn a_rate_and_a_delay_move_stamps_to_the_nanosecond() {
    let dir = Folder::new();
    // Three at once, and one after the link has been idle for long.
    let input = [
        (EPOCH, 1500),
        (EPOCH, 1500),
        (EPOCH, 1500),
        (EPOCH + 100 * MS, 1500),
    ];
    let (ran, out) = simulate(
        &dir,
        &pcap(&input),
        &["--rate", "10mbit", "--delay", "20ms"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    // 1500 bytes at 10 Mbit/s: 1.2 ms.
    let expected = [
        (EPOCH + 21_200_000, 1500),
        (EPOCH + 22_400_000, 1500),
        (EPOCH + 23_600_000, 1500),
        (EPOCH + 121_200_000, 1500),
    ];
    assert_eq!(frames(&out), expected);
    assert!(
        ran.stderr.contains("rate 10mbit"),
        "the link is said in full: {ran:?}"
    );
    assert!(ran.stderr.contains("derived"), "the queue too: {ran:?}");
    assert!(ran.stdout.contains("faithful: 4 frames"), "{ran:?}");
}

#[test]
fn a_full_queue_and_the_mtu_drop_and_say_so() {
    let dir = Folder::new();
    let input: Vec<_> = (0..5)
        .map(|_| (EPOCH, 1000))
        .chain([(EPOCH, 1515)])
        .collect();
    let options = words("--rate 1mbit --delay 50ms --queue 2p --mtu 1500 --json");
    let (ran, out) = simulate(&dir, &pcap(&input), &options);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        frames(&out),
        [(EPOCH + 58 * MS, 1000), (EPOCH + 66 * MS, 1000)]
    );
    let report = ran.json();
    let link = &report["links"][0];
    assert_eq!(link["name"], "link.up");
    assert_eq!(link["packets_in"], 6);
    assert_eq!(link["packets_out"], 2);
    assert_eq!(link["bytes_in"], 6515);
    assert_eq!(link["bytes_out"], 2000);
    assert_eq!(link["drops"]["queue_full"], 3);
    assert_eq!(link["drops"]["mtu"], 1);
    assert_eq!(link["drops"]["loss"], 0);
    assert_eq!(link["config"]["queue"], "2p");
    for measure in ["p50", "p99", "p999", "max", "mean", "stddev"] {
        assert_eq!(report["ports"][0]["lateness_us"][measure], 0.0, "{measure}");
    }
    assert!(
        ran.stderr.is_empty(),
        "--json says nothing on the side: {ran:?}"
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("a queue of 2p is too small"),
        "but warnings are in it: {notes}"
    );
}

#[test]
fn a_seed_repeats_itself_and_others_differ() {
    let dir = Folder::new();
    let input: Vec<_> = (0..2_000).map(|n| (EPOCH + n * MS, 200)).collect();
    let input = pcap(&input);
    let simulated = |options: &[&str]| {
        let all = [
            &["--loss", "10%", "--delay", "uniform:min=1ms,max=9ms"],
            options,
        ]
        .concat();
        let (ran, out) = simulate(&dir, &input, &all);
        assert_eq!(ran.code, 0, "{ran:?}");
        std::fs::read(out).unwrap_or_default()
    };
    let first = simulated(&["--seed", "7"]);
    assert_eq!(first, simulated(&["--seed", "7"]));
    assert_ne!(first, simulated(&["--seed", "8"]));
    assert_ne!(first, simulated(&["--seed", "7", "--link", "down"]));
    assert_eq!(simulated(&[]), simulated(&["--seed", "1", "--link", "up"]));
}

#[test]
fn schedules_begin_with_the_first_frame_or_at_the_epoch() {
    let dir = Folder::new();
    let input: Vec<_> = (0..9).map(|n| (EPOCH + n * MS, 1_000)).collect();
    // A frame per millisecond; the link stalls after 4 ms.
    let rate = ["--rate", "steps:at=0s/8mbit;4ms/0bit", "--json"];
    let earlier = (EPOCH - 2 * MS).to_string();
    for (epoch, begun, left) in [
        (&[][..], EPOCH, 4),
        (&["--epoch", &earlier], EPOCH - 2 * MS, 2),
    ] {
        let options = [&rate[..], epoch].concat();
        let (ran, out) = simulate(&dir, &pcap(&input), &options);
        assert_eq!(ran.json()["epoch_ns"], begun);
        assert_eq!(frames(&out).len(), left, "{ran:?}");
    }
}

#[test]
fn records_that_go_back_in_time_are_simultaneous_and_counted() {
    let dir = Folder::new();
    let input = [(EPOCH + 5 * MS, 100), (EPOCH, 200), (EPOCH + 6 * MS, 300)];
    let (ran, out) = simulate(&dir, &pcap(&input), &["--delay", "1ms"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = [
        (EPOCH + 6 * MS, 100),
        (EPOCH + 6 * MS, 200),
        (EPOCH + 7 * MS, 300),
    ];
    assert_eq!(frames(&out), expected);
    assert!(ran.stdout.contains("faithful but for"), "{ran:?}");
    assert!(ran.stdout.contains("time_went_back"), "{ran:?}");
}

#[test]
fn frames_without_a_header_pass_by_their_length() {
    let dir = Folder::new();
    let input = [(EPOCH, 0), (EPOCH, 5), (EPOCH, 14)];
    let (ran, out) = simulate(&dir, &pcap(&input), &["--rate", "8mbit", "--mtu", "1500"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = [(EPOCH, 0), (EPOCH + 5_000, 5), (EPOCH + 19_000, 14)];
    assert_eq!(frames(&out), expected);
}

#[test]
fn a_capture_cut_in_the_middle_is_simulated_up_to_there() {
    let dir = Folder::new();
    let mut input = pcap(&[(EPOCH, 100), (EPOCH + MS, 100), (EPOCH + 2 * MS, 100)]);
    input.truncate(input.len() - 30);
    let (ran, out) = simulate(&dir, &input, &["--delay", "20ms"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("at byte 256"),
        "the record's place: {ran:?}"
    );
    assert!(ran.stdout.contains("the run failed"), "{ran:?}");
    let expected = [(EPOCH + 20 * MS, 100), (EPOCH + 21 * MS, 100)];
    assert_eq!(frames(&out), expected);
}

#[test]
fn a_requirement_decides_the_exit_code() {
    let dir = Folder::new();
    let input = pcap(&[(EPOCH, 100), (EPOCH, 100)]);
    let (ran, _) = simulate(&dir, &input, &["--require", "artifacts=0,packets_out=2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let (ran, _) = simulate(&dir, &input, &["--require", "drops=0,packets_out>2"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr
            .contains("not met: packets_out>2: link.up had 2\n"),
        "{ran:?}"
    );
    assert_eq!(ran.stderr.matches("not met").count(), 1);
    let (ran, _) = simulate(&dir, &input, &["--require", "down.drops=0,a.artifacts=0"]);
    let refused = "--require: down.drops=0: no link named 'down'; there are a, b, link.up\n";
    assert!(ran.code == 2 && ran.stderr.contains(refused), "{ran:?}");
}

#[test]
fn the_report_is_also_written_to_a_file() {
    let dir = Folder::new();
    let file = dir.file("report.json");
    let (ran, _) = simulate(&dir, &pcap(&[(EPOCH, 100)]), &["--report", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(report["links"][0]["packets_out"], 1);
    let (ran, _) = simulate(&dir, &pcap(&[]), &["--report", "/no/such/dir/report.json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("/no/such/dir/report.json"), "{ran:?}");
}

#[test]
fn captures_pass_through_pipes() {
    let dir = Folder::new();
    let (ran, out) = simulate(&dir, &pcap(&[(EPOCH, 100)]), &["--delay", "1ms"]);
    assert_eq!(ran.code, 0);
    let expected = std::fs::read(out).unwrap_or_default();
    let piped = std::process::Command::new("sh")
        .arg("-c")
        .arg("cat \"$2\" | \"$1\" simulate - - --delay 1ms")
        .args(["sh", env!("CARGO_BIN_EXE_longwire"), &dir.file("in.pcap")])
        .output()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(piped.stdout, expected);
    let said = String::from_utf8_lossy(&piped.stderr);
    assert!(said.contains("faithful: "), "{said}");
}

#[test]
fn records_without_an_ethernet_form_are_counted_with_their_reason() {
    use longwire_testbed::support::capture;

    let dir = Folder::new();
    // PPP: two IPv4 packets and an LCP message.
    let packet = [&[0xff, 3, 0, 0x21, 0x45][..], &[0; 39]].concat();
    let control = vec![0xff, 3, 0xc0, 0x21, 1, 1, 0, 4];
    let records = [packet.clone(), control, packet];
    let timed = (0..).zip(records).map(|(n, record)| (EPOCH + n, record));
    let file = capture::pcap(9, timed);
    let (ran, out) = simulate(&dir, &file, &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(frames(&out), [(EPOCH, 54), (EPOCH + 2, 54)]);
    let json = ran.json();
    assert_eq!(json["records"]["given_ethernet_header"], 2);
    assert_eq!(json["records"]["not_ethernet"], 1);
    let said = "skipped 1 record: Ethernet has no type for the protocol";
    assert!(json["notes"].to_string().contains(said), "{json}");
    let (ran, _) = simulate(&dir, &file, &[]);
    assert!(ran.stderr.contains(said), "{ran:?}");
    let (ran, _) = simulate(&dir, &pcap(&[(EPOCH, 100)]), &["--interface", "east"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("no interface 'east'"), "{ran:?}");
}

#[test]
fn an_interrupted_simulation_keeps_and_reports_its_output() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let dir = Folder::new();
    let out = dir.file("out.pcap");
    let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["simulate", "-", &out])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}"));
    let many: Vec<_> = (0..20_000).map(|n| (EPOCH + n, 100)).collect();
    let input = pcap(&many);
    let Some(mut stdin) = child.stdin.take() else {
        panic!("no pipe");
    };
    // More than a pipe's capacity: once the first half is read, the simulation runs.
    assert!(stdin.write_all(&input[..input.len() / 2]).is_ok());
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    assert!(nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).is_ok());
    // Slowly: on a busy machine the signal takes effect late. The simulation ends
    // before it has read everything.
    for piece in input[input.len() / 2..].chunks(20_000) {
        if stdin.write_all(piece).is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(stdin);
    let ran = crate::common::ran(
        child
            .wait_with_output()
            .unwrap_or_else(|error| panic!("{error}")),
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("interrupted"), "{ran:?}");
    assert!(
        ran.stderr.contains("has the frames released so far"),
        "{ran:?}"
    );
    let written = frames(&out).len();
    assert!(written > 0 && written < 20_000, "{written}");
}
