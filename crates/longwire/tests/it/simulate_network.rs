//! `simulate FILE.toml`: captures in and out, with a scenario, accurate to the nanosecond.

use std::collections::BTreeMap;

use longwire_capture::log::{Fate, Row};
use longwire_capture::{CAPTURED_MAX, CaptureWriter};
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;
use longwire_testbed::support::frames::udp4;

use crate::common::program::{Ran, longwire};
use crate::common::{
    EPOCH, MS, assert_refused, captured, count, frames, list, named, rows_of, sum, write,
};

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

/// A frame to send: arrival time, ingress port, destination and length.
#[derive(Clone, Copy)]
struct Sent(u64, usize, u8, usize);

const PORTS: [&str; 3] = ["west", "east", "south"];

/// Returns a UDP datagram over IPv4 from one port's station to another's.
fn bytes(sent: &Sent) -> Vec<u8> {
    let Sent(_, from, to, len) = *sent;
    let from = from as u8 + 1;
    let (source, destination) = ([10, 0, 0, from], [10, 0, 0, to]);
    udp4(source, destination, (1, 2), &vec![from; len - 42])
}

/// Writes frames as one file per port; returns the arguments.
fn inputs(dir: &Folder, sent: &[Sent]) -> String {
    let mut arguments = String::new();
    for (index, port) in PORTS.iter().enumerate() {
        let file = dir.file(&format!("{port}.in.pcap"));
        let mut writer = CaptureWriter::create(&file).expect("a file");
        for sent in sent.iter().filter(|sent| sent.1 == index) {
            let (at, bytes) = (Nanos::from_nanos(sent.0), bytes(sent));
            writer.write(at, &bytes, bytes.len() as u32).expect("room");
        }
        writer.finish().expect("room");
        arguments += &format!("--in {port}={file} ");
    }
    arguments
}

/// Returns the times and stations of the frames that left by each port of a capture with
/// interfaces.
fn left(file: &str) -> BTreeMap<String, Vec<(u64, u8)>> {
    let mut left: BTreeMap<String, Vec<(u64, u8)>> = BTreeMap::new();
    for (at, port, bytes) in captured(file) {
        left.entry(port).or_default().push((at - EPOCH, bytes[11]));
    }
    left
}

fn simulate(dir: &Folder, network: &str, arguments: &str) -> Ran {
    let file = dir.file("network.toml");
    write(&file, network);
    longwire(format!("simulate {file} --json {arguments}"))
}

/// Returns the frames of the tests. A frame of 125 bytes takes 1 ms at 1 Mbit/s. The first two
/// arrive simultaneously, so one of them queues; the last ones arrive at the change at 1 s, or just
/// before it.
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
    let files = format!("{} --out {out} --log {log}", inputs(&dir, &sent));
    let report = simulate(&dir, &network, &files).well().json();
    let left = left(&out);
    // One frame arrives a nanosecond before the change, the other at the change. The queue is in
    // order, so the second follows the first; both depart after the change, with its delay.
    let second = [
        (SECOND - 1 + MS + 20 * MS, 1),
        (SECOND - 1 + 2 * MS + 20 * MS, 1),
    ];
    let east = [(9 * MS, 3), (11 * MS, 1), (12 * MS, 1), (1_006 * MS, 3)];
    assert_eq!(left["east"], [&east[..], &second].concat());
    // Frames in the opposite direction cross the link's other direction; a frame without a link
    // leaves immediately.
    assert_eq!(left["west"], [(3 * MS + MS + 10 * MS, 2)]);
    assert_eq!(left["south"], [(5 * MS, 1), (4 * MS + 7 * MS, 2)]);

    for (field, expected) in [("passed", 1), ("in_flight", 0), ("epoch_ns", EPOCH)] {
        assert_eq!(report[field], expected, "{field}");
    }
    let made = list(&report["changes"]["made"]);
    assert_eq!((made.len(), &made[0]["at_ns"]), (1, &SECOND.into()));
    assert_eq!(made[0]["links"], 2, "{made:?}");
    let ports = list(&report["ports"]).iter();
    let counts = ports.map(|port| ["packets_in", "packets_out"].map(|name| count(&port[name])));
    assert_eq!(counts.collect::<Vec<_>>(), [[5, 1], [2, 6], [3, 2]]);

    let rows = rows_of(&log);
    let of = |link: &str| {
        rows.iter()
            .filter(|row| &*row.link == link)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        [rows.len(), of("slow.up").len(), of("far.up").len()],
        [9, 4, 3]
    );
    let lost = rows.iter().filter(|row| row.verdict == Fate::Drop);
    let lost: Vec<_> = lost.collect();
    assert_eq!((lost.len(), &*lost[0].link), (1, "far.up"));
    assert_eq!(lost[0].reason.as_deref(), Some("outage"));
    assert_eq!(lost[0].arrival_ns as u64, EPOCH + SECOND);
    let waited = of("slow.up")[1];
    assert_eq!((waited.queue_packets, waited.frame), (2, 1));
    let departed = waited.departure_ns.map(|at| at as u64);
    assert_eq!(departed, Some(EPOCH + 2 * MS));
}

