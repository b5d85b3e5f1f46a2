//! TCP between real stations over several links of one network at once, each
//! with a rate and a queue of its own: every flow gets its link's rate, plain
//! queues fill, CoDel keeps them short, and what leaves is sound.
//!
//! Where namespaces are not allowed the test passes without having run, except
//! in CI.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::process::{Capture, Running, SUSPECT, records, tshark};
use common::site::{Site, address, assert_nothing_lost, link};
use common::{Dir, have, write};
use longwire_io::net::link_stats;
use serde_json::Value;

/// Flows from the first station to the second, from the third to the fourth,
/// and from the fifth to the sixth.
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

/// A flow: from where to where, over which link, of which rate in bits a
/// second, and how much of it it fills at least. CoDel's drops cost a single
/// flow of CUBIC some of it.
const FLOWS: [(usize, usize, &str, f64, f64); 3] = [
    (0, 1, "plain", 10e6, 0.98),
    (2, 3, "managed", 6e6, 0.9),
    (4, 5, "short", 3e6, 0.9),
];

/// Of a full frame's 1,514 bytes TCP carries so many, with time stamps.
const CARRIED: f64 = 1_448.0 / 1_514.0;

/// Sends for ten seconds, of which the first two do not count.
fn sender(site: &Site, from: usize, to: usize) -> Running {
    let to = address(to).to_string();
    let mut command = Command::new("iperf3");
    command.args(["-c", &to, "-t", "8", "-O", "2", "-C", "cubic", "-J"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    Running::start(&site.stations[from], &mut command)
}

/// The bytes that have come to a station, and when.
fn arrived(site: &Site, station: usize) -> (u64, Instant) {
    let stats = site.stations[station].run(|| link_stats("eth0"));
    let stats = stats.expect("it is entered").expect("it is there");
    (stats.rx_bytes, Instant::now())
}

/// The middle of some round trips under load, in milliseconds.
fn waits(site: &Site, from: usize, to: usize) -> f64 {
    let to = address(to).to_string();
    let command = ["ping", "-c", "10", "-i", "0.2", "-W", "2", &to];
    let said = site.at(from, &command).stdout;
    let times = said
        .lines()
        .filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    let mut times: Vec<f64> = times.filter_map(|time| time.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    assert!(times.len() > 5, "{said}");
    times[times.len() / 2]
}

/// Every link's output had its rate between these two looks.
fn check_rates(before: [(u64, Instant); 3], after: [(u64, Instant); 3]) {
    for ((before, after), (.., name, rate, least)) in before.into_iter().zip(after).zip(FLOWS) {
        let bits = (after.0 - before.0) as f64 * 8.0;
        let of_link = bits / (after.1 - before.1).as_secs_f64() / rate;
        println!("{name}: {of_link:.4} of its rate");
        // Beside the flow there are a few frames of ping.
        assert!(of_link > least && of_link < 1.015, "{name}: {of_link}");
    }
}

/// What TCP had of it, as its receivers say.
fn check_tcp(senders: [Running; 3]) {
    for (sender, (.., name, rate, least)) in senders.into_iter().zip(FLOWS) {
        let ended = sender.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let received = told["end"]["sum_received"]["bits_per_second"].as_f64();
        let received = received.expect("a rate");
        let of_link = received / (rate * CARRIED);
        println!("{name}: TCP has {of_link:.4} of what the link carries");
        // What was held back for a lost segment when counting began arrives
        // afterwards: a window's worth more or less.
        assert!(
            of_link > least - 0.03 && of_link < 1.05,
            "{name}: {of_link}"
        );
    }
}

#[test]
fn flows_get_the_rates_of_their_links_and_queues_are_what_they_are() {
    let Some(site) = Site::new(6) else {
        return;
    };
    let missing = ["iperf3", "dumpcap", "tshark"].into_iter();
    if missing.filter(|program| !have(program)).count() > 0 {
        return;
    }
    let dir = Dir::new();
    let file = dir.file("flows.toml");
    write(&file, NETWORK.as_bytes());
    let network = site.start(&file);
    let servers = FLOWS.map(|(_, to, ..)| {
        let mut server = Command::new("iperf3");
        server.args(["-s", "-1"]).stdout(Stdio::null());
        Running::start(&site.stations[to], &mut server)
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
    // Until the queues are full.
    std::thread::sleep(Duration::from_secs(3));
    let before = FLOWS.map(|(_, to, ..)| arrived(&site, to));
    let [plain, managed] = [(0, 1), (2, 3)].map(|(from, to)| waits(&site, from, to));
    let after = FLOWS.map(|(_, to, ..)| arrived(&site, to));
    check_rates(before, after);
    check_tcp(senders);
    for server in servers {
        assert_eq!(server.end().code, 0);
    }
    println!("round trips: plain {plain} ms, CoDel {managed} ms");
    // A hundred full frames take 121 ms at 10 Mbit/s; CUBIC keeps the queue at
    // 70 % of that at least. CoDel's stays near its target of 5 ms: a frame
    // takes 2 ms, and a pause of this machine as long as it likes.
    assert!((60.0..160.0).contains(&plain), "{plain} ms");
    assert!((20.0..50.0).contains(&managed), "{managed} ms");
    for capture in captures {
        let file = capture.with_frames(500);
        assert!(records(&file).len() >= 500, "{file}");
        // A sum of zero is written as 0xffff, as Linux writes it for TCP too:
        // it verifies the same, and tshark would have it written as 0.
        let filter = format!("({SUSPECT}) and not tcp.checksum == 0xffff");
        let wrong = tshark(&file, &filter);
        assert!(wrong.is_empty(), "{file}:\n{wrong}");
    }
    let report = network.stop();
    for (name, reason) in [("plain.up", "queue_full"), ("managed.up", "aqm")] {
        let dropped = &link(&report, name)["dropped"];
        println!("{name}: {dropped}");
        assert!(dropped[reason].as_u64() >= Some(1), "{name}: {dropped}");
    }
    assert_nothing_lost(&report);
}
