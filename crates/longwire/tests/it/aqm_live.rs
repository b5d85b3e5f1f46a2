//! Known properties of queue disciplines, live with real TCP: CoDel keeps the
//! standing queue near its target, FQ-CoDel shares, DualPI2 keeps the
//! low-latency queue short next to a classic flow; and strict priority by the VLAN
//! tag, which the kernel keeps next to the frame on its way into the link.
//!
//! Needs namespaces and iperf3, or python3. Without them these tests pass without having
//! run, except in CI. They judge by the sojourn times in the log, which exclude
//! the machine's own lateness.

use crate::common::recording::{FrameTimes, passed};
use crate::common::{have, longwire};
use longwire_testbed::support::{Folder, words};

fn possible(stderr: &str, code: i32) -> bool {
    let impossible = code == 1 && stderr.contains("namespace");
    assert!(!impossible || std::env::var_os("CI").is_none(), "{stderr}");
    !impossible
}

/// Runs iperf3 through the link; returns the frames of the direction up.
fn run(link: &[&str], peer: &str, command: &str) -> Option<Vec<FrameTimes>> {
    if !have("iperf3") {
        return None;
    }
    let dir = Folder::new();
    let log = dir.file("log.csv");
    let arguments = [
        &["exec", "-q", "--seed", "3", "--log", &log, "--peer", peer][..],
        link,
        &["--", "sh", "-c", command],
    ];
    let ran = longwire(&arguments.concat());
    if !possible(&ran.stderr, ran.code) {
        println!("skipped: no namespaces here");
        return None;
    }
    assert_eq!(ran.code, 0, "{ran:?}");
    Some(passed(&log, "link.up"))
}

/// This share of the frames waited no longer, in milliseconds, from `from`
/// seconds after the first one on.
fn quantile(waited: &[FrameTimes], from: i64, share: f64) -> f64 {
    let start = waited.first().map_or(0, |first| first.arrival) + from * 1_000_000_000;
    let settled = waited.iter().filter(|frame| frame.arrival >= start);
    let mut times: Vec<i64> = settled.map(|frame| frame.time).collect();
    assert!(times.len() > 200, "{} frames", times.len());
    times.sort_unstable();
    let index = ((times.len() - 1) as f64 * share) as usize;
    times[index] as f64 / 1e6
}

/// Returns the waiting time of frames less the time for which they would wait
/// for one another alone on a link of `bits_per_us`: a sender that the machine
/// has delayed sends in bursts, which no queue can shorten.
fn beyond_their_own(mut frames: Vec<FrameTimes>, bits_per_us: i64) -> Vec<FrameTimes> {
    let mut free = 0;
    for frame in &mut frames {
        free = frame.arrival.max(free) + i64::from(frame.len) * 8 * 1_000 / bits_per_us;
        frame.time -= free - frame.arrival;
    }
    frames
}

// Reno is the one congestion control that every kernel has and allows to every
// user.
const LINK: [&str; 4] = ["--rate", "20mbit", "--delay", "10ms"];

#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let through = |queue: &str| {
        let link = [&LINK[..], &["--up-queue", queue]].concat();
        run(&link, "iperf3 -s -1", "iperf3 -c far -t 5 -C reno")
    };
    let (Some(bloated), Some(kept)) = (through("300p"), through("codel")) else {
        return;
    };
    let (bloated, kept) = (quantile(&bloated, 2, 0.5), quantile(&kept, 2, 0.5));
    // 300 full frames are 180 ms. CoDel's target is 5 ms; a frame's own bits
    // take 0.6.
    assert!(bloated > 40.0, "tail drop: median {bloated} ms");
    assert!((0.6..15.0).contains(&kept), "CoDel: median {kept} ms");
}

#[test]
fn fq_codel_shares_between_flows() {
    let link = [&LINK[..], &["--up-queue", "fq-codel"]].concat();
    let dir = Folder::new();
    let results = dir.file("iperf3.json");
    let command = format!("iperf3 -c far -t 5 -O 1 -P 4 -J --logfile {results}");
    if run(&link, "iperf3 -s -1", &command).is_none() {
        return;
    }
    let output = std::fs::read_to_string(&results).expect("iperf3's results");
    let json: serde_json::Value = serde_json::from_str(&output).expect("iperf3's JSON");
    let streams = json["end"]["streams"].as_array().expect("streams");
    let rate = |stream: &serde_json::Value| stream["receiver"]["bits_per_second"].as_f64();
    let rates: Vec<f64> = streams.iter().filter_map(rate).collect();
    assert_eq!(rates.len(), 4, "{output}");
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    // Jain's index: 1 is perfectly fair, 0.25 is one flow alone.
    let fairness = sum * sum / (4.0 * squares);
    assert!(fairness > 0.97, "{fairness}: {rates:?}");
    assert!(sum > 15e6, "{rates:?} of 20 Mbit/s");
}

