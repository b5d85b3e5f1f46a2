//! `simulate` with captures of both directions, and its verdict log.

use std::path::Path;

use longwire_capture::log::{Fate, Row};
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet};
use longwire_testbed::support::{Draws, Folder, capture};

use crate::common::program::{Ran, longwire};
use crate::common::{EPOCH, MS, assert_refused, frames, rows_of, write};

const NEAR: [u8; 4] = [10, 0, 0, 7];
const FAR: [u8; 4] = [192, 0, 2, 1];
const NEAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A captured frame: timestamp and bytes.
type CapturedFrame = (u64, Vec<u8>);

/// Returns a UDP frame over IPv4 with a total of `len` bytes.
fn ipv4(up: bool, len: usize, flow: u16) -> Vec<u8> {
    let ((from_mac, from), (to_mac, to)) = if up {
        ((NEAR_MAC, NEAR), (FAR_MAC, FAR))
    } else {
        ((FAR_MAC, FAR), (NEAR_MAC, NEAR))
    };
    let mut datagram = flow.to_be_bytes().to_vec();
    datagram.resize(len - 34, 0x5a);
    let ip = Ipv4 {
        class: 2,
        source: from,
        destination: to,
        ..PLAIN4
    };
    let mut frame = ethernet(&[], 0x0800, &ip.packet(17, &datagram));
    frame[..12].copy_from_slice(&[to_mac, from_mac].concat());
    frame
}

/// Returns deterministic, irregular bursts in both directions.
fn traffic() -> Vec<(bool, CapturedFrame)> {
    let (mut draws, mut at) = (Draws(7), EPOCH);
    let frames = (0..3_000).map(|number| {
        at += draws.below(700_000);
        let up = draws.below(3) == 0;
        let len = 60 + draws.below(1_400) as usize;
        (up, (at, ipv4(up, len, number % 5)))
    });
    frames.collect()
}

/// Simulates these frames; returns the run, the delivered frames, and the log.
fn simulate<'a>(
    input: impl IntoIterator<Item = &'a CapturedFrame>,
    options: &str,
) -> (Ran, Vec<(u64, usize)>, Vec<Row>) {
    let dir = Folder::new();
    let [from, to, log] = ["in.pcap", "out.pcap", "log.parquet"].map(|name| dir.file(name));
    let input = input.into_iter().map(|(at, bytes)| (*at, bytes));
    write(&from, capture::pcap(1, input));
    let ran = longwire(format!("simulate {from} {to} --log {log} {options}")).well();
    (ran, frames(&to), rows_of(&log))
}

/// Links with every random model, different in each direction.
const LINKS: [(&str, &str); 3] = [
    (
        "tail drop",
        "--delay uniform:min=5ms,max=15ms --loss 2% --queue 20p",
    ),
    (
        "head decides, copies",
        "--queue codel:limit=50p --delay 3ms --loss 1% --duplicate 5% --corrupt 3%",
    ),
    (
        "overtaking",
        "--delay exponential:mean=10ms --order reorder",
    ),
];

const RATES: [&str; 2] = ["8mbit", "25mbit"];

#[test]
fn both_ways_at_once_are_the_same_as_each_on_its_own() {
    let traffic = traffic();
    for (name, link) in LINKS {
        let rates = format!("--up-rate {} --down-rate {}", RATES[0], RATES[1]);
        let all = traffic.iter().map(|(_, captured)| captured);
        let options = format!("{link} {rates} --near 10.0.0.0/24 --seed 5");
        let (_, mut merged, rows) = simulate(all, &options);
        let mut alone_frames = Vec::new();
        for (way, rate) in [("up", RATES[0]), ("down", RATES[1])] {
            let of_way = traffic.iter().filter(|(up, _)| *up == (way == "up"));
            // Apart from shared schedules, each direction is independent of the other.
            let options = format!("{link} --rate {rate} --link {way} --seed 5");
            let (_, left, alone) = simulate(of_way.map(|(_, captured)| captured), &options);
            let together = rows
                .iter()
                .filter(|row| *row.link == *format!("link.{way}"));
            assert!(together.eq(&alone), "{name} {way}");
            assert!(alone.iter().any(|row| row.verdict == Fate::Deliver));
            alone_frames.extend(left);
        }
        let in_order = merged.is_sorted_by_key(|(stamp, _)| *stamp);
        assert!(in_order, "{name}: in order of release");
        merged.sort_unstable();
        alone_frames.sort_unstable();
        assert_eq!(merged, alone_frames, "{name}");
    }
}

