//! Networks on several hosts: a process per namespace, differing clocks, and an
//! underlay that Longwire emulates. The hosts' verdicts are compared with a simulation
//! on one machine. Needs root; without it, the tests pass without running, except in
//! CI.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::veth::End;
use longwire_io::net::{NetNamespace, addr_add, link_up};
use longwire_testbed::support::{Folder, device, skip, wire};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::common::process::{RunningProgram, TIMEOUT, wait_for_word};
use crate::common::recording::{FrameTimes, decided, delivered};
use crate::common::site::{Network, Site, run_in, well};
use crate::common::{longwire, write};

/// A host's device towards its station.
const DEVICE: &str = "port0";

/// Hosts with a station each, and the underlay between them.
struct Cluster {
    /// The hosts are the stations of the underlay.
    site: Site,
    stations: Vec<NetNamespace>,
    dir: Folder,
}

/// A running host.
struct RunningHost {
    program: RunningProgram,
    number: usize,
}

impl Cluster {
    /// Returns `None` for users who may not create networks.
    fn new(count: usize, link: &str) -> Option<Cluster> {
        if !nix::unistd::geteuid().is_root() {
            return skip("time namespaces take root");
        }
        let site = Site::new(count)?;
        let mut stations = Vec::new();
        for (number, host) in site.stations.iter().enumerate() {
            let station = NetNamespace::new().expect("a namespace");
            let end = End {
                mac: Some(mac(number)),
                ..device("eth0", Some(&station))
            };
            wire(device(DEVICE, Some(host)), end).expect("a wire");
            let prepared = station.run(|| {
                link_up("lo")?;
                addr_add("eth0", IpAddr::V4(address(number)), 24)
            });
            prepared.expect("it is entered").expect("an address");
            stations.push(station);
        }
        let cluster = Cluster {
            site,
            stations,
            dir: Folder::new(),
        };
        write(&cluster.file("net.toml"), network(count, link).as_bytes());
        let made = longwire(&["key", &cluster.file("net.key")]);
        assert_eq!(made.code, 0, "{made:?}");
        Some(cluster)
    }

    fn file(&self, name: &str) -> String {
        self.dir.file(name)
    }

    /// Starts the underlay: each host sends through a link with these options.
    fn underlay(&self, options: &str) -> Network {
        let mut text = "[ports]\n".to_owned();
        for number in 0..self.stations.len() {
            let _ = writeln!(text, "p{number} = 'packet:p{number}'");
        }
        text += "[switching]\nmode = 'bridge'\n";
        for number in 0..self.stations.len() {
            let _ = writeln!(
                text,
                "[[link]]\nname = 'u{number}'\nmatch = 'in-port=p{number}'\nshared = true\n{options}"
            );
        }
        let file = self.file("underlay.toml");
        write(&file, text.as_bytes());
        self.site.start(&file)
    }

    /// Starts a host. Clocks of hosts differ by hours, their wall clocks by 100 ms.
    fn start(&self, number: usize, shift: &str) -> RunningHost {
        self.start_with(&self.file("net.toml"), number, shift)
    }

    fn start_with(&self, file: &str, number: usize, shift: &str) -> RunningHost {
        self.start_as(file, number, shift, |_| {})
    }

    fn start_as(
        &self,
        file: &str,
        number: usize,
        shift: &str,
        adapt: impl FnOnce(&mut Command),
    ) -> RunningHost {
        self.start_ahead(file, (number, number as i64 * 5_000), shift, adapt)
    }

    /// Starts a host whose monotonic clock is ahead of the kernel's by these seconds.
    fn start_ahead(
        &self,
        file: &str,
        (number, ahead): (usize, i64),
        shift: &str,
        adapt: impl FnOnce(&mut Command),
    ) -> RunningHost {
        let mut command = Command::new("unshare");
        command.args(["--time", "--monotonic", &ahead.to_string()]);
        command.arg(env!("CARGO_BIN_EXE_longwire"));
        let name = format!("h{number}");
        let of = |end: &str| self.file(&format!("{name}{end}"));
        command.args(["run", file, "--host", &name]);
        command.args([
            "--capture",
            &of(""),
            "--log",
            &of(".csv"),
            "--report",
            &of(".json"),
        ]);
        command.args(["--tolerance", "10s"]);
        adapt(&mut command);
        command.env("LONGWIRE_TEST_CLOCK_SHIFT", shift);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        RunningHost {
            program: RunningProgram::start(&self.site.stations[number], &mut command),
            number,
        }
    }

