//! Links at interfaces in use.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, addr_add, link_delete, link_names, link_stats};
use longwire_testbed::support::skip;
use longwire_testbed::{Plan, Side, direct_networks};
use nix::sys::signal::Signal;

use crate::common::process::{RunningProgram, TIMEOUT, wait_for_word};
use crate::common::site::{run_in, well};
use crate::common::{Ran, longwire};

mod accounts;
mod claims;
mod closed;
mod containers;
mod frames;
mod gone;
mod interleaved;
mod killed;
mod node;
mod others;
mod several;
mod streams;

const DEVICE: &str = "eth0";
const ATTACHED: &str = "attached to";

/// Two networks joined by a veth pair.
struct Joined {
    near: NetNamespace,
    far: NetNamespace,
    far_address: IpAddr,
}

/// Returns false for users who may not attach programs, so that the test is skipped.
fn may_attach() -> bool {
    nix::unistd::geteuid().is_root() || skip::<()>("attaching needs root").is_some()
}

impl Joined {
    /// Returns `None` for users who may not attach programs.
    fn new() -> Option<Joined> {
        if !may_attach() {
            return None;
        }
        let [near, far] = direct_networks().expect("root makes networks");
        let far_address = IpAddr::V4(Plan::USUAL.v4_of(Side::Far));
        Some(Joined {
            near,
            far,
            far_address,
        })
    }

    /// Attaches a link to near's device.
    fn attach(&self, name: &str, options: &[&str]) -> Attached {
        started(self.command(name, options), name)
    }

    fn command(&self, name: &str, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let namespace = path_of(&self.near);
        command.args(["attach", "--netns", &namespace, "--interface", DEVICE]);
        command.args(["--name", name, "--json"]).args(options);
        command.stdin(Stdio::null());
        command
    }

    /// Runs an attachment that is refused; returns its result.
    fn refused(&self, name: &str, options: &[&str]) -> Ran {
        let output = self.command(name, options).output();
        crate::common::ran(output.expect("it starts"))
    }

    /// Returns the shortest of some round trips to an address, in milliseconds; `None`
    /// without a reply.
    fn round_trip_to(&self, address: IpAddr) -> Option<f64> {
        let address = address.to_string();
        let command = ["ping", "-c", "8", "-i", "0.05", "-W", "1", "-q", &address];
        let text = run_in(&self.near, &command).stdout;
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }

    fn round_trip(&self) -> Option<f64> {
        self.round_trip_to(self.far_address)
    }

    /// Asserts the shortest round trip, in milliseconds: a busy machine delays some,
    /// but rarely all.
    #[track_caller]
    fn assert_round_trip(&self, expected: f64) {
        let mut found = f64::INFINITY;
        for _ in 0..10 {
            found = found.min(self.round_trip().expect("answers"));
            assert!(found > expected - 0.1, "{found} ms, not {expected} ms");
            if found < expected + 5.0 {
                return;
            }
        }
        panic!("{found} ms, not {expected} ms");
    }

