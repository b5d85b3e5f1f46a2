//! Stations in separate namespaces, each on a port of a network in a namespace between
//! them.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::time::Instant;

use longwire_io::net::{NetNamespace, addr_add};
use longwire_testbed::support::{Folder, Stations, namespace};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::process::{RunningProgram, TIMEOUT, wait_for_word};
use super::{Ran, ran};

/// The namespaces of the network and of the stations. Station N has the device `eth0`,
/// and the network's port to it is `pN`.
pub struct Site {
    pub middle: NetNamespace,
    pub stations: Vec<NetNamespace>,
}

/// Returns a station's address: station 0 is 10.9.0.1.
pub fn address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, station as u8 + 1)
}

impl Site {
    /// Returns stations with addresses in one subnet.
    pub fn new(count: usize) -> Option<Site> {
        let site = Site::without_addresses(count)?;
        for (number, station) in site.stations.iter().enumerate() {
            let given = station.run(|| addr_add("eth0", IpAddr::V4(address(number)), 24));
            given.expect("it is entered").expect("an address");
        }
        Some(site)
    }

    /// Returns stations whose devices are up, with link-local IPv6 addresses
    /// only.
    pub fn without_addresses(count: usize) -> Option<Site> {
        // Fails without permission to create namespaces.
        namespace()?;
        let Stations { middle, hosts } = Stations::new(count).expect("stations");
        Some(Site {
            middle,
            stations: hosts,
        })
    }

    /// Starts a network and waits until it runs; it runs until stopped.
    pub fn start(&self, file: &str) -> Network {
        self.start_with(&[file])
    }

    /// As [`Site::start`], with arguments of `run`, which may include `--tolerance`.
    pub fn start_with(&self, arguments: &[&str]) -> Network {
        let dir = Folder::new();
        let report = dir.file("report.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.arg("run").args(arguments);
        command.args(["--report", &report]);
        if !arguments.contains(&"--tolerance") {
            command.args(["--tolerance", "10s"]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = RunningProgram::start(&self.middle, &mut command);
        // The first line describes a network, or a single link.
        let network = arguments.iter().any(|word| word.ends_with(".toml"));
        wait_for_word(&mut running, if network { " between " } else { "link" });
        Network { running, dir }
    }

    /// Runs a program at a station to its end.
    pub fn at(&self, station: usize, program: &[&str]) -> Ran {
        run_in(&self.stations[station], program)
    }

    /// Like [`Site::at`], for a program that must succeed; returns its output.
    pub fn said(&self, station: usize, program: &[&str]) -> String {
        well(program, self.at(station, program))
    }

    /// Pings four times; returns the shortest round trip in milliseconds, or `None`
    /// without a reply.
    pub fn round_trip(&self, from: usize, to: usize) -> Option<f64> {
        self.round_trip_to(from, &address(to).to_string())
    }

    /// As [`Site::round_trip`], to any address.
    pub fn round_trip_to(&self, from: usize, address: &str) -> Option<f64> {
        let command = ["ping", "-c", "4", "-i", "0.2", "-W", "1", "-q", address];
        let text = self.at(from, &command).stdout;
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }

    /// Waits until one station gets replies from another: devices come up late on a
    /// busy machine.
    pub fn wait_for_answer(&self, from: usize, to: usize) {
        let began = Instant::now();
        while self.round_trip(from, to).is_none() {
            let passed = began.elapsed();
            assert!(
                passed < TIMEOUT,
                "no answer of {} in {passed:?}",
                address(to)
            );
        }
    }

    /// Asserts that replies arrive, and none before `delays` ms. A busy machine delays
    /// them further; a log shows what the links decided.
    #[track_caller]
    pub fn assert_not_early(&self, from: usize, address: &str, delays: f64) {
        let found = self.round_trip_to(from, address);
        assert!(
            found > Some(delays - 0.1),
            "{address}: {found:?} ms, not {delays} ms"
        );
    }

    /// Returns the hardware address of a station.
    pub fn mac(&self, station: usize) -> String {
        let text = self.said(station, &["ip", "-br", "link", "show", "eth0"]);
        let mac = text.split_whitespace().nth(2);
        mac.unwrap_or_else(|| panic!("no address: {text}"))
            .to_owned()
    }
}

/// Runs a program in a namespace to its end.
pub fn run_in(namespace: &NetNamespace, program: &[&str]) -> Ran {
    let output = namespace.run(|| Command::new(program[0]).args(&program[1..]).output());
    let output = output.expect("it is entered");
    ran(output.unwrap_or_else(|error| panic!("{program:?} does not start: {error}")))
}

/// Returns the output of a program that must have succeeded.
pub fn well(program: &[&str], ended: Ran) -> String {
    assert_eq!(ended.code, 0, "{program:?}: {ended:?}");
    ended.stdout
}

/// A running network.
pub struct Network {
    running: RunningProgram,
    dir: Folder,
}

impl Network {
    /// Ends the network, as Ctrl-C does; returns its report.
    pub fn stop(self) -> Value {
        self.stop_with_words().0
    }

    /// Waits for the run to end and returns its result.
    pub fn end(self) -> Ran {
        self.running.end()
    }

    /// As [`Network::stop`], with the report as text.
    pub fn stop_with_words(self) -> (Value, String) {
        self.running.signal(Signal::SIGINT);
        let ended = self.running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        let report = std::fs::read_to_string(self.dir.file("report.json"));
        let report = report.expect("a report");
        let report = serde_json::from_str(&report);
        (report.expect("JSON"), ended.stdout)
    }
}

/// Returns a link's row in the report.
pub fn link<'a>(report: &'a Value, name: &str) -> &'a Value {
    let links = report["links"].as_array().expect("links");
    let found = links.iter().find(|link| link["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {links:?}"))
}

/// Asserts that the emulator itself lost nothing.
pub fn assert_nothing_lost(report: &Value) {
    for port in report["ports"].as_array().expect("ports") {
        for kind in [
            "memory",
            "ring_full",
            "send_failed",
            "no_carrier",
            "refused",
        ] {
            assert_eq!(port["artifacts"][kind], 0, "{port}");
        }
    }
}
