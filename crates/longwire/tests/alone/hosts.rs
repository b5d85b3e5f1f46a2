//! Multi-host networks: one process per namespace, with differing clocks and an underlay emulated
//! by Longwire. The hosts' verdicts are compared with a simulation on one machine. Needs root;
//! skipped without it, except in CI.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use longwire_capture::log::Row;
use longwire_io::net::veth::End;
use longwire_io::net::{NetNamespace, addr_add, link_up};
use longwire_testbed::support::{Folder, device, skip, wire, within};
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::common::program::{
    RunningProgram, change, eventually, json_of, longwire, piped, run_in,
};
use crate::common::recording::decided;
use crate::common::site::{Network, Site};
use crate::common::{count, list, named, number as number_of, read_json, write};

/// Name of each host's device toward its station.
const DEVICE: &str = "port0";

/// Hosts with one station each, and the underlay between them.
struct Cluster {
    /// Network of the underlay, whose stations are the hosts.
    site: Site,
    stations: Vec<NetNamespace>,
    dir: Folder,
}

struct RunningHost {
    program: RunningProgram,
    number: usize,
}

impl Cluster {
    /// Creates the hosts, stations and underlay; `None` if the user may not create networks.
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
            within(&station, || {
                link_up("lo")?;
                addr_add("eth0", IpAddr::V4(address(number)), 24)
            });
            stations.push(station);
        }
        let cluster = Cluster {
            site,
            stations,
            dir: Folder::new(),
        };
        write(cluster.file("net.toml"), network(count, link));
        longwire(format!("key {}", cluster.file("net.key"))).well();
        Some(cluster)
    }

    fn file(&self, name: &str) -> String {
        self.dir.file(name)
    }

    /// Returns the working directory of a host.
    fn folder(&self, number: usize) -> String {
        let folder = self.file(&format!("folder{number}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// Starts the underlay; each host sends through a link with these options.
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
        write(&file, text);
        self.site.start(&file)
    }

    /// Starts a host whose wall clock is shifted by `shift` ms. The hosts' monotonic clocks differ
    /// by more than an hour.
    fn start(&self, number: usize, shift: &str) -> RunningHost {
        self.start_as(&self.file("net.toml"), number, shift, "")
    }

    fn start_as(&self, file: &str, number: usize, shift: &str, options: &str) -> RunningHost {
        self.start_ahead(file, (number, number as i64 * 5_000), shift, options)
    }

    /// Starts a host whose monotonic clock is ahead of the kernel's by these seconds.
    fn start_ahead(
        &self,
        file: &str,
        (number, ahead): (usize, i64),
        shift: &str,
        options: &str,
    ) -> RunningHost {
        let own = self.file(&format!("h{number}"));
        let mut command = piped(format!(
            "unshare --time --monotonic {ahead} longwire run {file} --host h{number} \
             --capture {own} --log {own}.csv --report {own}.json --tolerance 10s {options}"
        ));
        command.env("LONGWIRE_TEST_CLOCK_SHIFT", shift);
        command.current_dir(self.folder(number));
        RunningHost {
            program: RunningProgram::start(&self.site.stations[number], &mut command),
            number,
        }
    }

    fn start_all(&self) -> Vec<RunningHost> {
        let shifts = ["0", "100", "-100"];
        let hosts = 0..self.stations.len();
        let hosts: Vec<_> = hosts.map(|it| self.start(it, shifts[it % 3])).collect();
        hosts.into_iter().map(RunningHost::connected).collect()
    }

    /// Sends pings from one station to another; returns the exit code of `ping`.
    fn ping(&self, from: usize, to: usize, options: &str) -> i32 {
        run_in(
            &self.stations[from],
            format!("ping -q {options} {}", address(to)),
        )
        .code
    }

    #[track_caller]
    fn wait_for_answer(&self, from: usize, to: usize) {
        eventually("an answer", || self.ping(from, to, "-c 2 -i 0.1 -W 1") == 0);
    }

    /// Sends pings from every station to the next one, concurrently.
    fn talk(&self, count: u32) {
        let options = format!("-c {count} -i 0.01 -s 1400 -W 1");
        std::thread::scope(|scope| {
            for from in 0..self.stations.len() {
                let to = (from + 1) % self.stations.len();
                let options = &options;
                scope.spawn(move || self.ping(from, to, options));
            }
        });
    }

    /// Runs the hosts over this underlay with traffic between all stations; returns the hosts'
    /// reports.
    fn run_connected(&self, underlay: &str, pings: u32) -> Vec<Value> {
        let last = self.stations.len() - 1;
        let network = self.underlay(underlay);
        let hosts = self.start_all();
        self.wait_for_answer(0, last);
        self.talk(pings);
        // Wait for the last frames.
        self.ping(0, last, "-c 1 -W 1");
        let reports = stop_all(hosts, self);
        network.stop();
        let sessions = total(&reports, "sessions");
        assert!(
            sessions >= (last * (last + 1)) as u64,
            "{sessions} sessions"
        );
        reports
    }

    /// Compares the verdicts of all hosts with those of a simulation on one machine; returns the
    /// number of verdicts compared.
    ///
    /// On a busy machine, hosts may drop a stalled peer. Their links then drop frames to its ports,
    /// which cannot happen on one machine, so a link's rows are compared only up to the first such
    /// drop.
    fn compare(&self, reports: &[Value]) -> usize {
        let epoch = reports[0]["epoch_ns"].to_string();
        let (file, log) = (self.file("net.toml"), self.file("one.csv"));
        let inputs =
            (0..self.stations.len()).map(|number| self.file(&format!("h{number}.in.pcapng")));
        let inputs: String = inputs.map(|input| format!(" --in {input}")).collect();
        longwire(format!(
            "simulate {file} --log {log} --epoch {epoch}{inputs}"
        ))
        .well();
        let mut compared = 0;
        for (number, report) in reports.iter().enumerate() {
            assert_eq!(report["epoch_ns"].to_string(), epoch, "host {number}");
            assert_eq!(report["unrecorded"], 0, "host {number}");
            let (link, own) = (format!("l{number}"), self.file(&format!("h{number}.csv")));
            let (mut live, mut again) = (decided(&own, &link), decided(&log, &link));
            assert!(live.len() > 20, "{link}: {} rows", live.len());
            let is_lost = |row: &&Row| row.reason.as_deref() == Some("port_lost");
            let lost = live.values().find(is_lost).map(|row| row.frame);
            let dropped = &named(&report["links"], &link)["drops"]["port_lost"];
            assert_eq!(
                lost.is_some(),
                dropped.as_u64() > Some(0),
                "{link}: {dropped}"
            );
            if let Some(lost) = lost {
                live.retain(|(frame, _), _| *frame < lost);
                again.retain(|(frame, _), _| *frame < lost);
            }
            // Both have a verdict for each captured frame.
            assert_eq!(live, again, "{link}");
            compared += live.len();
        }
        compared
    }
}

impl RunningHost {
    fn connected(mut self) -> RunningHost {
        self.program = self.program.ready(" between ");
        self
    }

    /// Stops the host and returns its report.
    fn stop(self, cluster: &Cluster) -> Value {
        self.program.stop();
        read_json(&cluster.file(&format!("h{}.json", self.number)))
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

/// Returns a switch with a port per host; a host's frames cross its link with these options.
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

/// Returns the sum of a counter over all peers of all hosts.
fn total(reports: &[Value], name: &str) -> u64 {
    let peers = reports
        .iter()
        .flat_map(|report| list(&report["hosts"]["peers"]));
    peers.map(|peer| count(&peer[name])).sum()
}

/// Link options whose verdicts draw from the random streams of delay, loss and duplication. The
/// minimum delay leaves 40 ms for the underlay and a busy machine.
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
        let reports = cluster.run_connected(underlay, 100);
        let compared = cluster.compare(&reports);
        let [received, late, lost] =
            ["frames_received", "frames_late", "frames_lost"].map(|name| total(&reports, name));
        println!(
            "{underlay:?}: {compared} verdicts equal; {received} received, {late} late, {lost} lost"
        );
        assert!(received > 200, "{received}");
        let artifacts = reports
            .iter()
            .zip(["r0", "r1"])
            .map(|(report, port)| count(&named(&report["ports"], port)["artifacts"]["underlay"]));
        // Frames that arrive after the stop are not counted at a port.
        let shown = artifacts.sum::<u64>();
        assert!(shown <= late && late - shown < 20, "{shown} of {late}");
        // Over the slow underlay, every frame arrives after its due time. Over a fast one, only a
        // busy machine delays frames, and not most of them.
        if underlay.contains("80ms") {
            assert_eq!(late, received);
        } else {
            assert!(late < received / 2, "{late} of {received}");
        }
    }
}

#[test]
fn three_and_eight_hosts_decide_like_one() {
    let _alone = crate::alone();
    for hosts in [3, 8] {
        let Some(cluster) = Cluster::new(hosts, LINK) else {
            return;
        };
        let underlay = "delay = 'uniform:min=200us,max=600us'\nloss = '0.1%'";
        let reports = cluster.run_connected(underlay, 60);
        println!(
            "{hosts} hosts: {} verdicts equal",
            cluster.compare(&reports)
        );
        for (number, report) in reports.iter().enumerate() {
            for peer in list(&report["hosts"]["peers"]) {
                // Wall clocks are 0, 100 or -100 ms ahead.
                let ahead = |it: usize| [0, 100, -100][it % 3] as f64;
                let other = peer["name"].as_str().and_then(|it| it[1..].parse().ok());
                let expected = ahead(other.expect("a number")) - ahead(number);
                let [found, allowed] = ["clock_offset_ns", "clock_uncertainty_ns"]
                    .map(|name| number_of(&peer[name]) / 1e6);
                // Either clock reading of a timestamp may be interrupted.
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

    hosts.remove(1).program.kill();
    // The other hosts keep running, and report the loss.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        cluster.wait_for_answer(0, 2);
        cluster.ping(0, 1, "-c 3 -i 0.05 -W 1");
    }
    within(&cluster.site.stations[2], || {
        let socket = UdpSocket::bind("10.9.0.3:0")?;
        (0..10).try_for_each(|byte| socket.send_to(&[byte; 80], "10.9.0.1:4795").map(drop))
    });

    let again = cluster.start(1, "100,50@3000").connected();
    cluster.wait_for_answer(0, 1);
    cluster.wait_for_answer(2, 1);
    // The host's wall clock is stepped after three seconds.
    std::thread::sleep(Duration::from_secs(4));
    hosts.push(again);
    let reports = stop_all(hosts, &cluster);
    network.stop();

    let epochs: Vec<&Value> = reports.iter().map(|report| &report["epoch_ns"]).collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
    for report in &reports[..2] {
        let dead = named(&report["hosts"]["peers"], "h1");
        assert_eq!(dead["sessions"], 2, "{dead}");
        assert!(
            dead["connected"] == true && count(&dead["outages"]) >= 1,
            "{dead}"
        );
        let notes = report["notes"].to_string();
        for said in ["'h1' is not responding", "'h1' was restarted"] {
            assert!(notes.contains(said), "{said}: {notes}");
        }
        // Either clock reading may be interrupted.
        let mut set = notes.split("'h1' stepped its wall clock by ").skip(1);
        let by = |rest: &str| rest.split(' ').next()?.parse::<f64>().ok();
        let found = set.any(|rest| by(rest).is_some_and(|by| (49.0..=51.0).contains(&by)));
        assert!(found, "clock set by +50 ms: {notes}");
    }
    let first = &reports[0];
    assert!(count(&first["hosts"]["foreign"]) >= 10, "{first}");
    assert!(
        count(&first["links"][0]["drops"]["port_lost"]) >= 1,
        "{first}"
    );
}

#[test]
fn a_machine_that_was_started_again_rejoins_and_is_seen_live() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let network = cluster.underlay("delay = '300us'");
    let (file, socket) = (cluster.file("net.toml"), cluster.file("control"));
    let first = cluster.start_as(&file, 0, "0", &format!("--control {socket}"));
    let second = cluster.start(1, "0");
    let (first, second) = (first.connected(), second.connected());
    cluster.wait_for_answer(0, 1);
    second.program.kill();
    std::thread::sleep(Duration::from_secs(4));

    // Restart the host with the monotonic clock of a machine that booted after the run began.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    let again = cluster
        .start_ahead(&file, (1, 1 - now.tv_sec()), "0", "")
        .connected();
    cluster.wait_for_answer(0, 1);
    cluster.wait_for_answer(1, 0);

    let report = json_of(format!("ctl --control {socket} --json report"));
    let peer = &report["hosts"]["peers"][0];
    assert_eq!((&peer["name"], &peer["outages"]), (&"h1".into(), &1.into()));
    assert!(count(&peer["frames_received"]) >= 1, "{peer}");
    let reports = stop_all(vec![first, again], &cluster);
    network.stop();
    assert_eq!(reports[0]["epoch_ns"], reports[1]["epoch_ns"]);
    let verdict = reports[0]["verdict"]["line"].to_string();
    assert!(
        verdict.contains("host h1 stopped responding once"),
        "{verdict}"
    );
    let ports = &reports[1]["ports"];
    assert!(count(&ports[1]["packets_in"]) >= 2, "{ports}");
}

#[test]
fn frames_from_before_the_start_are_no_part_of_the_run() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '50ms'\n") else {
        return;
    };
    let network = cluster.underlay("delay = '300us'");
    let first = cluster.start(0, "0");
    let neighbour = format!(
        "ip neigh add {} lladdr 02:00:00:00:02:01 dev eth0",
        address(1)
    );
    change(&cluster.stations[0], neighbour);
    // The port is open once its packet socket, for all protocols (3), is listed.
    let host = &cluster.site.stations[0];
    eventually("a port", || {
        run_in(host, "grep -qw 0003 /proc/net/packet").code == 0
    });
    cluster.ping(0, 1, "-c 40 -i 0.02 -W 1");
    let second = cluster.start(1, "0");
    let (first, second) = (first.connected(), second.connected());
    cluster.wait_for_answer(0, 1);
    let reports = stop_all(vec![first, second], &cluster);
    network.stop();
    let artifacts = &reports[0]["ports"][0]["artifacts"];
    assert_eq!(artifacts["late_start"], 0, "{artifacts}");
    let [received, late] = ["frames_received", "frames_late"].map(|name| total(&reports, name));
    assert!(received < 40 && late < 20, "{received} {late}");
}