    /// Asserts that no device of an attachment remains. The kernel removes a
    /// namespace's devices some time after its last process.
    #[track_caller]
    fn assert_clean(&self) {
        let end = Instant::now() + TIMEOUT;
        loop {
            let names = self.near.run(link_names).expect("entered").expect("names");
            if names.iter().all(|name| !name.starts_with("lw-")) {
                return;
            }
            assert!(Instant::now() < end, "devices are left: {names:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the output of `ip` on near's device: addresses, routes and qdiscs.
    fn settings(&self) -> String {
        let show = |words: &[&str]| well(words, run_in(&self.near, words));
        [
            show(&["ip", "-d", "address", "show", "dev", DEVICE]),
            show(&["ip", "route"]),
            show(&["tc", "qdisc", "show", "dev", DEVICE]),
        ]
        .join("\n")
    }
}

/// Returns a path by which other processes find a namespace of this one.
fn path_of(namespace: &NetNamespace) -> String {
    let descriptor = namespace.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{descriptor}", std::process::id())
}

/// Starts a `longwire attach`, and waits until the link is attached.
fn started(mut command: Command, name: &str) -> Attached {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = RunningProgram::of(command.spawn().expect("it starts"));
    wait_for_word(&mut program, ATTACHED);
    Attached {
        program,
        name: name.to_owned(),
    }
}

/// A running `longwire attach`.
struct Attached {
    program: RunningProgram,
    name: String,
}

impl Attached {
    /// Detaches the link; returns the run's report.
    fn detach(self) -> serde_json::Value {
        let ran = longwire(&["attach", "detach", &self.name]);
        assert_eq!(ran.code, 0, "{ran:?}");
        self.program.end().json()
    }

    fn set(&self, options: &[&str]) {
        let ran = longwire(&[&["attach", "set", &self.name], options].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    fn kill(self) {
        self.program.signal(Signal::SIGKILL);
        let _ = self.program.end();
    }
}

/// Returns a name unique to this test and process: other test runs may share the
/// machine.
fn name_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

#[test]
fn a_link_is_attached_changed_and_detached() {
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    let before = joined.settings();
    let name = name_of("changed");
    let attached = joined.attach(&name, &["--delay", "15ms"]);
    joined.assert_round_trip(30.0);
    assert_eq!(joined.settings(), before, "the interface is as before");

    let listed = longwire(&["attach", "list", "--json"]).json();
    let rows = listed.as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == name.as_str());
    let row = row.expect("it is listed");
    assert_eq!(row["interfaces"][0], DEVICE, "{row}");

    attached.set(&["delay=40ms", "--direction", "up"]);
    joined.assert_round_trip(55.0);
    attached.set(&["up-delay=30ms", "down-loss=0%"]);
    joined.assert_round_trip(45.0);
    attached.set(&["up-delay=40ms", "down-loss="]);
    let listed = longwire(&["attach", "list"]).stdout;
    let row = listed.lines().find(|line| line.contains(&name));
    let options = row.is_some_and(|row| row.ends_with("up delay=40ms; down delay=15ms"));
    assert!(options, "{listed}");
    let report = attached.detach();
    // A busy machine delays frames, but none is lost or invented.
    let ports = report["ports"].as_array().expect("ports");
    let sum = |counter: &str| {
        ports
            .iter()
            .filter_map(|port| port[counter].as_u64())
            .sum::<u64>()
    };
    assert!(sum("packets_in") >= 32, "{report}");
    assert_eq!(sum("packets_in"), sum("packets_out"), "{report}");
    assert_eq!(report["in_flight"], 0, "what is on the link arrives");
    joined.assert_round_trip(0.0);
    assert_eq!(joined.settings(), before);
    joined.assert_clean();
    let listed = longwire(&["attach", "list"]).stdout;
    assert!(!listed.contains(&name), "{listed}");
}

#[test]
fn traffic_passes_when_the_program_is_killed() {
    let Some(joined) = Joined::new() else { return };
    let name = name_of("killed");
    let attached = joined.attach(&name, &["--loss", "100%"]);
    assert_eq!(joined.round_trip(), None, "everything is lost");
    attached.kill();
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    // The killed run's entry does not interfere.
    let attached = joined.attach(&name, &["--delay", "5ms"]);
    joined.assert_round_trip(10.0);
    let _ = attached.detach();
}

#[test]
fn an_interface_has_one_link() {
    let Some(joined) = Joined::new() else { return };
    let (first, second) = (name_of("first"), name_of("second"));
    let attached = joined.attach(&first, &[]);
    let refused = joined.refused(&first, &[]);
    assert!(refused.stderr.contains("already"), "{refused:?}");
    let refused = joined.refused(&second, &[]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("attach list"), "{refused:?}");
    joined.assert_round_trip(0.0);
    let _ = attached.detach();
    joined.assert_clean();
}

#[test]
fn packets_to_other_prefixes_pass_by() {
    let Some(joined) = Joined::new() else { return };
    let other: IpAddr = "10.199.7.1".parse().expect("an address");
    let six: IpAddr = "fd00:1:2:3::7".parse().expect("an address");
    let add = || {
        addr_add(DEVICE, other, 24)?;
        addr_add(DEVICE, six, 64)
    };
    joined.far.run(add).expect("entered").expect("addresses");
    let add = || {
        addr_add(DEVICE, "10.199.7.2".parse().expect("an address"), 24)?;
        addr_add(DEVICE, "fd00:1:2:3::8".parse().expect("an address"), 64)
    };
    joined.near.run(add).expect("entered").expect("addresses");
    let prefixes = "10.199.7.1,fd00:1:2::/48,192.0.2.0/24";
    let attached = joined.attach(&name_of("prefix"), &["--to", prefixes, "--delay", "20ms"]);
    let to = |address| joined.round_trip_to(address).expect("answers");
    for (address, delay) in [(joined.far_address, 0.0), (other, 40.0), (six, 40.0)] {
        let found = to(address);
        assert!(
            found > delay - 0.1 && found < delay + 15.0,
            "{address}: {found} ms, not {delay} ms"
        );
    }
    let report = attached.detach();
    let ports = report["ports"].as_array().expect("ports");
    // Eight each way, none to near's first address, and no ARP.
    assert_eq!(ports[0]["packets_in"], 16, "{report}");
}

#[test]
fn the_interface_and_its_qdisc_count_each_frame_once() {
    let Some(joined) = Joined::new() else { return };
    let tc = |words: &[&str]| {
        let words = [&["tc"], words].concat();
        well(&words, run_in(&joined.near, &words))
    };
    tc(&["qdisc", "add", "dev", DEVICE, "root", "pfifo"]);
    joined.assert_round_trip(0.0);
    let queued = || -> u64 {
        let text = tc(&["-s", "qdisc", "show", "dev", DEVICE, "root"]);
        let after = text.split_once("bytes ").expect("counters").1;
        let packets = after.split_once(" pkt").expect("packets").0;
        packets.parse().expect("a number")
    };
    let counted = || {
        let stats = joined.near.run(|| link_stats(DEVICE)).expect("entered");
        let stats = stats.expect("statistics");
        [stats.rx_packets, stats.tx_packets, queued()]
    };
    let before = counted();
    let attached = joined.attach(&name_of("once"), &["--delay", "2ms"]);
    joined.round_trip().expect("answers");
    let report = attached.detach();
    let carried = |port: usize| {
        let packets = &report["ports"][port]["packets_in"];
        packets.as_u64().expect("a count")
    };
    let (up, down) = (carried(0), carried(1));
    assert!(up >= 8 && down >= 8, "{report}");
    let after = counted();
    let more = [
        after[0] - before[0],
        after[1] - before[1],
        after[2] - before[2],
    ];
    assert_eq!(more, [down, up, up], "received, sent, queued");
}

#[test]
fn a_run_ends_with_its_interface() {
    let Some(joined) = Joined::new() else { return };
    let attached = joined.attach(&name_of("gone"), &["--delay", "1ms"]);
    joined.assert_round_trip(2.0);
    joined
        .near
        .run(|| link_delete(DEVICE))
        .expect("entered")
        .expect("deleted");
    let ran = attached.program.end();
    assert!(ran.stdout.contains("is gone"), "{ran:?}");
    joined.assert_clean();
}

#[test]
fn wrong_places_are_refused_with_the_existing_ones() {
    let Some(joined) = Joined::new() else { return };
    let netns = path_of(&joined.near);
    let cases: [(&[&str], &str); 10] = [
        (&["--netns", &netns, "--interface", "wlan9"], DEVICE),
        (&["--netns", &netns], "--interface"),
        (&["--netns", "no-such-name"], "no-such-name"),
        (&["--pid", "999999999"], "999999999"),
        // Kernel threads are in the machine's network.
        (&["--pid", "2"], "--host-network"),
        (
            &["--netns", &netns, "--interface", "lo"],
            "cannot attach to lo",
        ),
        (&["web", "--delay", "1ms"], "--container web"),
        (
            &["--netns", &netns, "--interface", "sixteen-letters-"],
            "no device",
        ),
        (
            &[
                "--netns",
                &netns,
                "--interface",
                DEVICE,
                "--filter",
                "udp prot 5",
            ],
            "prot",
        ),
        (
            &[
                "--netns",
                &netns,
                "--interface",
                DEVICE,
                "--to",
                "10.0.0.0/33",
            ],
            "above 32 for IPv4",
        ),
    ];
    for (words, expected) in cases {
        let ran = longwire(&[&["attach"], words].concat());
        assert_ne!(ran.code, 0, "{words:?}");
        assert!(ran.stderr.contains(expected), "{words:?}: {ran:?}");
    }
    joined.assert_clean();
}

#[test]
fn of_links_attached_at_once_one_is() {
    let Some(joined) = Joined::new() else { return };
    let names = ["a", "b", "c", "d"].map(|name| name_of(&format!("race-{name}")));
    let started = names.clone().map(|name| {
        let mut command = joined.command(&name, &["--time", "4s", "--delay", "5ms"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        RunningProgram::of(command.spawn().expect("it starts"))
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
