//! `longwire simulate FILE.toml`: captures in and out, with a scenario, to the
//! nanosecond.

use longwire_testbed::support::frames::udp4;
use std::collections::BTreeMap;

use crate::common::{EPOCH, Ran, longwire, write};
use longwire_capture::log::{Fate, LogReader};
use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Three ports that are never opened, with static stations.
const NETWORK: &str = r#"
[ports]
west = "packet:eth7"
east = "packet:eth8"
south = "packet:eth9"

[switching]
mode = "static"
stations = { "02:00:00:00:00:01" = "west", "02:00:00:00:00:02" = "east", "02:00:00:00:00:03" = "south" }

[[link]]
name = "slow"
match = "src=10.0.0.1,dst=10.0.0.2"
rate = "1mbit"
queue = "10p"
delay = "10ms"

[[link]]
name = "far"
match = "src=10.0.0.3,dst=10.0.0.2"
delay = "7ms"
"#;

const CHANGES: &str = r#"
[[at]]
time = "1s"
set = { "slow.up" = { delay = "20ms" } }
off = ["far"]
"#;

/// A frame: arrival, port, destination and length.
#[derive(Clone, Copy)]
struct Sent(u64, usize, u8, usize);

const PORTS: [&str; 3] = ["west", "east", "south"];

/// Returns UDP over IPv4 from one port's station to another's.
fn bytes(sent: &Sent) -> Vec<u8> {
    let Sent(_, from, to, len) = *sent;
    let from = from as u8 + 1;
    let (source, destination) = ([10, 0, 0, from], [10, 0, 0, to]);
    udp4(source, destination, (1, 2), &vec![from; len - 42])
}

/// Writes frames as one file per port; returns the arguments.
fn inputs(dir: &Folder, sent: &[Sent]) -> Vec<String> {
    let mut arguments = Vec::new();
    for (index, port) in PORTS.iter().enumerate() {
        let file = dir.file(&format!("{port}.in.pcap"));
        let mut writer = CaptureWriter::create(&file).expect("a file");
        for sent in sent.iter().filter(|sent| sent.1 == index) {
            let (at, bytes) = (Nanos::from_nanos(sent.0), bytes(sent));
            writer.write(at, &bytes, bytes.len() as u32).expect("room");
        }
        writer.finish().expect("room");
        arguments.extend(["--in".to_owned(), format!("{port}={file}")]);
    }
    arguments
}

/// Returns the frames that left by each port of a capture with interfaces: times and
/// stations.
fn left(file: &str) -> BTreeMap<String, Vec<(u64, u8)>> {
    let mut reader = CaptureReader::open(file).unwrap_or_else(|error| panic!("{error}"));
    let mut left: BTreeMap<String, Vec<(u64, u8)>> = BTreeMap::new();
    while let Some(record) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        let seen = (record.stamp.as_nanos() - EPOCH, record.bytes[11]);
        let interface = record.interface;
        let name = reader.interface_name(interface).expect("a name");
        left.entry(name.to_owned()).or_default().push(seen);
    }
    left
}

fn simulate(dir: &Folder, network: &str, arguments: &[String], more: &[&str]) -> Ran {
    let file = dir.file("network.toml");
    write(&file, network.as_bytes());
    let arguments = arguments.iter().map(String::as_str);
    let arguments = ["simulate", file.as_str(), "--json"]
        .into_iter()
        .chain(arguments);
    let arguments: Vec<&str> = arguments.chain(more.iter().copied()).collect();
    longwire(&arguments)
}

/// 125 bytes take 1 ms at 1 Mbit/s. Two simultaneous frames queue; frames that arrive
/// in the second of the change cross the changed link.
fn sent() -> Vec<Sent> {
    vec![
        Sent(EPOCH, 0, 2, 125),
        Sent(EPOCH, 0, 2, 125),
        Sent(EPOCH + 2 * MS, 2, 2, 60),
        Sent(EPOCH + 3 * MS, 1, 1, 125),
        Sent(EPOCH + 4 * MS, 1, 3, 90),
        Sent(EPOCH + 5 * MS, 0, 3, 90),
        Sent(EPOCH + 999 * MS, 2, 2, 60),
        Sent(EPOCH + SECOND, 2, 2, 60),
        Sent(EPOCH + SECOND, 0, 2, 125),
        Sent(EPOCH + SECOND - 1, 0, 2, 125),
    ]
}

