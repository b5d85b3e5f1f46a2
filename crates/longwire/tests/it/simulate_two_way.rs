//! `simulate` with captures of both directions, and its verdict log.

use longwire_capture::log::{Fate, LogReader, Row};
use longwire_testbed::support::{Folder, capture, words};

use crate::common::{EPOCH, Ran, frames, longwire, write};

const MS: u64 = 1_000_000;

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
    let mut frame = [&to_mac[..], &from_mac, &[0x08, 0x00]].concat();
    let total = (len - 14) as u16;
    frame.extend([0x45, 0x02]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(flow.to_be_bytes());
    frame.resize(len, 0x5a);
    frame
}

/// Returns a pcap file of these frames.
fn pcap(captured: &[CapturedFrame]) -> Vec<u8> {
    capture::pcap(1, captured.iter().map(|(at, bytes)| (*at, bytes)))
}

/// Returns deterministic, irregular bursts in both directions.
fn traffic() -> Vec<(bool, CapturedFrame)> {
    let mut state = 7u64;
    let mut at = EPOCH;
    (0..3_000)
        .map(|number| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let draw = state >> 33;
            at += draw % 700_000;
            let up = draw.is_multiple_of(3);
            let len = 60 + (draw >> 8) as usize % 1_400;
            (up, (at, ipv4(up, len, (number % 5) as u16)))
        })
        .collect()
}

fn simulate(dir: &Folder, input: &[u8], name: &str, options: &[&str]) -> (Ran, String, Vec<Row>) {
    let (from, to) = (dir.file("in.pcap"), dir.file(&format!("{name}.pcap")));
    let log = dir.file(&format!("{name}.parquet"));
    write(&from, input);
    let all = [&["simulate", &from, &to, "--log", &log], options].concat();
    let ran = longwire(&all);
    let rows = LogReader::open(&log).and_then(Iterator::collect);
    (ran, to, rows.unwrap_or_else(|error| panic!("{error}")))
}

/// Links with every random model, and different ones per direction.
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
    let all: Vec<CapturedFrame> = traffic
        .iter()
        .map(|(_, captured)| captured.clone())
        .collect();
    for (name, link) in LINKS {
        let dir = Folder::new();
        let rates = ["--up-rate", RATES[0], "--down-rate", RATES[1]];
        let link = words(link);
        let options = [&link[..], &rates, &["--near", "10.0.0.0/24", "--seed", "5"]].concat();
        let (ran, both, rows) = simulate(&dir, &pcap(&all), "both", &options);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        let mut alone_frames = Vec::new();
        for (way, rate) in [("up", RATES[0]), ("down", RATES[1])] {
            let of_way = traffic.iter().filter(|(up, _)| *up == (way == "up"));
            let of_way: Vec<CapturedFrame> = of_way.map(|(_, captured)| captured.clone()).collect();
            // Except for shared schedules, a link is independent of the other
            // direction.
            let options = [&link[..], &["--rate", rate, "--link", way, "--seed", "5"]].concat();
            let (ran, out, alone) = simulate(&dir, &pcap(&of_way), way, &options);
            assert_eq!(ran.code, 0, "{name}: {ran:?}");
            let name = format!("link.{way}");
            let together: Vec<&Row> = rows.iter().filter(|row| *row.link == *name).collect();
            assert_eq!(together.len(), alone.len(), "{name} {way}");
            for (together, alone) in together.iter().zip(&alone) {
                assert_eq!(*together, alone, "{name} {way}");
            }
            assert!(alone.iter().any(|row| row.verdict == Fate::Deliver));
            alone_frames.extend(frames(&out));
        }
        let mut merged = frames(&both);
        assert!(
            merged.is_sorted_by_key(|(stamp, _)| *stamp),
            "{name}: in order of release"
        );
        merged.sort_unstable();
        alone_frames.sort_unstable();
        assert_eq!(merged, alone_frames, "{name}");
    }
}

#[test]
fn the_log_agrees_with_the_output_and_the_report() {
    let dir = Folder::new();
    let input: Vec<CapturedFrame> = traffic()
        .into_iter()
        .map(|(_, captured)| captured)
        .collect();
    for (name, link) in LINKS {
        let options = format!("{link} --near 10.0.0.7 --rate 9mbit --json");
        let (ran, out, rows) = simulate(&dir, &pcap(&input), "out", &words(&options));
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
            assert_eq!(link["packets_in"], count(&itself), "{name}");
            assert_eq!(
                link["packets_out"],
                count(&|row| row.verdict == Fate::Deliver)
            );
            assert_eq!(link["duplicated"], count(&|row| row.copy > 0));
            assert_eq!(
                link["corrupted"],
                count(&|row| itself(row) && row.corrupted)
            );
            assert_eq!(
                link["ecn_marked"],
                count(&|row| itself(row) && row.ecn_marked)
            );
            for (reason, dropped) in link["drops"].as_object().into_iter().flatten() {
                let of_reason = count(&|row| row.reason.as_deref() == Some(reason));
                assert_eq!(*dropped, of_reason, "{name} {reason}");
            }
            assert_eq!(link["in_flight"], 0);
            let deepest = rows.iter().map(|row| row.queue_packets).max();
            assert_eq!(
                link["queue_packets_max"].as_u64(),
                deepest.map(u64::from),
                "{name}"
            );
            let numbers: Vec<u64> = rows
                .iter()
                .filter(|row| itself(row))
                .map(|row| row.frame)
                .collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            assert!(
                sorted.iter().copied().eq(0..numbers.len() as u64),
                "each frame once"
            );
            let of_way = rows.iter().filter_map(|row| row.release_ns);
            released.extend(of_way.map(i64::cast_unsigned));
        }
        released.sort_unstable();
        let stamps: Vec<u64> = frames(&out).iter().map(|(stamp, _)| *stamp).collect();
        assert_eq!(stamps, released, "{name}");
        assert_eq!(report["unassigned"]["packets"], 0);
    }
}

