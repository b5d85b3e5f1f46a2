//! Links at interfaces in use.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};

use longwire_client::{Address, Client};
use longwire_io::net::{NetNamespace, addr_add, link_stats, link_up, veth};
use longwire_testbed::support::{Folder, have, skip, within};
use longwire_testbed::{Plan, Side, direct_networks};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::node::{Taken, assert_crossed, taken};
use crate::common::program::{Ran, RunningProgram, change, command, longwire, ping, piped, start};
use crate::common::recording::assert_both_delay;
use crate::common::site::{assert_no_attachment, path_of};
use crate::common::{assert_refused, count, list, named};

mod accounts;
mod closed;
mod containers;
mod frames;
mod gone;
mod interleaved;
mod killed;
mod node;
mod others;
mod several;

const DEVICE: &str = "eth0";

/// Returns whether the user may attach programs; if not, the caller must skip its test.
pub(super) fn may_attach() -> bool {
    nix::unistd::geteuid().is_root() || skip::<()>("attaching needs root").is_some()
}

/// Returns a name unique to this test and process: other test runs may share the machine.
fn name_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// Names of the links attached by a test.
#[derive(Clone, Default)]
struct Links(Arc<Mutex<Vec<String>>>);

impl Links {
    /// Runs `longwire attach` and waits until its link is attached.
    fn attach(&self, name: &str, command: &mut Command) -> Attached {
        self.0.lock().expect("no panic").push(name.to_owned());
        Attached {
            program: RunningProgram::spawn(command).ready("attached to"),
            name: name.to_owned(),
        }
    }

    /// Asserts that a ping crosses one of the links; see [`assert_crossed`].
    #[track_caller]
    fn assert_crossed(&self, from: &NetNamespace, to: impl ToString, delays: f64) {
        let names = self.0.lock().expect("no panic").clone();
        let counts = || -> Taken {
            let counts = names.iter().filter_map(|name| {
                let socket = format!("/run/longwire/attach-{name}.sock");
                let client = Client::new(Address::Unix(socket.into()), None);
                // Skips detached links, which do not answer.
                Some((name.clone(), taken(client.ok()?, "/v1")?))
            });
            counts.collect()
        };
        assert_crossed(counts, || pings(from, to), delays);
    }
}

/// Sends as many pings as [`assert_crossed`] requires.
fn pings(from: &NetNamespace, to: impl ToString) -> Option<f64> {
    ping(from, "-c 8 -i 0.05 -W 1", to.to_string())
}

/// A running `longwire attach`.
struct Attached {
    program: RunningProgram,
    name: String,
}

fn detach(name: &str) {
    longwire(format!("attach detach {name}")).well();
}

impl Attached {
    /// Detaches the link; returns the run's report.
    #[track_caller]
    fn detach(self) -> Value {
        detach(&self.name);
        self.program.end().json()
    }

    #[track_caller]
    fn set(&self, options: &str) {
        longwire(format!("attach set {} {options}", self.name)).well();
    }

    fn kill(self) {
        self.program.kill();
    }

    /// Asserts that the run ends because its interface is gone.
    #[track_caller]
    fn ends_without_interface(self) {
        self.program.end().prints("is gone");
    }
}

/// Two networks joined by a veth pair.
struct Joined {
    near: NetNamespace,
    far: NetNamespace,
    far_address: IpAddr,
    links: Links,
}

impl Joined {
    /// Creates the networks; `None` if the user may not attach programs, or `ping` is not
    /// installed.
    fn new() -> Option<Joined> {
        if !may_attach() || !have("ping") {
            return None;
        }
        let [near, far] = direct_networks().expect("root makes networks");
        Some(Joined::of(near, far, Plan::USUAL.v4_of(Side::Far).into()))
    }

    fn of(near: NetNamespace, far: NetNamespace, far_address: IpAddr) -> Joined {
        Joined {
            near,
            far,
            far_address,
            links: Links::default(),
        }
    }

    fn add_addresses(&self, near: &str, far: &[&str]) {
        let add = |namespace, address: &str| {
            let address: IpAddr = address.parse().expect("an address");
            let length = if address.is_ipv4() { 24 } else { 64 };
            within(namespace, || addr_add(DEVICE, address, length));
        };
        add(&self.near, near);
        far.iter().for_each(|address| add(&self.far, address));
    }

    /// Creates another pair of devices between both networks.
    fn add_pair(&self, name: &str) {
        let end = |namespace| veth::End {
            name,
            namespace: Some(namespace),
            ..veth::End::default()
        };
        let (a, b) = (end(&self.near), end(&self.far));
        veth::create(&veth::VethConfig { a, b }).expect("a pair");
    }