#[test]
fn dualpi2_keeps_the_low_latency_queue_short_next_to_a_classic_flow() {
    let link = words("--rate 100mbit --delay 5ms --up-queue dualpi2");
    // ECT(1) in the type of service: L4S by its identifier (RFC 9331). Its
    // frames differ from the others in length.
    let peer = "sh -c 'iperf3 -s -1 -p 5202 & iperf3 -s -1 -p 5201; wait'";
    let command = "iperf3 -c far -p 5201 -t 5 -C reno >/dev/null & sleep 0.5; \
                   iperf3 -4 -u -c far -p 5202 -b 4M -l 258 --tos 1 -t 4 && wait";
    let mut found = Vec::new();
    // A pause of the machine sends a burst of both flows at once: one of these
    // runs has to be without.
    for _ in 0..3 {
        let Some(waited) = run(&link, peer, command) else {
            return;
        };
        let of_length = |long: bool| {
            let of = waited.iter().filter(|frame| (frame.len > 1_000) == long);
            of.copied().collect::<Vec<_>>()
        };
        let short: Vec<FrameTimes> = of_length(false);
        let probes = short.into_iter().filter(|frame| frame.len == 300);
        let probes = beyond_their_own(probes.collect(), 100);
        let (low, classic) = (
            quantile(&probes, 1, 0.99),
            quantile(&of_length(true), 1, 0.5),
        );
        assert!(
            classic > 3.0,
            "the classic queue is no queue: median {classic} ms"
        );
        if low < 1.0 {
            return;
        }
        found.push(low);
    }
    panic!("L queue: 99 % within {found:?} ms");
}

/// Sends frames of the priorities 1, none, 5 and 7, in this order, each with its own
/// length. The last have a service tag, inside which the priority is another.
const TAGGED: &str = r#"
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for tag, length in ("81002005", 1000), ("", 800), ("8100a000", 600), ("88a8e00781002005", 500):
    frame = bytes.fromhex("020000000009" "020000000001" + tag + "88b5").ljust(length)
    for _ in range(20):
        s.send(frame)
"#;

#[test]
fn the_priority_of_a_vlan_tag_decides() {
    if !have("python3") {
        return;
    }
    for port in ["packet", "tap", "xdp"] {
        let dir = Folder::new();
        let (log, script) = (dir.file("log.csv"), dir.file("send.py"));
        std::fs::write(&script, TAGGED).expect("a script");
        // 80 frames of at most 20 ms each: all have arrived before the second leaves, unless
        // the sender stands still for as long.
        let link = "exec -q --rate 400kbit --queue priority:pcp --seed 3";
        let arguments = [
            &words(link)[..],
            &["--port", port, "--log", &log, "--"],
            &["sh", "-c", &format!("python3 {script} && sleep 3")],
        ];
        let ran = longwire(&arguments.concat());
        if !possible(&ran.stderr, ran.code) || ran.stderr.contains("/dev/net/tun") {
            println!("skipped: {}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut frames = passed(&log, "link.up");
        frames.retain(|frame| [1_000, 800, 600, 500].contains(&frame.len));
        assert_eq!(frames.len(), 80, "{port}");
        assert_in_order_of_priority(port, &frames, [1_000, 800, 600, 500]);
    }
}

/// Asserts that no frame was served while one of a later length waited, except the one
/// that was in service as that arrived, and that all that waited were overtaken.
fn assert_in_order_of_priority(port: &str, frames: &[FrameTimes], lengths: [u32; 4]) {
    let rank = |frame: &FrameTimes| lengths.iter().position(|len| *len == frame.len);
    let departure = |frame: &FrameTimes| frame.arrival + frame.time;
    // 400 kbit/s: 20 us a byte.
    let began = |frame: &FrameTimes| departure(frame) - i64::from(frame.len) * 20_000;
    let mut overtaken = 0;
    for high in frames {
        for low in frames.iter().filter(|low| rank(low) < rank(high)) {
            let waited = began(low) > high.arrival && began(low) < began(high);
            assert!(!waited, "{port}: {low:?} before {high:?}");
            // Frames of a lower rank are sent first; those that are read together have one stamp.
            overtaken += usize::from(low.arrival <= high.arrival && began(low) > began(high));
        }
    }
    // A frame takes at least 10 ms: at most `served` frames left while others still arrived, and
    // each of them is overtaken by none of 60. All others of the 2,400 pairs are turned.
    let arrivals = frames.iter().map(|frame| frame.arrival);
    let span = arrivals.clone().max().unwrap_or(0) - arrivals.min().unwrap_or(0);
    let served = 2 + span / 10_000_000;
    assert!(
        overtaken as i64 >= 2_400 - 60 * served,
        "{port}: {overtaken}, arrivals within {span} ns"
    );
}
