//! `--uplink`, with a simulated host and outside network: no packet leaves this machine.

use std::time::{Duration, Instant};

use longwire_io::net::netlink::{Netlink, REQUEST};
use longwire_io::net::netlink_message::{Message, attribute, text_of};
use longwire_io::net::{NetNamespace, link_names, sysctl};
use longwire_testbed::support::within;
use nix::sys::signal::Signal;

use crate::common::program::{Ran, RunningProgram, eventually};
use crate::common::site::{OUTSIDE, host_with_outside};
use crate::common::user::User;
use crate::leftovers::records;

/// Returns whether a host forwards, its device names, the tables of its packet filter, and the
/// records of changed settings.
fn state(host: &NetNamespace) -> [Vec<String>; 4] {
    let found = host.run(|| {
        let keys = ["ipv4/ip_forward", "ipv4/conf/wan/forwarding"];
        let settings = keys.map(|key| sysctl::get(key).expect("a setting"));
        let devices = link_names().expect("devices");
        [settings.to_vec(), devices, tables(), records()]
    });
    found.expect("the namespace is entered")
}

fn tables() -> Vec<String> {
    const GET_TABLE: u16 = 10 << 8 | 1;
    const NAME: u16 = 1;
    let mut names = Vec::new();
    let mut netlink = Netlink::netfilter().expect("a socket");
    let all = Message::new(GET_TABLE, REQUEST, &[0; 4]);
    let listed = netlink.dump(all, |payload| {
        names.extend(attribute(&payload[4..], NAME).map(text_of));
    });
    listed.expect("tables");
    names
}

/// Returns root and a host, if `--uplink` is possible here.
fn root_at_a_host() -> Option<(User, [NetNamespace; 2])> {
    let root = User::with(["ping"]).into_iter().find(User::is_root)?;
    Some((root, host_with_outside()?))
}

#[test]
fn the_outside_is_reached() {
    let _alone = crate::alone();
    let Some((user, [host, _outside])) = root_at_a_host() else {
        return;
    };
    let before = state(&host);
    // A short interval, because ping also waits for one after its last request.
    let line = format!("ping -c2 -i0.5 -W2 {OUTSIDE} && echo $LONGWIRE_FAR");
    let mut command = user.exec_command(format!("--uplink -- sh -c '{line}'"));
    let ran = host.run(|| Ran::of(&mut command)).expect("it is entered");
    // The host uses the first network that Longwire would choose.
    ran.well().prints("2 received").prints("10.78.0.2");
    assert_eq!(state(&host), before);
    assert_eq!(records(), [""; 0]);
}

#[test]
fn nothing_is_left_of_an_uplink() {
    let _alone = crate::alone();
    let Some((user, [host, _outside])) = root_at_a_host() else {
        return;
    };
    let before = state(&host);
    let start = |name: &str| {
        let line = format!("-q --uplink -- sh -c 'touch {name}; exec sleep 60'");
        let running = RunningProgram::start(&host, &mut user.exec_piped(line));
        user.wait_for_file(name);
        running
    };
    let forwards = || within(&host, || sysctl::get("ipv4/conf/wan/forwarding"));
    let (first, second) = (start("first"), start("second"));
    assert_eq!(forwards(), "1");
    assert_eq!(state(&host)[2].len(), 2);
    // The first run to end leaves the other's uplink intact.
    let _ = first.end_by(Signal::SIGTERM);
    assert_eq!(forwards(), "1");
    second.kill();
    let killed = Instant::now();
    eventually("it is not restored", || state(&host) == before);
    assert!(killed.elapsed() < Duration::from_secs(5));
    assert_eq!(records(), [""; 0]);
}