    fn start_all(&self) -> Vec<RunningHost> {
        let shifts = ["0", "100", "-100"];
        let hosts = 0..self.stations.len();
        let mut hosts: Vec<_> = hosts.map(|it| self.start(it, shifts[it % 3])).collect();
        hosts.iter_mut().for_each(RunningHost::wait);
        hosts
    }

    /// Sends pings from one station to another; they need no reply.
    fn ping(&self, from: usize, to: usize, options: &[&str]) -> i32 {
        let to = address(to).to_string();
        let command = [&["ping", "-q"], options, &[to.as_str()]].concat();
        run_in(&self.stations[from], &command).code
    }

    fn wait_for_answer(&self, from: usize, to: usize) {
        let began = Instant::now();
        while self.ping(from, to, &["-c", "2", "-i", "0.1", "-W", "1"]) != 0 {
            assert!(began.elapsed() < TIMEOUT, "no answer of station {to}");
        }
    }

    /// Sends pings from every station to the next, concurrently.
    fn talk(&self, count: &str) {
        std::thread::scope(|scope| {
            for from in 0..self.stations.len() {
                let to = (from + 1) % self.stations.len();
                scope.spawn(move || {
                    self.ping(
                        from,
                        to,
                        &["-c", count, "-i", "0.01", "-s", "1400", "-W", "1"],
                    );
                });
            }
        });
    }

    /// Runs traffic between all stations over this underlay; returns the hosts'
    /// reports. Repeats a run in which a busy machine stalled a host until the others
    /// gave it up.
    fn run_connected(&self, underlay: &str, count: &str) -> Vec<Value> {
        let last = self.stations.len() - 1;
        for _ in 0..4 {
            let network = self.underlay(underlay);
            let hosts = self.start_all();
            self.wait_for_answer(0, last);
            self.talk(count);
            // The last frames arrive too.
            self.ping(0, last, &["-c", "1", "-W", "1"]);
            let reports = stop_all(hosts, self);
            network.stop();
            let (outages, sessions) = (total(&reports, "outages"), total(&reports, "sessions"));
            if outages == 0 && sessions == (last * (last + 1)) as u64 {
                return reports;
            }
            println!("repeated: {outages} outages, {sessions} sessions");
        }
        panic!("hosts gave each other up in each run");
    }

    /// Runs traffic over an underlay of this delay, in milliseconds. Asserts that each
    /// frame with less delay is late. Returns the number of other late frames, and of
    /// all frames.
    fn late_beyond(&self, underlay: i64) -> [u64; 2] {
        let reports = self.run_connected(&format!("delay = '{underlay}ms'"), "100");
        let compared = self.compare(&reports);
        let frames: Vec<FrameTimes> = (0..self.stations.len())
            .flat_map(|number| {
                let log = self.file(&format!("h{number}.csv"));
                delivered(&log, &format!("l{number}"))
            })
            .collect();
        let [received, late, lost] =
            ["frames_received", "frames_late", "frames_lost"].map(|name| total(&reports, name));
        let is_slow = |frame: &&FrameTimes| frame.time < underlay * 1_000_000;
        let slow = frames.iter().filter(is_slow).count() as u64;
        println!("{underlay} | {received} | {slow} | {late} | {compared}, {lost} lost");
        // The row of a frame sent by a kernel at the end does not count: it is between
        // the hosts when they stop, and the underlay loses datagrams when the machine
        // stops it.
        let missing = frames.len() as u64 - received;
        assert!(missing <= lost + 2, "{missing} missing, {lost} lost");
        if missing > 0 {
            return [received, received];
        }
        assert_eq!(lost, 0, "nothing is lost");
        assert!(late >= slow, "{late} late, {slow} must be");
        [late - slow, received]
    }