#[test]
fn the_log_agrees_with_the_output_and_the_report() {
    let traffic = traffic();
    for (name, link) in LINKS {
        let all = traffic.iter().map(|(_, captured)| captured);
        let options = format!("{link} --near 10.0.0.7 --rate 9mbit --json");
        let (ran, left, rows) = simulate(all, &options);
        let report = ran.json();
        let mut released = Vec::new();
        for (index, way) in ["link.up", "link.down"].iter().enumerate() {
            let link = &report["links"][index];
            assert_eq!(link["name"], *way);
            let rows: Vec<&Row> = rows.iter().filter(|row| &*row.link == *way).collect();
            let count = |wanted: &dyn Fn(&Row) -> bool| {
                rows.iter().filter(|row| wanted(row)).count() as u64
            };
            let itself = |row: &Row| row.copy == 0;
            for (field, expected) in [
                ("packets_in", count(&itself)),
                ("packets_out", count(&|row| row.verdict == Fate::Deliver)),
                ("duplicated", count(&|row| row.copy > 0)),
                ("corrupted", count(&|row| itself(row) && row.corrupted)),
                ("ecn_marked", count(&|row| itself(row) && row.ecn_marked)),
                ("in_flight", 0),
            ] {
                assert_eq!(link[field], expected, "{name}: {field}");
            }
            for (reason, dropped) in link["drops"].as_object().into_iter().flatten() {
                let of_reason = count(&|row| row.reason.as_deref() == Some(reason));
                assert_eq!(*dropped, of_reason, "{name} {reason}");
            }
            let deepest = rows.iter().map(|row| row.queue_packets).max();
            let most = link["queue_packets_max"].as_u64();
            assert_eq!(most, deepest.map(u64::from), "{name}");
            let own = rows.iter().filter(|row| itself(row));
            let mut numbers: Vec<u64> = own.map(|row| row.frame).collect();
            numbers.sort_unstable();
            assert!(
                (0..).zip(&numbers).all(|(at, number)| at == *number),
                "each frame once"
            );
            let of_way = rows.iter().filter_map(|row| row.release_ns);
            released.extend(of_way.map(i64::cast_unsigned));
        }
        released.sort_unstable();
        let stamps: Vec<u64> = left.iter().map(|(stamp, _)| *stamp).collect();
        assert_eq!(stamps, released, "{name}");
        assert_eq!(report["unassigned"]["packets"], 0);
    }
}

#[test]
fn the_log_has_every_time_by_hand() {
    // At one byte per microsecond: three simultaneous frames, for two of which the queue has room;
    // later a frame that passes, and one that exceeds the MTU.
    let input = [(0, 1_000), (0, 1_000), (0, 1_000), (9, 500), (9, 1_600)];
    let input = input.map(|(ms, len)| (EPOCH + ms * MS, ipv4(true, len, 1)));
    let options = "--rate 8mbit --delay 20ms --queue 2p --mtu 1500";
    let (_, _, rows) = simulate(&input, options);
    let times = |row: &Row| {
        let since = |at: i64| (at - EPOCH.cast_signed()) / 1_000;
        (
            row.frame,
            since(row.arrival_ns),
            row.departure_ns.map(since),
            row.release_ns.map(since),
            row.reason.as_deref().unwrap_or("").to_owned(),
            row.queue_packets,
            row.queue_bytes,
        )
    };
    let rows: Vec<_> = rows.iter().map(times).collect();
    let none = String::new;
    assert_eq!(
        rows[..4],
        [
            (0, 0, Some(1_000), Some(21_000), none(), 1, 1_000),
            (1, 0, Some(2_000), Some(22_000), none(), 2, 2_000),
            (2, 0, None, None, "queue_full".to_owned(), 2, 2_000),
            (3, 9_000, Some(9_500), Some(29_500), none(), 1, 500),
        ]
    );
    assert_eq!(rows[4].4, "mtu");
}