#[test]
fn one_capture_with_interfaces_is_as_one_for_each_port() {
    let dir = Folder::new();
    let mut sent = sent();
    sent.sort_by_key(|sent| (sent.0, sent.1));
    let all = dir.file("all.pcapng");
    // Interfaces named by the devices of two ports, and by the third port's name.
    let names = ["eth8", "west", "eth9"];
    let mut writer = CaptureWriter::create_for(&all, &names, CAPTURED_MAX).expect("a file");
    for sent in &sent {
        let interface = [1, 0, 2][sent.1];
        let (at, bytes) = (Nanos::from_nanos(sent.0), bytes(sent));
        let written = writer.write_on(interface, at, &bytes, bytes.len() as u32);
        written.expect("room");
    }
    writer.finish().expect("room");
    let scenario = dir.file("rush-hour.toml");
    write(&scenario, CHANGES);
    let (one, many, east) = (
        dir.file("1.pcapng"),
        dir.file("2.pcapng"),
        dir.file("east.pcap"),
    );
    let outs = format!("--out {one} --out east={east} --scenario {scenario}");
    let ran = simulate(&dir, NETWORK, &format!("--in {all} {outs}")).well();
    let network = format!("{NETWORK}{CHANGES}");
    let files = format!("{} --out {many}", inputs(&dir, &sent));
    let other = simulate(&dir, &network, &files);
    assert_eq!(left(&one), left(&many));
    assert_eq!(frames(&east).len(), 6);
    let timeless = |ran: &Ran| {
        let mut report = ran.json();
        report["duration_s"] = 0.into();
        // The commands name different output files.
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
    let own = format!("{NETWORK}[[at]]\ntime = \"1ms\"\noff = [\"*\"]\n");
    let simulate = |events: &str| {
        write(&scenario, events);
        let files = format!("{inputs} --out {out} --scenario {scenario}");
        simulate(&dir, &own, &format!("{files} --epoch {EPOCH}"))
            .well()
            .json()
    };
    let pause = "[[at]]\ntime = \"500ms\"\npause = [\"slow\"]\n";
    let report = simulate(&format!("{pause}[[at]]\ntime = \"1h\"\non = [\"slow\"]\n"));
    assert_eq!(left(&out)["east"], [(3_600 * SECOND + MS + 10 * MS, 1)]);
    let notes = report["notes"].to_string();
    let said = notes.contains("pause.toml") && notes.contains("1 event of");
    assert!(said, "{notes}");

    // The scenario only pauses a link, repeatedly.
    let report = simulate(&format!("{pause}every = \"1ms\"\n"));
    assert!(left(&out).is_empty());
    assert_eq!(report["in_flight"], 1);
    assert!(count(&report["changes"]["forgotten"]) > 10_000);
}

#[test]
fn frames_lost_while_they_are_moved_have_their_reason_and_rows() {
    let dir = Folder::new();
    let times = [SECOND - 1, SECOND, SECOND + 50 * MS - 1, SECOND + 50 * MS];
    let sent = times.map(|at| Sent(EPOCH + at, 0, 2, 125));
    let (out, log) = (dir.file("out.pcapng"), dir.file("log.csv"));
    let moved = "[[at]]\ntime = \"1s\"\nmove = { slow = \"far\" }\noutage = \"50ms\"\n";
    let files = format!(
        "{} --out {out} --log {log} --epoch {EPOCH}",
        inputs(&dir, &sent)
    );
    let report = simulate(&dir, &format!("{NETWORK}{moved}"), &files)
        .well()
        .json();
    let by_slow = SECOND - 1 + MS + 10 * MS;
    let by_far = SECOND + 50 * MS + 7 * MS;
    assert_eq!(left(&out)["east"], [(by_slow, 1), (by_far, 1)]);
    assert_eq!(report["unmatched_dropped"], 0);
    let far = named(&report["links"], "far.up");
    assert_eq!(
        (&far["drops"]["handover"], sum(&far["drops"])),
        (&2.into(), 2)
    );
    assert_eq!([&far["packets_in"], &far["packets_out"]], [3, 1]);
    let rows = rows_of(&log);
    let rows = rows.iter().filter(|row| &*row.link == "far.up");
    let facts = |row: &Row| {
        let reason = row.reason.as_deref().map(str::to_owned);
        (row.frame, row.arrival_ns as u64 - EPOCH, reason)
    };
    let lost = Some("handover".to_owned());
    let expected = [
        (0, times[1], lost.clone()),
        (1, times[2], lost),
        (2, times[3], None),
    ];
    assert_eq!(rows.map(facts).collect::<Vec<_>>(), expected);
}

#[test]
fn invalid_combinations_are_refused_with_the_reason() {
    let dir = Folder::new();
    let (file, west) = (dir.file("network.toml"), dir.file("west.in.pcap"));
    write(&file, NETWORK);
    let with = format!("simulate {file} {}", inputs(&dir, &sent()[..1]));
    assert_refused(&format!(
        "
        {with} --near 10.0.0.0/8 | 2 | --near; --in PORT
        {with} --link down | 2 | --link; matchers
        {with} --rate 1mbit | 2 | [defaults]
        {with} --out north=x.pcap | 2 | north; west, east, south
        {with} --out west=x.txt | 2 | .pcapng
        {with} --out east={west} | 2 | is also an input
        {with} --report {west} | 2 | is also an input or output
        {with} --out east=x.pcap --out west=x.pcap | 2 | 'x.pcap' is given twice
        {with} --log x.txt | 2 | x.txt; .csv
        simulate {file} | 2 | --in PORT=CAPTURE
        simulate {file} --in {west} | 2 | does not record the port; west, east, south
        simulate {west} | 2 | must end in .toml
        simulate {west} x.pcap --in {west} | 2 | --in and --out need a topology file
        "
    ));
}

/// A single link with a scenario equals the same link in a topology.
#[test]
fn a_scenario_changes_a_single_link() {
    let dir = Folder::new();
    inputs(&dir, &sent());
    let [out, log, network, scenario, input] = [
        "out.pcap",
        "log.csv",
        "network.toml",
        "s.toml",
        "west.in.pcap",
    ]
    .map(|name| dir.file(name));
    write(
        &scenario,
        CHANGES.replace("slow", "link").replace("far", "link.down"),
    );
    write(
        &network,
        "[ports]\na = \"null\"\nb = \"null\"\n[switching]\nmode = \"pairs\"\n\
         [[link]]\nname = \"link\"\nmatch = \"in-port=a\"\nrate = \"1mbit\"\nloss = \"20%\"\n",
    );
    let outputs = format!("--log {log} --scenario {scenario} --seed 3 --json");
    for (link, from, to) in [("up", "a", "b"), ("down", "b", "a")] {
        let one = format!("simulate {input} {out} --rate 1mbit --loss 20% --link {link} {outputs}");
        let one = longwire(one).well().json();
        assert_eq!(list(&one["changes"]["made"]).len(), 1, "{one}");
        assert!(one["records"].is_object(), "{one}");
        let (rows, left) = (rows_of(&log), frames(&out));
        let files = format!("--in {from}={input} --out {to}={out}");
        let same = longwire(format!("simulate {network} {files} {outputs}")).well();
        assert_eq!(one["links"], same.json()["links"]);
        assert_eq!((rows, left), (rows_of(&log), frames(&out)));
    }
    assert_refused(&format!(
        "
        simulate {input} {out} --scenario {network} | 2 | network.toml:1
        simulate {input} {out} --scenario {scenario} --in {input} | 2 | --in and --out need a topology
        "
    ));
}

#[test]
fn scenarios_are_checked_against_the_topology() {
    let dir = Folder::new();
    let [file, wrong, right] = ["network.toml", "wrong.toml", "s.toml"].map(|name| dir.file(name));
    write(&file, NETWORK);
    write(
        &wrong,
        "# of another network\n[[at]]\ntime = \"1s\"\noff = [\"nowhere\"]\n[ports]\na = \"b\"\n",
    );
    for command in ["check", "run"] {
        let ran = longwire(format!("{command} {file} --scenario {wrong}")).exits(2);
        ran.says("wrong.toml:4")
            .says("nowhere")
            .says("wrong.toml:5")
            .says("'ports'");
    }
    write(&right, CHANGES);
    let ran = longwire(format!("check {file} --scenario {right}")).well();
    ran.prints("slow.up: set delay 20ms");
    longwire(format!("check {file} --scenario {file}.none"))
        .exits(2)
        .says("network.toml.none");
    let ran = longwire(format!("run packet:x0 packet:x1 --scenario {right}")).exits(2);
    ran.says("s.toml:4").says("known: link");
}