#[test]
fn frames_cross_switch_links_and_scenario() {
    let dir = Folder::new();
    let mut sent = sent();
    sent.sort_by_key(|sent| (sent.1, sent.0));
    let (out, log) = (dir.file("out.pcapng"), dir.file("log.csv"));
    let network = format!("{NETWORK}{CHANGES}");
    let ran = simulate(
        &dir,
        &network,
        &inputs(&dir, &sent),
        &["--out", &out, "--log", &log],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let left = left(&out);
    // A nanosecond before the change, and at it: the queue is in order, so the second
    // frame follows the first, and both depart after the change, with its delay.
    let second = [
        (SECOND - 1 + MS + 20 * MS, 1),
        (SECOND - 1 + 2 * MS + 20 * MS, 1),
    ];
    let east = [(9 * MS, 3), (11 * MS, 1), (12 * MS, 1), (1_006 * MS, 3)];
    assert_eq!(left["east"], [&east[..], &second].concat());
    // Back through the link's other direction; a frame without a link leaves at once.
    assert_eq!(left["west"], [(3 * MS + MS + 10 * MS, 2)]);
    assert_eq!(left["south"], [(5 * MS, 1), (4 * MS + 7 * MS, 2)]);

    let report = ran.json();
    assert_eq!(report["passed"], 1);
    assert_eq!(report["in_flight"], 0);
    assert_eq!(report["epoch_ns"], EPOCH);
    let made = &report["changes"]["made"];
    assert_eq!(
        (made.as_array().map(Vec::len), &made[0]["at_ns"]),
        (Some(1), &SECOND.into())
    );
    assert_eq!(made[0]["links"], 2, "{made}");
    let ports = report["ports"].as_array().expect("ports");
    let counts = ports
        .iter()
        .map(|port| (&port["packets_in"], &port["packets_out"]));
    let counts: Vec<_> = counts.map(|(a, b)| (a.as_u64(), b.as_u64())).collect();
    let some = |a, b| (Some(a), Some(b));
    assert_eq!(counts, [some(5, 1), some(2, 6), some(3, 2)]);

    let rows: Result<Vec<_>, _> = LogReader::open(&log).expect("a log").collect();
    let rows = rows.expect("rows");
    let of = |link: &str| {
        rows.iter()
            .filter(|row| &*row.link == link)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (rows.len(), of("slow.up").len(), of("far.up").len()),
        (9, 4, 3)
    );
    let lost: Vec<_> = rows
        .iter()
        .filter(|row| row.verdict == Fate::Drop)
        .collect();
    assert_eq!((lost.len(), &*lost[0].link), (1, "far.up"));
    assert_eq!(lost[0].reason.as_deref(), Some("outage"));
    assert_eq!(lost[0].arrival_ns as u64, EPOCH + SECOND);
    let waited = of("slow.up")[1];
    assert_eq!((waited.queue_packets, waited.frame), (2, 1));
    assert_eq!(
        waited.departure_ns.map(|at| at as u64),
        Some(EPOCH + 2 * MS)
    );
}

#[test]
fn one_capture_with_interfaces_is_as_one_for_each_port() {
    let dir = Folder::new();
    let mut sent = sent();
    sent.sort_by_key(|sent| (sent.0, sent.1));
    let all = dir.file("all.pcapng");
    // Named by the devices of two ports, and the third port's name.
    let names = ["eth8", "west", "eth9"];
    let mut writer = CaptureWriter::create_for(&all, &names).expect("a file");
    for sent in &sent {
        let interface = [1, 0, 2][sent.1];
        let (at, bytes) = (Nanos::from_nanos(sent.0), bytes(sent));
        let written = writer.write_on(interface, at, &bytes, bytes.len() as u32);
        written.expect("room");
    }
    writer.finish().expect("room");
    let scenario = dir.file("rush-hour.toml");
    write(&scenario, CHANGES.as_bytes());
    let (one, many) = (dir.file("one.pcapng"), dir.file("many.pcapng"));
    let east = format!("east={}", dir.file("east.pcap"));
    let arguments = ["--in".to_owned(), all];
    let more = ["--out", &one, "--out", &east, "--scenario", &scenario];
    let ran = simulate(&dir, NETWORK, &arguments, &more);
    assert_eq!(ran.code, 0, "{ran:?}");
    let network = format!("{NETWORK}{CHANGES}");
    let other = simulate(&dir, &network, &inputs(&dir, &sent), &["--out", &many]);
    assert_eq!(left(&one), left(&many));
    assert_eq!(crate::common::frames(&dir.file("east.pcap")).len(), 6);
    let timeless = |ran: &Ran| {
        let mut report = ran.json();
        report["duration_s"] = 0.into();
        // The output files differ.
        report["command"] = 0.into();
        report
    };
    assert_eq!(timeless(&ran), timeless(&other));
}

#[test]
fn a_scenario_ends_with_the_last_frame_in_flight() {
    let dir = Folder::new();
    let (out, scenario) = (dir.file("out.pcapng"), dir.file("pause.toml"));
    let inputs = inputs(&dir, &[Sent(EPOCH + SECOND, 0, 2, 125)]);
    let epoch = EPOCH.to_string();
    let more = ["--out", &out, "--scenario", &scenario, "--epoch", &epoch];
    let own = format!("{NETWORK}[[at]]\ntime = \"1ms\"\noff = [\"*\"]\n");
    write(
        &scenario,
        b"[[at]]\ntime = \"500ms\"\npause = [\"slow\"]\n[[at]]\ntime = \"1h\"\non = [\"slow\"]\n",
    );
    let ran = simulate(&dir, &own, &inputs, &more);
    assert_eq!(ran.code, 0, "{ran:?}");
    let hour = 3_600 * SECOND;
    assert_eq!(left(&out)["east"], [(hour + MS + 10 * MS, 1)]);
    let notes = ran.json()["notes"].to_string();
    assert!(
        notes.contains("pause.toml") && notes.contains("1 event of"),
        "{notes}"
    );

    // The only activity is the repeated pausing of a link.
    write(
        &scenario,
        b"[[at]]\ntime = \"500ms\"\npause = [\"slow\"]\nevery = \"1ms\"\n",
    );
    let ran = simulate(&dir, &own, &inputs, &more);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(left(&out).is_empty());
    let report = ran.json();
    assert_eq!(report["in_flight"], 1);
    assert!(report["changes"]["forgotten"].as_u64() > Some(10_000));
}

#[test]
fn frames_lost_while_they_are_moved_have_their_reason_and_rows() {
    let dir = Folder::new();
    let times = [SECOND - 1, SECOND, SECOND + 50 * MS - 1, SECOND + 50 * MS];
    let sent = times.map(|at| Sent(EPOCH + at, 0, 2, 125));
    let (out, log) = (dir.file("out.pcapng"), dir.file("log.csv"));
    let moved = "[[at]]\ntime = \"1s\"\nmove = { slow = \"far\" }\noutage = \"50ms\"\n";
    let epoch = EPOCH.to_string();
    let ran = simulate(
        &dir,
        &format!("{NETWORK}{moved}"),
        &inputs(&dir, &sent),
        &["--out", &out, "--log", &log, "--epoch", &epoch],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let by_slow = SECOND - 1 + MS + 10 * MS;
    let by_far = SECOND + 50 * MS + 7 * MS;
    assert_eq!(left(&out)["east"], [(by_slow, 1), (by_far, 1)]);
    let report = ran.json();
    assert_eq!(report["unmatched_dropped"], 0);
    let far = report["links"].as_array().expect("links");
    let far = far.iter().find(|link| link["name"] == "far.up");
    let far = far.expect("a link");
    assert_eq!(far["drops"]["handover"], 2);
    let drops = far["drops"].as_object().expect("drops").values();
    assert_eq!(drops.filter_map(serde_json::Value::as_u64).sum::<u64>(), 2);
    assert_eq!(
        (&far["packets_in"], &far["packets_out"]),
        (&3.into(), &1.into())
    );
    let rows: Result<Vec<_>, _> = LogReader::open(&log).expect("a log").collect();
    let rows = rows.expect("rows");
    let rows = rows.iter().filter(|row| &*row.link == "far.up");
    let rows: Vec<_> = rows
        .map(|row| {
            (
                row.frame,
                row.arrival_ns as u64 - EPOCH,
                row.reason.as_deref(),
            )
        })
        .collect();
    let lost = Some("handover");
    let rows_wanted = [
        (0, times[1], lost),
        (1, times[2], lost),
        (2, times[3], None),
    ];
    assert_eq!(rows, rows_wanted);
}

/// Asserts a refusal with exit code 2 and these words.
fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 2, "{ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "no '{word}': {}", ran.stderr);
    }
}