    /// Compares the verdicts of all hosts with those of one machine; returns their
    /// number.
    fn compare(&self, reports: &[Value]) -> usize {
        let epoch = reports[0]["epoch_ns"].to_string();
        let (file, log) = (self.file("net.toml"), self.file("one.csv"));
        let inputs: Vec<String> = (0..self.stations.len())
            .map(|number| self.file(&format!("h{number}.in.pcapng")))
            .collect();
        let mut arguments = vec!["simulate", &file, "--log", &log, "--epoch", &epoch];
        for input in &inputs {
            arguments.extend(["--in", input]);
        }
        let simulated = longwire(&arguments);
        assert_eq!(simulated.code, 0, "{simulated:?}");
        let mut compared = 0;
        for (number, report) in reports.iter().enumerate() {
            assert_eq!(report["epoch_ns"].to_string(), epoch, "host {number}");
            assert_eq!(report["unrecorded"], 0, "host {number}");
            let (link, own) = (format!("l{number}"), self.file(&format!("h{number}.csv")));
            let (live, again) = (decided(&own, &link), decided(&log, &link));
            for (frame, row) in &live {
                assert_eq!(Some(row), again.get(frame), "{link}");
            }
            // Each captured frame has a verdict.
            for (frame, row) in &again {
                assert_eq!(Some(row), live.get(frame), "{link}");
            }
            assert!(live.len() > 20, "{link}: {} rows", live.len());
            compared += live.len();
        }
        compared
    }
}

impl RunningHost {
    fn wait(&mut self) {
        wait_for_word(&mut self.program, " between ");
    }

    /// Stops the host and returns its report.
    fn stop(self, cluster: &Cluster) -> Value {
        self.program.signal(Signal::SIGINT);
        let ended = self.program.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        let report = std::fs::read(cluster.file(&format!("h{}.json", self.number)));
        serde_json::from_slice(&report.expect("a report")).expect("JSON")
    }
}

fn stop_all(hosts: Vec<RunningHost>, cluster: &Cluster) -> Vec<Value> {
    hosts.into_iter().map(|host| host.stop(cluster)).collect()
}

fn address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, 0, station as u8 + 1)
}

fn mac(station: usize) -> [u8; 6] {
    [2, 0, 0, 0, 2, station as u8]
}

/// Returns a switch with a port per host; its frames cross the host's link with these
/// options.
fn network(count: usize, link: &str) -> String {
    let (mut ports, mut stations) = ("[ports]\n".to_owned(), String::new());
    let (mut links, mut hosts) = (String::new(), String::new());
    for number in 0..count {
        let _ = writeln!(ports, "r{number} = 'packet:{DEVICE}'");
        let _ = writeln!(stations, "'02:00:00:00:02:{number:02x}' = 'r{number}'");
        let _ = writeln!(
            links,
            "[[link]]\nname = 'l{number}'\nmatch = 'in-port=r{number}'\nshared = true\n{link}"
        );
        let _ = writeln!(
            hosts,
            "[[host]]\nname = 'h{number}'\naddress = '10.9.0.{}'\nports = 'r{number}'",
            number + 1
        );
    }
    format!(
        "{ports}[switching]\nmode = 'static'\n[switching.stations]\n{stations}{links}{hosts}\
         [underlay]\nkey = 'net.key'\n"
    )
}

/// Returns a counter's sum over all peers of all hosts.
fn total(reports: &[Value], name: &str) -> u64 {
    let peers = |report: &Value| report["hosts"]["peers"].as_array().cloned();
    let peers = reports.iter().filter_map(peers).flatten();
    peers.map(|peer| peer[name].as_u64().expect(name)).sum()
}

/// A link whose verdicts use all its random streams. It leaves 40 ms for the underlay
/// and delays by a busy machine.
const LINK: &str = "rate = '50mbit'\ndelay = 'uniform:min=40ms,max=60ms'\nloss = '3%'\n\
                    duplicate = '1%'\n";