#[test]
fn the_log_has_every_time_by_hand() {
    let dir = Folder::new();
    // Two frames at once, at one byte per microsecond with room for one; one later; one
    // that is too long.
    let input: Vec<CapturedFrame> = [(0, 1_000), (0, 1_000), (0, 1_000), (9, 500), (9, 1_600)]
        .map(|(ms, len)| (EPOCH + ms * MS, ipv4(true, len, 1)))
        .to_vec();
    let options = words("--rate 8mbit --delay 20ms --queue 2p --mtu 1500");
    let (ran, _, rows) = simulate(&dir, &pcap(&input), "out", &options);
    assert_eq!(ran.code, 0, "{ran:?}");
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
    let dir = Folder::new();
    let lldp = |from: [u8; 6]| {
        let group = [1, 0x80, 0xc2, 0, 0, 0x0e];
        let mut frame = [&group[..], &from, &[0x88, 0xcc]].concat();
        frame.resize(60, 0);
        frame
    };
    let frames: Vec<CapturedFrame> = [
        lldp(NEAR_MAC),
        lldp(FAR_MAC),
        ipv4(true, 100, 1),
        lldp(NEAR_MAC),
        ipv4(false, 100, 1),
        lldp(FAR_MAC),
        vec![0; 5],
    ]
    .into_iter()
    .enumerate()
    .map(|(number, bytes)| (EPOCH + number as u64, bytes))
    .collect();
    let options = ["--near", "10.0.0.7", "--delay", "1ms", "--json"];
    let (ran, out, _) = simulate(&dir, &pcap(&frames), "out", &options);
    let report = ran.json();
    assert_eq!(report["links"][0]["packets_in"], 2);
    assert_eq!(report["links"][1]["packets_in"], 2);
    assert_eq!(report["unassigned"]["packets"], 3);
    assert_eq!(report["unassigned"]["bytes"], 60 + 60 + 5);
    assert_eq!(crate::common::frames(&out).len(), 4);
    let notes = report["notes"].to_string();
    assert!(notes.contains("skipped 3 frames"), "{notes}");
    let (ran, ..) = simulate(&dir, &pcap(&frames), "out", &options[..4]);
    assert!(ran.stderr.contains("warning: skipped 3 frames"), "{ran:?}");
    // By station only.
    let options = ["--near", "02:00:00:00:00:01", "--json"];
    let (ran, ..) = simulate(&dir, &pcap(&frames), "out", &options);
    let report = ran.json();
    assert_eq!(report["links"][0]["packets_in"], 3);
    assert_eq!(report["unassigned"]["packets"], 2, "{report}");
}

#[test]
fn a_side_that_is_named_wrong_is_remarked() {
    let dir = Folder::new();
    let input: Vec<CapturedFrame> = (0..5).map(|n| (EPOCH + n, ipv4(true, 100, 1))).collect();
    let (ran, ..) = simulate(&dir, &pcap(&input), "out", &["--near", "172.16.0.0/12"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("link.up: no frame in this direction"),
        "{ran:?}"
    );
}

#[test]
fn frames_held_at_the_end_are_in_the_log_and_reported() {
    let input: Vec<CapturedFrame> = (0..9)
        .map(|n| (EPOCH + n * MS, ipv4(true, 1_000, 1)))
        .collect();
    // One frame per millisecond; none leaves after 4 ms.
    let rate = "steps:at=0s/8mbit;4ms/0bit";
    for queue in ["100p", "codel"] {
        let dir = Folder::new();
        let options = ["--rate", rate, "--queue", queue];
        let (ran, out, rows) = simulate(&dir, &pcap(&input), "out", &options);
        assert_eq!(ran.code, 0, "{ran:?}");
        let held = rows.iter().filter(|row| row.verdict == Fate::Held);
        let held: Vec<u64> = held.map(|row| row.frame).collect();
        assert_eq!(
            (held.len(), frames(&out).len()),
            (5, 4),
            "{queue}: {rows:?}"
        );
        assert!(held.iter().copied().eq(4..9), "{held:?}");
        let said = "link.up: 5 frames still queued at the end of the capture";
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_is_written() {
    let dir = Folder::new();
    let (input, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&input, &pcap(&[(EPOCH, ipv4(true, 100, 1))]));
    let log = dir.file("in.csv");
    assert!(std::os::unix::fs::symlink(&input, &log).is_ok());
    let cases: [(&[&str], &str); 7] = [
        (&["--near", "nowhere"], "not an IP address"),
        (&["--near", "10.0.0.0/40"], "is outside 0..32"),
        (
            &["--near", "10.0.0.1", "--link", "down"],
            "cannot be used with",
        ),
        (&["--up-rate", "1mbit"], "--up-rate needs --near"),
        (&["--log", "verdicts.txt"], ".csv or .parquet"),
        (&["--log", &log], "is also IN or OUT"),
        (&["--epoch", "soon"], "--epoch"),
    ];
    for (options, expected) in cases {
        let ran = longwire(&[&["simulate", &input, &out], options].concat());
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{options:?}: {ran:?}");
        assert!(!std::path::Path::new(&out).exists(), "{options:?}");
    }
    let ran = longwire(&["simulate", &input, &out, "--log", "/no/such/dir/log.csv"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("/no/such/dir/log.csv"), "{ran:?}");
}