    /// Attaches a link to near's device.
    fn attach(&self, name: &str, options: &str) -> Attached {
        self.attach_to(DEVICE, name, options)
    }

    fn attach_to(&self, device: &str, name: &str, options: &str) -> Attached {
        let mut command = piped(self.line(device, name, options));
        self.links.attach(name, &mut command)
    }

    fn line(&self, device: &str, name: &str, options: &str) -> String {
        let place = path_of(&self.near);
        format!(
            "longwire attach --netns {place} --interface {device} --name {name} --json {options}"
        )
    }

    /// Runs an attachment that must be refused.
    #[track_caller]
    fn refuses(&self, name: &str, options: &str, said: &str) -> Ran {
        Ran::of(&mut command(self.line(DEVICE, name, options))).says(said)
    }

    /// Pings an address; returns the minimum RTT in milliseconds.
    fn round_trip_to(&self, address: IpAddr) -> Option<f64> {
        pings(&self.near, address)
    }

    fn round_trip(&self) -> Option<f64> {
        self.round_trip_to(self.far_address)
    }

    /// Asserts that pings cross one link with these delays in milliseconds, or no link if 0.
    #[track_caller]
    fn assert_round_trip(&self, delays: f64) {
        self.assert_round_trip_to(self.far_address, delays);
    }

    #[track_caller]
    fn assert_round_trip_to(&self, address: IpAddr, delays: f64) {
        self.links.assert_crossed(&self.near, address, delays);
    }

    #[track_caller]
    fn assert_clean(&self) {
        assert_no_attachment(&self.near);
    }

    /// Returns a datagram socket of near on any port, and one of far on this port.
    fn sockets(&self, port: u16) -> (UdpSocket, UdpSocket) {
        let bind = |namespace, port| {
            within(namespace, || {
                UdpSocket::bind(SocketAddr::from(([0; 4], port)))
            })
        };
        (bind(&self.near, 0), bind(&self.far, port))
    }

    /// Returns the output of `ip` for near's device: addresses, routes and qdiscs.
    fn settings(&self) -> String {
        let shows = [
            "ip -d address show dev eth0",
            "ip route",
            "tc qdisc show dev eth0",
        ];
        shows.map(|line| change(&self.near, line)).join("\n")
    }
}

/// Sets a device's address and brings it up.
fn set_up(namespace: &NetNamespace, device: &str, address: IpAddr) {
    within(namespace, || {
        addr_add(device, address, 24)?;
        link_up(device)
    });
}

/// Returns the input frame counts of both links in a report.
fn packets_in(report: &Value) -> [u64; 2] {
    [0, 1].map(|link: usize| count(&report["links"][link]["packets_in"]))
}

#[test]
fn a_link_is_attached_changed_and_detached() {
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    let before = joined.settings();
    let name = name_of("changed");
    let attached = joined.attach(&name, "--delay 15ms");
    joined.assert_round_trip(30.0);
    assert_eq!(joined.settings(), before, "the interface is as before");
    let listed = longwire("attach list --json").json();
    assert_eq!(named(&listed, &name)["interfaces"][0], DEVICE, "{listed}");

    attached.set("delay=40ms --direction up");
    joined.assert_round_trip(55.0);
    attached.set("up-delay=30ms down-loss=0%");
    joined.assert_round_trip(45.0);
    attached.set("up-delay=40ms down-loss=");
    let listed = longwire("attach list").stdout;
    let row = listed.lines().find(|line| line.contains(&name));
    let options = row.is_some_and(|row| row.ends_with("up delay=40ms; down delay=15ms"));
    assert!(options, "{listed}");
    joined.refuses(&name, "", "already");
    let report = attached.detach();
    // A busy machine delays frames, but does not lose or duplicate any.
    let ports = list(&report["ports"]).iter();
    let sum = |counter| ports.clone().map(|port| count(&port[counter])).sum::<u64>();
    assert!(sum("packets_in") >= 32, "{report}");
    assert_eq!(sum("packets_in"), sum("packets_out"), "{report}");
    assert_eq!(report["in_flight"], 0, "frames on the link arrive");
    joined.assert_round_trip(0.0);
    assert_eq!(joined.settings(), before);
    joined.assert_clean();
    let listed = longwire("attach list").stdout;
    assert!(!listed.contains(&name), "{listed}");
}