#[test]
fn verdicts_are_those_of_one_machine_whatever_the_underlay_does() {
    let _alone = crate::alone();
    let underlays = [
        "delay = '50us'",
        "delay = '500us'\nloss = '0.1%'",
        "delay = 'uniform:min=1ms,max=3ms'\nloss = '0.1%'",
        "delay = '80ms'",
    ];
    let Some(cluster) = Cluster::new(2, LINK) else {
        return;
    };
    for underlay in underlays {
        let reports = cluster.run_connected(underlay, "100");
        let compared = cluster.compare(&reports);
        let [received, late, lost] =
            ["frames_received", "frames_late", "frames_lost"].map(|name| total(&reports, name));
        println!(
            "{underlay:?}: {compared} verdicts equal; {received} received, {late} late, {lost} lost"
        );
        assert!(received > 200, "{received}");
        let artifacts = reports.iter().zip(["r0", "r1"]).map(|(report, port)| {
            let ports = report["ports"].as_array().expect("ports");
            let port = ports
                .iter()
                .find(|it| it["name"] == port)
                .expect("its port");
            port["artifacts"]["underlay"].as_u64().expect("a count")
        });
        // Frames after the stop reach no port.
        let shown = artifacts.sum::<u64>();
        assert!(shown <= late && late - shown < 20, "{shown} of {late}");
        // A busy machine delays some frames of a fast underlay, but no frame of a slow
        // one is early.
        if underlay.contains("80ms") {
            assert_eq!(late, received);
        } else {
            assert!(late < received / 2, "{late} of {received}");
        }
    }
}

#[test]
fn frames_for_which_the_underlay_is_too_slow_are_late_and_decided_as_before() {
    let _alone = crate::alone();
    // Links delay frames by 40 to 60 ms.
    let Some(cluster) = Cluster::new(2, LINK) else {
        return;
    };
    println!("underlay ms | frames | of less delay | late | equal verdicts");
    for underlay in [5, 20, 35, 45, 50, 55, 65] {
        // A busy machine slows the underlay, sometimes a lot, or loses datagrams;
        // nothing speeds it up.
        let excess = (0..4).map(|_| cluster.late_beyond(underlay));
        assert!(
            excess
                .into_iter()
                .any(|[late, received]| late <= received / 4),
            "{underlay} ms: frames are late that need not be"
        );
    }
}

#[test]
fn frames_lost_by_the_underlay_are_resent_in_time() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "rate = '50mbit'\ndelay = '400ms'\n") else {
        return;
    };
    let reports = cluster.run_connected("delay = '500us'\nloss = '2%'", "300");
    let [received, lost, recovered, resent] = [
        "frames_received",
        "frames_lost",
        "frames_recovered",
        "datagrams_resent",
    ]
    .map(|name| total(&reports, name));
    println!("{received} received, {recovered} of them again, {resent} sent again, {lost} lost");
    assert!(received > 600 && recovered > 0, "{received} {recovered}");
    assert!(resent >= recovered / 2, "{resent} for {recovered}");
    // A stall that delays frames by 400 ms makes retransmitted ones late as well.
    let late = total(&reports, "frames_late");
    assert!(lost == 0 || late > 0, "{lost} lost, none late");
    cluster.compare(&reports);
}

#[test]
fn three_and_eight_hosts_decide_like_one() {
    let _alone = crate::alone();
    for count in [3, 8] {
        let Some(cluster) = Cluster::new(count, LINK) else {
            return;
        };
        let underlay = "delay = 'uniform:min=200us,max=600us'\nloss = '0.1%'";
        let reports = cluster.run_connected(underlay, "60");
        println!(
            "{count} hosts: {} verdicts equal",
            cluster.compare(&reports)
        );
        for (number, report) in reports.iter().enumerate() {
            for peer in report["hosts"]["peers"].as_array().expect("peers") {
                // Wall clocks are 0, 100 or -100 ms ahead.
                let ahead = |it: usize| [0, 100, -100][it % 3] as f64;
                let other = peer["name"].as_str().and_then(|it| it[1..].parse().ok());
                let expected = ahead(other.expect("a number")) - ahead(number);
                let found = peer["clock_offset_ns"].as_f64().expect("an offset") / 1e6;
                let allowed = peer["clock_uncertainty_ns"].as_f64().expect("a bound") / 1e6;
                // Both readings of a timestamp may be interrupted.
                assert!((found - expected).abs() < allowed + 20.0, "{found}: {peer}");
            }
        }
    }
}

