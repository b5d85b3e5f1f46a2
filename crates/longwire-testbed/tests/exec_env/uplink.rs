//! `--uplink`, with a simulated host and outside network: no packet leaves this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use longwire_io::net::netlink::{Netlink, REQUEST};
use longwire_io::net::netlink_message::{Message, attribute, text_of};
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_testbed::support::{device, wire, within};
use nix::sys::signal::Signal;

use crate::leftovers::records;
use crate::role::{UPLINK, exec, shell};
use crate::runs::{send, start_ready};
use crate::{Test, User};

pub const TESTS: &[Test] = &[
    ("uplink_reaches_the_outside", uplink_reaches_the_outside),
    ("uplink_leaves_nothing", uplink_leaves_nothing),
];

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const OUTSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2));

/// A namespace that acts as the host, and an outside network that only has a route to the host's
/// address.
fn host() -> (NetNamespace, NetNamespace) {
    let host = NetNamespace::new().expect("a namespace");
    let outside = NetNamespace::new().expect("a namespace");
    within(&host, || {
        net::link_up("lo")?;
        wire(device("wan", None), device("eth0", Some(&outside)))?;
        net::addr_add("wan", HOST, 24)?;
        // Longwire's first choice is already in use.
        net::addr_add("lo", IpAddr::from([10, 77, 9, 9]), 32)
    });
    within(&outside, || net::addr_add("eth0", OUTSIDE, 24));
    (host, outside)
}

/// Returns whether the host forwards, its device names and the tables of its packet filter.
fn state() -> (Vec<String>, Vec<String>, Vec<String>) {
    let keys = ["ipv4/ip_forward", "ipv4/conf/wan/forwarding"];
    let settings = keys.map(|key| sysctl::get(key).unwrap()).to_vec();
    (settings, net::link_names().unwrap(), tables())
}

fn tables() -> Vec<String> {
    const GET_TABLE: u16 = 10 << 8 | 1;
    const NAME: u16 = 1;
    let mut names = Vec::new();
    let mut netlink = Netlink::netfilter().unwrap();
    let all = Message::new(GET_TABLE, REQUEST, &[0; 4]);
    netlink
        .dump(all, |payload| {
            names.extend(attribute(&payload[4..], NAME).map(text_of))
        })
        .unwrap();
    names
}

fn uplink_reaches_the_outside(user: User) {
    if user == User::Ordinary {
        let output = exec(user, &["true"]).env(UPLINK, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("--uplink: only root"), "{text}");
        return;
    }
    let (host, _outside) = host();
    host.run(|| {
        let before = state();
        // A short interval, because ping also waits for one after its last request.
        let line = format!("ping -c2 -i0.5 -W2 {OUTSIDE} && echo $LONGWIRE_FAR");
        let output = shell(user, &line).env(UPLINK, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(text.contains("2 received"), "{text}");
        // Longwire chose another network.
        assert!(text.contains("10.78.0.2"), "{text}");
        assert_eq!(state(), before);
        assert_eq!(records(), [""; 0]);
    })
    .unwrap();
}

fn uplink_leaves_nothing(user: User) {
    if user == User::Ordinary {
        return;
    }
    let (host, _outside) = host();
    host.run(|| {
        let before = state();
        let line = "echo ready; sleep 60";
        let (mut first, _a) = start_ready(shell(user, line).env(UPLINK, "1"));
        let (mut second, _b) = start_ready(shell(user, line).env(UPLINK, "1"));
        assert_eq!(sysctl::get("ipv4/conf/wan/forwarding").unwrap(), "1");
        assert_eq!(tables().len(), 2);
        // The first run to end leaves the other's uplink intact.
        send(&first, Signal::SIGTERM);
        first.wait().unwrap();
        assert_eq!(sysctl::get("ipv4/conf/wan/forwarding").unwrap(), "1");
        send(&second, Signal::SIGKILL);
        second.wait().unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while state() != before || !records().is_empty() {
            assert!(Instant::now() < end, "{:?} was {before:?}", state());
            std::thread::sleep(Duration::from_millis(20));
        }
    })
    .unwrap();
}