/// Checks the link's log, because it does not depend on the machine's load.
#[test]
fn releases_of_an_attached_link_are_those_of_its_models() {
    let Some(joined) = Joined::new() else { return };
    let dir = Folder::new();
    let log = dir.file("log.csv");
    let options = format!("--filter icmp --delay 20ms --log {log}");
    let attached = joined.attach(&name_of("logged"), &options);
    joined.assert_round_trip(40.0);
    attached.detach();
    assert_both_delay(&log, 8, 20);
}

#[test]
fn traffic_passes_after_the_program_is_killed_or_aborts() {
    let Some(joined) = Joined::new() else { return };
    let name = name_of("killed");
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let attached = joined.attach(&name, "--loss 100%");
        assert_eq!(joined.round_trip(), None, "everything is lost");
        let _ = attached.program.end_by(signal);
        joined.assert_round_trip(0.0);
        joined.assert_clean();
    }
    // The entry of the killed run must not prevent a new run with the same name.
    let attached = joined.attach(&name, "--delay 5ms");
    joined.assert_round_trip(10.0);
    attached.detach();
}

#[test]
fn packets_to_other_prefixes_pass_by() {
    let Some(joined) = Joined::new() else { return };
    joined.add_addresses("10.199.7.2", &["10.199.7.1", "fd00:1:2:3::7"]);
    joined.add_addresses("fd00:1:2:3::8", &[]);
    let options = "--to 10.199.7.1,fd00:1:2::/48,192.0.2.0/24 --delay 20ms";
    let attached = joined.attach(&name_of("prefix"), options);
    joined.assert_round_trip(0.0);
    for address in ["10.199.7.1", "fd00:1:2:3::7"] {
        joined.assert_round_trip_to(address.parse().expect("an address"), 40.0);
    }
    let report = attached.detach();
    // Eight frames in each direction: none to near's first address, and no ARP.
    assert_eq!(report["ports"][0]["packets_in"], 16, "{report}");
}

#[test]
fn the_interface_and_its_qdisc_count_each_frame_once() {
    let Some(joined) = Joined::new() else { return };
    change(&joined.near, "tc qdisc add dev eth0 root pfifo");
    joined.assert_round_trip(0.0);
    let counted = || {
        let text = change(&joined.near, "tc -s qdisc show dev eth0 root");
        let after = text.split_once("bytes ").expect("counters").1;
        let queued = after.split_once(" pkt").expect("packets").0;
        let stats = within(&joined.near, || link_stats(DEVICE));
        let queued = queued.parse::<u64>().expect("a number");
        [stats.rx_packets, stats.tx_packets, queued]
    };
    let before = counted();
    let attached = joined.attach(&name_of("once"), "--delay 2ms");
    joined.round_trip().expect("answers");
    let report = attached.detach();
    let [up, down] = [0, 1].map(|port: usize| count(&report["ports"][port]["packets_in"]));
    assert!(up >= 8 && down >= 8, "{report}");
    let after = counted();
    let more = [0, 1, 2].map(|at| after[at] - before[at]);
    assert_eq!(more, [down, up, up], "received, sent, queued");
}

#[test]
fn wrong_places_are_refused_with_the_existing_ones() {
    let Some(joined) = Joined::new() else { return };
    let place = format!("--netns {}", path_of(&joined.near));
    // Kernel threads, such as process 2, are in the machine's network.
    assert_refused(&format!(
        "
        attach {place} --interface wlan9 | 1 | {DEVICE}
        attach {place} | 1 | --interface
        attach --netns no-such-name | 1 | no-such-name
        attach --pid 999999999 | 1 | 999999999
        attach --pid 2 | 2 | --host-network
        attach {place} --interface lo | 1 | cannot attach to lo
        attach web --delay 1ms | 2 | --container web
        attach {place} --interface sixteen-letters- | 1 | no device
        attach {place} --interface {DEVICE} --filter 'udp prot 5' | 2 | prot
        attach {place} --interface {DEVICE} --to 10.0.0.0/33 | 2 | above 32 for IPv4
        "
    ));
    joined.assert_clean();
}

#[test]
fn of_links_attached_at_once_one_is() {
    let Some(joined) = Joined::new() else { return };
    let started = ["a", "b", "c", "d"].map(|name| {
        let name = name_of(&format!("race-{name}"));
        start(joined.line(DEVICE, &name, "--time 4s --delay 5ms"))
    });
    let ran = started.map(RunningProgram::end);
    let attached = ran.iter().filter(|ran| ran.code == 0);
    assert_eq!(attached.count(), 1, "{ran:?}");
    for refused in ran.iter().filter(|ran| ran.code != 0) {
        let words = ["attach list", "changed while"];
        let is_told = words.iter().any(|word| refused.stderr.contains(word));
        assert!(is_told, "{refused:?}");
    }
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}