#[test]
fn links_of_a_killed_host_stop_until_it_restarts() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(3, "delay = '5ms'\n") else {
        return;
    };
    let network = cluster.underlay("delay = '300us'");
    let mut hosts = cluster.start_all();
    cluster.wait_for_answer(0, 1);
    cluster.wait_for_answer(0, 2);

    hosts.remove(1).program.signal(Signal::SIGKILL);
    // The other hosts continue, and report the loss.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        cluster.wait_for_answer(0, 2);
        cluster.ping(0, 1, &["-c", "3", "-i", "0.05", "-W", "1"]);
    }
    let stranger = cluster.site.stations[2].run(|| {
        let socket = UdpSocket::bind("10.9.0.3:0")?;
        (0..10).try_for_each(|byte| socket.send_to(&[byte; 80], "10.9.0.1:4795").map(drop))
    });
    stranger
        .expect("it is entered")
        .expect("datagrams are sent");

    let mut again = cluster.start(1, "100,50@3000");
    again.wait();
    cluster.wait_for_answer(0, 1);
    cluster.wait_for_answer(2, 1);
    // Its wall clock is set after three seconds.
    std::thread::sleep(Duration::from_secs(4));
    hosts.push(again);
    let reports = stop_all(hosts, &cluster);
    network.stop();

    let epochs: Vec<&Value> = reports.iter().map(|report| &report["epoch_ns"]).collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
    for report in &reports[..2] {
        let peers = report["hosts"]["peers"].as_array().expect("peers");
        let dead = peers.iter().find(|peer| peer["name"] == "h1").expect("h1");
        assert_eq!(
            (&dead["sessions"], &dead["connected"]),
            (&2.into(), &true.into()),
            "{dead}"
        );
        assert!(dead["outages"].as_u64() >= Some(1), "{dead}");
        let notes = report["notes"].to_string();
        for said in ["'h1' does not respond", "'h1' was restarted"] {
            assert!(notes.contains(said), "{said}: {notes}");
        }
        // Both clock readings may be interrupted.
        let mut set = notes.split("'h1' stepped its wall clock by ").skip(1);
        let by = |rest: &str| rest.split(' ').next()?.parse::<f64>().ok();
        let found = set.any(|rest| by(rest).is_some_and(|by| (49.0..=51.0).contains(&by)));
        assert!(found, "clock set by +50 ms: {notes}");
    }
    let first = &reports[0];
    assert!(first["hosts"]["foreign"].as_u64() >= Some(10), "{first}");
    let link = first["links"].as_array().and_then(|links| links.first());
    let lost = link.map(|link| link["drops"]["port_lost"].as_u64());
    assert!(lost.flatten() >= Some(1), "{link:?}");
}

#[test]
fn a_machine_that_was_started_again_rejoins_and_is_seen_live() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let network = cluster.underlay("delay = '300us'");
    let (file, socket) = (cluster.file("net.toml"), cluster.file("control"));
    let mut first = cluster.start_as(&file, 0, "0", |command| {
        command.args(["--control", &socket]);
    });
    let mut second = cluster.start(1, "0");
    first.wait();
    second.wait();
    cluster.wait_for_answer(0, 1);
    second.program.signal(Signal::SIGKILL);
    std::thread::sleep(Duration::from_secs(4));

    // The machine booted after the run began.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    let mut again = cluster.start_ahead(&file, (1, 1 - now.tv_sec()), "0", |_| {});
    again.wait();
    cluster.wait_for_answer(0, 1);
    cluster.wait_for_answer(1, 0);

    let live = |what: &[&str]| {
        let arguments = [&["ctl", "--control", &socket], what].concat();
        well(&arguments, longwire(&arguments))
    };
    let report: Value = serde_json::from_str(&live(&["--json", "report"])).expect("JSON");
    let peer = &report["hosts"]["peers"][0];
    assert_eq!((&peer["name"], &peer["outages"]), (&"h1".into(), &1.into()));
    assert!(peer["frames_received"].as_u64() >= Some(1), "{peer}");
    let reports = stop_all(vec![first, again], &cluster);
    network.stop();
    assert_eq!(reports[0]["epoch_ns"], reports[1]["epoch_ns"]);
    let verdict = reports[0]["verdict"]["line"].to_string();
    assert!(
        verdict.contains("host h1 stopped responding once"),
        "{verdict}"
    );
    let frames = reports[1]["ports"][1]["packets_in"].as_u64();
    assert!(frames >= Some(2), "{}", reports[1]["ports"]);
}