#[test]
fn hosts_with_different_files_or_names_are_refused() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let file = cluster.file("net.toml");
    for (line, text) in [
        (format!("run {file}"), "--host NAME, one of h0, h1"),
        (format!("run {file} --host h7"), "unknown host 'h7'"),
        (format!("run {file} --host h0 --shards 2"), "--shards"),
        ("run null null --host h0".to_owned(), "--host needs"),
        (format!("key {}", cluster.file("net.key")), "exists"),
    ] {
        let refused = run_in(&cluster.site.stations[0], format!("longwire {line}")).says(text);
        assert_ne!(refused.code, 0, "{refused:?}");
    }
    longwire(format!("check {file}"))
        .well()
        .prints("host       h1 (10.9.0.2:4795)");
    let _network = cluster.underlay("delay = '100us'");
    let other = cluster.file("other.toml");
    // Different link options, and longer datagrams.
    let longer = format!("{}mtu = 9000\n", network(2, "delay = '5ms'\n"));
    for text in [network(2, "delay = '6ms'\n"), longer] {
        write(&other, text);
        let first = cluster.start(0, "0");
        let _second = cluster.start_as(&other, 1, "0", "");
        first
            .program
            .end()
            .exits(2)
            .says("has a different topology");
    }
}

#[test]
fn files_of_models_are_compared_and_bounds_below_the_clocks_refused() {
    let _alone = crate::alone();
    let Some(cluster) = Cluster::new(2, "delay = '5ms'\n") else {
        return;
    };
    let _network = cluster.underlay("delay = '500us'");
    // The file has the same name but different contents on each host.
    let file = cluster.file("net.toml");
    write(&file, network(2, "rate = 'trace:file=rates'\n"));
    let start = |number: usize, rate: &str| {
        write(
            format!("{}/rates", cluster.folder(number)),
            format!("0s {rate}\n"),
        );
        cluster.start_as(&file, number, "0", "")
    };
    let (host, other) = (start(0, "1mbit"), start(1, "2mbit"));
    let _ = host.program.end().says("has a different topology");
    drop(other);

    write(&file, network(2, "delay = '5ms'\n"));
    let require = "--require lateness.p99<10us,packets_in>=0";
    let host = cluster.start_as(&file, 0, "0", require);
    let _other = cluster.start(1, "0");
    host.program
        .end()
        .exits(2)
        .says("below the clock uncertainty");
}
