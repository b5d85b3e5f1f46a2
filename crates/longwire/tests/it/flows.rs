//! TCP between real stations over several links of one network at once, each with a
//! separate rate and queue: every flow gets its link's rate, plain queues fill, CoDel
//! keeps them short, and output frames are valid.
//!
//! Without permission to create namespaces, the test passes without running, except in
//! CI.

use std::ops::Range;
use std::process::{Command, Stdio};

use crate::common::process::{Capture, RunningProgram, SUSPECT, records, tshark};
use crate::common::recording::{FrameTimes, passed};
use crate::common::site::{Site, address, assert_nothing_lost, link};
use crate::common::{have, write};
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;
use serde_json::Value;

/// Flows between stations 1 and 2, 3 and 4, and 5 and 6.
const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"
d = "packet:p3"
e = "packet:p4"
f = "packet:p5"

[[link]]
name = "plain"
match = "src=10.9.0.1,dst=10.9.0.2"
delay = "10ms"
up = { rate = "10mbit", queue = "100p" }

[[link]]
name = "managed"
match = "src=10.9.0.3,dst=10.9.0.4"
delay = "10ms"
up = { rate = "6mbit", queue = "codel:limit=1000p" }

[[link]]
name = "short"
match = "src=10.9.0.5,dst=10.9.0.6"
delay = "2ms"
up = { rate = "3mbit", queue = "fq-codel" }
"#;

/// A flow: endpoints, link, and the link's rate in bit/s.
const FLOWS: [(usize, usize, &str, f64); 3] = [
    (0, 1, "plain", 10e6),
    (2, 3, "managed", 6e6),
    (4, 5, "short", 3e6),
];

/// TCP payload as a share of a full frame's 1,514 bytes, with timestamps.
const CARRIED: f64 = 1_448.0 / 1_514.0;

/// Seconds after the flow's start that count.
const COUNTED_S: Range<i64> = 2..10;

