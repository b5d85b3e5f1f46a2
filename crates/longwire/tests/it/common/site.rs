//! Stations in separate namespaces, each on a port of a network in a namespace between them.
//! Without permission to create namespaces, tests that need stations print a message and are
//! skipped, except in CI.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_io::net::{NetNamespace, addr_add, link_names, link_up};
use longwire_testbed::support::{Folder, Stations, device, have, namespace, wire, within};
use serde_json::Value;

use super::program::{Ran, RunningProgram, change, eventually, ping, run_in, start_in};
use super::{list, read_json, write};

/// Returns a namespace with these veth pairs, both ends up.
pub fn wired(pairs: &[(&str, &str)]) -> Option<NetNamespace> {
    let namespace = namespace()?;
    for (a, b) in pairs {
        within(&namespace, || wire(device(a, None), device(b, None)));
    }
    Some(namespace)
}

/// Address of the outside network of [`host_with_outside`].
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Returns a namespace that acts as a host, and an outside network that only has a route to the
/// host's address, if namespaces can be created. The first network that an uplink would choose is in
/// use at the host.
pub fn host_with_outside() -> Option<[NetNamespace; 2]> {
    let (host, outside) = (namespace()?, namespace()?);
    within(&host, || {
        link_up("lo")?;
        wire(device("wan", None), device("eth0", Some(&outside)))?;
        addr_add("wan", IpAddr::from([198, 51, 100, 1]), 24)?;
        addr_add("lo", IpAddr::from([10, 77, 9, 9]), 32)
    });
    within(&outside, || addr_add("eth0", OUTSIDE.into(), 24));
    Some([host, outside])
}

/// Returns a path by which other processes can open a namespace of this process.
pub fn path_of(namespace: &NetNamespace) -> String {
    let descriptor = namespace.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{descriptor}", std::process::id())
}

/// Waits until all devices of attachments are gone. The kernel removes a namespace's devices some
/// time after its last process ends.
#[track_caller]
pub fn assert_no_attachment(namespace: &NetNamespace) {
    eventually("devices are left", || {
        let names = within(namespace, link_names);
        names.iter().all(|name| !name.starts_with("lw-"))
    });
}

/// Sends bytes over TCP to an address in another namespace while `during` runs, and checks every
/// byte; returns their number.
pub fn stream(
    from: &NetNamespace,
    (to, address): (&NetNamespace, IpAddr),
    during: impl FnOnce(),
) -> u64 {
    // The period is not a power of two, so that repeated or missing blocks show.
    const PERIOD: usize = 251;
    let pattern: Vec<u8> = (0..PERIOD * 257).map(|at| (at % PERIOD) as u8).collect();
    let address = SocketAddr::new(address, 7_000);
    let listener = within(to, || TcpListener::bind(address));
    let mut sender = within(from, || TcpStream::connect(address));
    let (mut receiver, _) = listener.accept().expect("a connection");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                sender.write_all(&pattern).expect("no reset");
                sent += pattern.len() as u64;
            }
            drop(sender);
            sent
        });
        let receiving = scope.spawn(|| {
            let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
            while let length @ 1.. = receiver.read(&mut buffer).expect("no reset") {
                let begin = (received % PERIOD as u64) as usize;
                let expected = pattern.iter().cycle().skip(begin);
                let right = buffer[..length].iter().zip(expected).all(|(a, b)| a == b);
                assert!(right, "bytes differ from those sent, near {received}");
                received += length as u64;
            }
            received
        });
        during();
        over.store(true, Ordering::Relaxed);
        let sent = sending.join().expect("it sent");
        assert_eq!(receiving.join().expect("it received"), sent);
        sent
    })
}

/// The namespaces of the network and its stations. Station N has the device `eth0`; the network's
/// port to it is `pN`.
pub struct Site {
    pub middle: NetNamespace,
    pub stations: Vec<NetNamespace>,
}

/// Returns a station's address: station 0 is 10.9.0.1.
pub fn address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, station as u8 + 1)
}