#[test]
fn frames_without_addresses_go_by_their_station_or_are_counted() {
    let lldp = |from: [u8; 6]| {
        let group = [1, 0x80, 0xc2, 0, 0, 0x0e];
        let mut frame = [&group[..], &from, &[0x88, 0xcc]].concat();
        frame.resize(60, 0);
        frame
    };
    let frames = [
        lldp(NEAR_MAC),
        lldp(FAR_MAC),
        ipv4(true, 100, 1),
        lldp(NEAR_MAC),
        ipv4(false, 100, 1),
        lldp(FAR_MAC),
        vec![0; 5],
    ];
    let frames: Vec<CapturedFrame> = (EPOCH..).zip(frames).collect();
    let (ran, left, _) = simulate(&frames, "--near 10.0.0.7 --delay 1ms --json");
    let report = ran.json();
    let packets =
        |report: &serde_json::Value, link: usize| report["links"][link]["packets_in"].clone();
    assert_eq!([packets(&report, 0), packets(&report, 1)], [2, 2]);
    assert_eq!(report["unassigned"]["packets"], 3);
    assert_eq!(report["unassigned"]["bytes"], 60 + 60 + 5);
    assert_eq!(left.len(), 4);
    let notes = report["notes"].to_string();
    assert!(notes.contains("skipped 3 frames"), "{notes}");
    let (ran, ..) = simulate(&frames, "--near 10.0.0.7 --delay 1ms");
    ran.says("warning: skipped 3 frames");
    // Only the station's MAC address determines the direction.
    let (ran, ..) = simulate(&frames, "--near 02:00:00:00:00:01 --json");
    let report = ran.json();
    assert_eq!(packets(&report, 0), 3);
    assert_eq!(report["unassigned"]["packets"], 2, "{report}");
}

#[test]
fn a_side_that_is_named_wrong_is_remarked() {
    let input: Vec<CapturedFrame> = (0..5).map(|n| (EPOCH + n, ipv4(true, 100, 1))).collect();
    let (ran, ..) = simulate(&input, "--near 172.16.0.0/12");
    ran.says("link.up: no frames in this direction");
}

#[test]
fn frames_held_at_the_end_are_in_the_log_and_reported() {
    let input = (0..9).map(|n| (EPOCH + n * MS, ipv4(true, 1_000, 1)));
    let input: Vec<CapturedFrame> = input.collect();
    for queue in ["100p", "codel"] {
        // One frame arrives per millisecond; none is delivered after 4 ms.
        let options = format!("--rate steps:at=0s/8mbit;4ms/0bit --queue {queue}");
        let (ran, left, rows) = simulate(&input, &options);
        let held = rows.iter().filter(|row| row.verdict == Fate::Held);
        let held: Vec<u64> = held.map(|row| row.frame).collect();
        assert_eq!(
            (held, left.len()),
            ((4..9).collect(), 4),
            "{queue}: {rows:?}"
        );
        ran.says("link.up: 5 frames still queued when the capture ended");
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_is_written() {
    let dir = Folder::new();
    let [input, out, log] = ["in.pcap", "out.pcap", "in.csv"].map(|name| dir.file(name));
    write(&input, capture::pcap(1, [(EPOCH, ipv4(true, 100, 1))]));
    std::os::unix::fs::symlink(&input, &log).expect("a link");
    let simulate = format!("simulate {input} {out}");
    assert_refused(&format!(
        "
        {simulate} --near nowhere | 2 | not an IP address
        {simulate} --near 10.0.0.0/40 | 2 | is outside 0..32
        {simulate} --near 10.0.0.1 --link down | 2 | cannot be used with
        {simulate} --up-rate 1mbit | 2 | --up-rate needs --near
        {simulate} --log verdicts.txt | 2 | .csv or .parquet
        {simulate} --log {log} | 2 | is also IN or OUT
        {simulate} --epoch soon | 2 | --epoch
        "
    ));
    assert!(!Path::new(&out).exists());
    assert_refused(&format!(
        "{simulate} --log /no/such/dir/log.csv | 1 | /no/such/dir/log.csv"
    ));
}