#[test]
fn frames_from_before_the_start_are_no_part_of_the_run() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '50ms'\n") else {
        return;
    };
    let network = cluster.underlay("delay = '300us'");
    let mut first = cluster.start(0, "0");
    let (to, at) = (address(1).to_string(), "02:00:00:00:02:01");
    let station = &cluster.site.stations[0];
    let neighbour = ["ip", "neigh", "add", &to, "lladdr", at, "dev", "eth0"];
    let added = cluster.stations[0].run(|| Command::new("ip").args(&neighbour[1..]).status());
    assert!(added.expect("it is entered").expect("ip runs").success());
    // The port is open once its packet socket is listed, for all protocols (3).
    let began = Instant::now();
    while run_in(station, &["grep", "-qw", "0003", "/proc/net/packet"]).code != 0 {
        assert!(began.elapsed() < TIMEOUT, "no port");
        std::thread::sleep(Duration::from_millis(20));
    }
    cluster.ping(0, 1, &["-c", "40", "-i", "0.02", "-W", "1"]);
    let mut second = cluster.start(1, "0");
    first.wait();
    second.wait();
    cluster.wait_for_answer(0, 1);
    let reports = stop_all(vec![first, second], &cluster);
    network.stop();
    let artifacts = &reports[0]["ports"][0]["artifacts"];
    assert_eq!(artifacts["late_start"], 0, "{artifacts}");
    let (received, late) = (
        total(&reports, "frames_received"),
        total(&reports, "frames_late"),
    );
    assert!(received < 40 && late < 20, "{received} {late}");
}

#[test]
fn hosts_with_different_files_or_names_are_refused() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let file = cluster.file("net.toml");
    for (arguments, said) in [
        (&["run", &file][..], "--host NAME, one of h0, h1"),
        (&["run", &file, "--host", "h7"], "unknown host 'h7'"),
        (&["run", &file, "--host", "h0", "--shards", "2"], "--shards"),
        (&["run", "null", "null", "--host", "h0"], "--host needs"),
        (&["key", &cluster.file("net.key")], "exists"),
    ] {
        let namespace = &cluster.site.stations[0];
        let command = [&[env!("CARGO_BIN_EXE_longwire")], arguments].concat();
        let refused = run_in(namespace, &command);
        assert_ne!(refused.code, 0, "{arguments:?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let checked = well(&["check"], longwire(&["check", &file]));
    assert!(
        checked.contains("host       h1 (10.9.0.2:4795)"),
        "{checked}"
    );
    let _network = cluster.underlay("delay = '100us'");
    let other = cluster.file("other.toml");
    // Different link options, and longer datagrams.
    let longer = format!("{}mtu = 9000\n", network(2, "delay = '5ms'\n"));
    for text in [network(2, "delay = '6ms'\n"), longer] {
        write(&other, text.as_bytes());
        let first = cluster.start(0, "0");
        let _second = cluster.start_with(&other, 1, "0");
        let ended = first.program.end();
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("has another topology"), "{ended:?}");
    }
}

#[test]
fn files_of_models_are_compared_and_bounds_below_the_clocks_refused() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let _network = cluster.underlay("delay = '500us'");
    // The same file name with different contents on each host.
    let file = cluster.file("net.toml");
    write(&file, network(2, "rate = 'trace:file=rates'\n").as_bytes());
    let start = |number: usize, rate: &str| {
        let folder = cluster.file(&format!("folder{number}"));
        std::fs::create_dir(&folder).expect("a folder");
        write(
            &format!("{folder}/rates"),
            format!("0s {rate}\n").as_bytes(),
        );
        cluster.start_as(&file, number, "0", |command| {
            command.current_dir(folder);
        })
    };
    let (host, other) = (start(0, "1mbit"), start(1, "2mbit"));
    let ended = host.program.end();
    assert!(ended.stderr.contains("has another topology"), "{ended:?}");
    drop(other);

    write(&file, network(2, "delay = '5ms'\n").as_bytes());
    let host = cluster.start_as(&file, 0, "0", |command| {
        command.args(["--require", "lateness.p99<10us,packets_in>=0"]);
    });
    let _other = cluster.start(1, "0");
    let ended = host.program.end();
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(
        ended.stderr.contains("below the clock uncertainty"),
        "{ended:?}"
    );
}