/// Sends for ten seconds, the first two of which do not count.
fn sender(site: &Site, from: usize, to: usize) -> RunningProgram {
    let to = address(to).to_string();
    let mut command = Command::new("iperf3");
    command.args(["-c", &to, "-t", "8", "-O", "2", "-C", "cubic", "-J"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    RunningProgram::start(&site.stations[from], &mut command)
}

/// The flow counts from three seconds after its first segment, when the queues are
/// full, for the same duration.
const SETTLED: Nanos = Nanos::from_secs(3);

/// Checks in the log that every link served its queue at its rate, that queues were as
/// long as their discipline keeps them, and that TCP `received`, in bit/s, the traffic
/// of its link.
fn check_links(log: &str, received: [f64; 3]) {
    for ((.., name, rate), received) in FLOWS.into_iter().zip(received) {
        let frames = passed(log, &format!("{name}.up"));
        let first = frames.iter().find(|frame| frame.len > 1_000);
        let first = first.expect("a segment").arrival;
        let counted = COUNTED_S.start * 1_000_000_000..COUNTED_S.end * 1_000_000_000;
        let in_time = |frame: &&FrameTimes| counted.contains(&(frame.arrival + frame.time - first));
        let bits: u32 = frames
            .iter()
            .filter(in_time)
            .map(|frame| frame.len * 8)
            .sum();
        let seconds = (COUNTED_S.end - COUNTED_S.start) as f64;
        let of_carried = received / (f64::from(bits) * CARRIED / seconds);
        println!("{name}: TCP received {of_carried:.4} of what the link carried");
        // Data held back for a lost segment arrives after counting has begun: a
        // window's worth more or less.
        assert!((0.95..1.05).contains(&of_carried), "{name}: {of_carried}");
        let from = first + SETTLED.as_nanos().cast_signed();
        let until = from + SETTLED.as_nanos().cast_signed();
        let mut counted: Vec<FrameTimes> = frames
            .into_iter()
            .filter(|frame| (from..until).contains(&(frame.arrival + frame.time)))
            .collect();
        counted.sort_unstable_by_key(|frame| frame.arrival + frame.time);
        // From frame to frame while the queue is not empty: a stalled sender leaves
        // gaps that the link did not cause.
        let (mut bits, mut busy) = (0.0, 0);
        for pair in counted.windows(2) {
            let departure = pair[0].arrival + pair[0].time;
            if pair[1].arrival < departure {
                bits += f64::from(pair[1].len) * 8.0;
                busy += pair[1].arrival + pair[1].time - departure;
            }
        }
        let of_link = bits / (busy as f64 / 1e9) / rate;
        let busy = busy as f64 / 1e9 / SETTLED.as_secs_f64();
        let mut times: Vec<i64> = counted.iter().map(|frame| frame.time).collect();
        times.sort_unstable();
        let median = times[times.len() / 2] as f64 / 1e6;
        println!("{name}: {of_link:.6} of its rate for {busy:.3} of the time, median {median} ms");
        assert!((of_link - 1.0).abs() < 1e-4, "{name}: {of_link}");
        let all: f64 = counted.iter().map(|frame| f64::from(frame.len) * 8.0).sum();
        let share = all / SETTLED.as_secs_f64() / rate;
        assert!(share < 1.005, "{name}: {share}");
        // A hundred full frames take 121 ms at 10 Mbit/s, and CUBIC keeps the queue at
        // 70 % of that or more. CoDel's target is 5 ms, and a frame takes 2 ms at 6
        // Mbit/s, 4 ms at 3 Mbit/s.
        let expected = if name == "plain" {
            60.0..122.0
        } else {
            2.0..20.0
        };
        assert!(expected.contains(&median), "{name}: {median} ms");
    }
}

/// Returns a flow's throughput as its receiver reports it, in bit/s.
fn received(sender: RunningProgram) -> f64 {
    let ended = sender.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let response: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let received = response["end"]["sum_received"]["bits_per_second"].as_f64();
    received.expect("a rate")
}

#[test]
fn flows_get_the_rates_of_their_links_and_queues_are_what_they_are() {
    let Some(site) = Site::new(6) else { return };
    let missing = ["iperf3", "dumpcap", "tshark"].into_iter();
    if missing.filter(|program| !have(program)).count() > 0 {
        return;
    }
    let dir = Folder::new();
    let file = dir.file("flows.toml");
    write(&file, NETWORK.as_bytes());
    let log = dir.file("log.csv");
    let network = site.start_with(&[&file, "--log", &log]);
    let servers = FLOWS.map(|(_, to, ..)| {
        let mut server = Command::new("iperf3");
        server.args(["-s", "-1"]).stdout(Stdio::null());
        RunningProgram::start(&site.stations[to], &mut server)
    });
    for (from, to, ..) in FLOWS {
        assert!(site.round_trip(from, to).is_some(), "no answer");
    }
    let captures = FLOWS.map(|(_, to, name, ..)| {
        let filter = format!("tcp and dst host {}", address(to));
        let only = ["-i", "eth0", "-f", &filter, "-c", "2000"];
        Capture::start(&dir, &format!("{name}.pcap"), &site.stations[to], &only)
    });
    let senders = FLOWS.map(|(from, to, ..)| sender(&site, from, to));
    let received = senders.map(received);
    for server in servers {
        assert_eq!(server.end().code, 0);
    }
    for capture in captures {
        let file = capture.with_frames(500);
        assert!(records(&file).len() >= 500, "{file}");
        // A checksum of zero is written as 0xffff, which Linux does for TCP too: it
        // verifies equally, but tshark expects 0.
        let filter = format!("({SUSPECT}) and not tcp.checksum == 0xffff");
        let wrong = tshark(&file, &filter);
        assert!(wrong.is_empty(), "{file}:\n{wrong}");
    }
    let report = network.stop();
    check_links(&log, received);
    for (name, reason) in [("plain.up", "queue_full"), ("managed.up", "aqm")] {
        let dropped = &link(&report, name)["drops"];
        println!("{name}: {dropped}");
        assert!(dropped[reason].as_u64() >= Some(1), "{name}: {dropped}");
    }
    assert_nothing_lost(&report);
}