impl Site {
    /// Returns stations with addresses in one subnet, for tests with `ping`.
    pub fn new(count: usize) -> Option<Site> {
        if !have("ping") {
            return None;
        }
        let site = Site::without_addresses(count)?;
        for (number, station) in site.stations.iter().enumerate() {
            within(station, || {
                addr_add("eth0", IpAddr::V4(address(number)), 24)
            });
        }
        Some(site)
    }

    /// Returns stations whose devices are up, with only link-local IPv6 addresses.
    pub fn without_addresses(count: usize) -> Option<Site> {
        // Returns `None` without permission to create namespaces.
        namespace()?;
        let Stations { middle, hosts } = Stations::new(count).expect("stations");
        Some(Site {
            middle,
            stations: hosts,
        })
    }

    /// Starts `longwire run` with a line of arguments and waits until it runs.
    pub fn start(&self, arguments: &str) -> Network {
        let dir = Folder::new();
        let report = dir.file("report.json");
        let own = arguments.contains("--tolerance");
        let tolerance = if own { "" } else { "--tolerance 10s" };
        let line = format!("longwire run {arguments} --report {report} {tolerance}");
        // The first line of output describes a network or a single link.
        let word = if arguments.contains(".toml") {
            " between "
        } else {
            "link"
        };
        let running = start_in(&self.middle, line).ready(word);
        Network { running, dir }
    }

    /// Like [`Site::start`], with the text of a topology file in a folder.
    pub fn start_network(&self, dir: &Folder, topology: &str, arguments: &str) -> Network {
        let file = dir.file("network.toml");
        write(&file, topology);
        self.start(&format!("{file} {arguments}"))
    }

    /// Runs a program at a station to completion.
    pub fn at(&self, station: usize, line: impl AsRef<str>) -> Ran {
        run_in(&self.stations[station], line)
    }

    /// Like [`Site::at`], for a program that must succeed; returns its output.
    #[track_caller]
    pub fn said(&self, station: usize, line: impl AsRef<str>) -> String {
        change(&self.stations[station], line)
    }

    /// Pings four times; returns the minimum RTT in milliseconds, or `None` without a reply.
    pub fn round_trip(&self, from: usize, to: usize) -> Option<f64> {
        self.round_trip_to(from, &address(to).to_string())
    }

    /// Like [`Site::round_trip`], to any address.
    pub fn round_trip_to(&self, from: usize, address: &str) -> Option<f64> {
        ping(&self.stations[from], "-c 4 -i 0.2 -W 1", address)
    }

    /// Waits until one station gets replies from another, because devices come up late on a busy
    /// machine.
    #[track_caller]
    pub fn wait_for_answer(&self, from: usize, to: usize) {
        eventually("no answer", || self.round_trip(from, to).is_some());
    }

    /// Asserts that replies arrive, but none before `delays` ms. There is no upper bound, because a
    /// busy machine delays replies further; a log shows the links' decisions.
    #[track_caller]
    pub fn assert_not_early(&self, from: usize, address: &str, delays: f64) {
        assert_not_early(self.round_trip_to(from, address), delays);
    }

    /// Returns the hardware address of a station.
    pub fn mac(&self, station: usize) -> String {
        let text = self.said(station, "ip -br link show eth0");
        let mac = text.split_whitespace().nth(2);
        mac.unwrap_or_else(|| panic!("no address: {text}"))
            .to_owned()
    }
}

/// Asserts that a ping was answered, but not before `delays` ms.
#[track_caller]
pub fn assert_not_early(found: Option<f64>, delays: f64) {
    assert!(found > Some(delays - 0.1), "{found:?} ms, not {delays} ms");
}

/// A running network.
pub struct Network {
    pub running: RunningProgram,
    dir: Folder,
}

impl Network {
    /// Stops the network as Ctrl-C does; returns its report.
    #[track_caller]
    pub fn stop(self) -> Value {
        self.stop_with_text().0
    }

    /// Like [`Network::stop`], with the report as text too.
    #[track_caller]
    pub fn stop_with_text(self) -> (Value, String) {
        let ended = self.running.stop();
        (read_json(&self.dir.file("report.json")), ended.stdout)
    }
}

/// Asserts that the emulator itself lost nothing.
#[track_caller]
pub fn assert_nothing_lost(report: &Value) {
    for port in list(&report["ports"]) {
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