#[test]
fn invalid_combinations_are_refused_with_the_reason() {
    let dir = Folder::new();
    let ins = inputs(&dir, &sent()[..1]);
    let with = |more: &[&str]| simulate(&dir, NETWORK, &ins, more);
    refused(&with(&["--near", "10.0.0.0/8"]), &["--near", "--in PORT"]);
    refused(&with(&["--link", "down"]), &["--link", "matchers"]);
    refused(&with(&["--rate", "1mbit"]), &["[defaults]"]);
    refused(
        &with(&["--out", "north=x.pcap"]),
        &["north", "west, east, south"],
    );
    refused(&with(&["--out", "west=x.txt"]), &[".pcapng"]);
    let west = dir.file("west.in.pcap");
    refused(
        &with(&["--out", &format!("east={west}")]),
        &["is also an input"],
    );
    refused(&with(&["--report", &west]), &["is also an input or output"]);
    let twice = ["--out", "east=x.pcap", "--out", "west=x.pcap"];
    refused(&with(&twice), &["'x.pcap' is given twice"]);
    refused(&with(&["--log", "x.txt"]), &["x.txt", ".csv"]);
    refused(&simulate(&dir, NETWORK, &[], &[]), &["--in PORT=CAPTURE"]);
    let unnamed = ["--in".to_owned(), west.clone()];
    refused(
        &simulate(&dir, NETWORK, &unnamed, &[]),
        &["at which port", "west, east, south"],
    );
    refused(&longwire(&["simulate", &west]), &["must end in .toml"]);
    let two = ["simulate", &west, "x.pcap", "--in", &west];
    refused(&longwire(&two), &["--in and --out need a topology file"]);
}

#[test]
fn scenarios_are_checked_against_the_topology() {
    let dir = Folder::new();
    let (file, scenario) = (dir.file("network.toml"), dir.file("wrong.toml"));
    write(&file, NETWORK.as_bytes());
    write(
        &scenario,
        b"# of another network\n[[at]]\ntime = \"1s\"\noff = [\"nowhere\"]\n[ports]\na = \"b\"\n",
    );
    for command in ["check", "run"] {
        let ran = longwire(&[command, &file, "--scenario", &scenario]);
        refused(
            &ran,
            &["wrong.toml:4", "nowhere", "wrong.toml:5", "'ports'"],
        );
    }
    write(&scenario, CHANGES.as_bytes());
    let ran = longwire(&["check", &file, "--scenario", &scenario]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("slow.up: set delay 20ms"), "{ran:?}");
    let none = dir.file("none.toml");
    refused(
        &longwire(&["check", &file, "--scenario", &none]),
        &["none.toml"],
    );
    let link = ["run", "packet:x0", "packet:x1", "--scenario", &scenario];
    refused(&longwire(&link), &["wrong.toml:4", "known: link"]);
}
