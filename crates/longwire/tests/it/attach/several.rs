//! Several links at one interface, each for part of the traffic.

use std::net::IpAddr;

use longwire_io::bpf::tcx::{Hook, programs};
use longwire_io::net::link::link_index;
use longwire_testbed::support::{Folder, within};
use serde_json::{Value, json};

use super::{DEVICE, Joined, name_of};
use crate::common::node::{RunningNode, attachment};
use crate::common::program::{change, longwire, memory_of, run_in};
use crate::common::site::path_of;
use crate::common::{count, list, named};

/// Additional addresses of far.
const MORE: [&str; 2] = ["10.98.7.2", "10.98.7.3"];

/// Returns networks in which far has three addresses.
pub(super) fn joined() -> Option<(Joined, [IpAddr; 3])> {
    let joined = Joined::new()?;
    joined.add_addresses("10.98.7.1", &MORE);
    let [second, third] = MORE.map(|address| address.parse().expect("an address"));
    let addresses = [joined.far_address, second, third];
    Some((joined, addresses))
}

/// Asserts the RTT to each address, in milliseconds.
#[track_caller]
fn assert_round_trips(joined: &Joined, addresses: [IpAddr; 3], delays: [f64; 3]) {
    for (address, delays) in addresses.into_iter().zip(delays) {
        joined.assert_round_trip_to(address, delays);
    }
}

/// Like [`assert_round_trips`], over links of a node.
#[track_caller]
fn assert_crossed(node: &RunningNode, joined: &Joined, addresses: [IpAddr; 3], delays: [f64; 3]) {
    for (address, delays) in addresses.into_iter().zip(delays) {
        node.assert_crossed(|| joined.round_trip_to(address), delays);
    }
}

pub(super) fn prefix(address: IpAddr) -> String {
    format!("{address}/32")
}

/// Returns an attachment for part of near's traffic.
fn part(joined: &Joined, delay: &str, to: &[&String]) -> Value {
    let mut body = attachment(&path_of(&joined.near), json!({ "delay": delay }));
    body["to"] = json!(to);
    body
}

/// Returns the input and output frame counts of each link in a report.
fn counts(report: &Value) -> Vec<[u64; 2]> {
    let links = list(&report["links"]).iter();
    let counts = links.map(|link| ["packets_in", "packets_out"].map(|name| count(&link[name])));
    counts.collect()
}

#[test]
fn each_link_has_its_part_and_the_rest_passes() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let [first, second, _] = addresses.map(prefix);
    assert_round_trips(&joined, addresses, [0.0; 3]);
    let attach = |name, options: &str| joined.attach(&name_of(name), options);
    let a = attach("several-a", &format!("--delay 10ms --to {first}"));
    let b = attach("several-b", &format!("--delay 30ms --to {second}"));
    assert_round_trips(&joined, addresses, [20.0, 60.0, 0.0]);
    // A link for all traffic has the lowest priority, so it gets only the remaining traffic.
    let c = attach("several-c", "--delay 50ms");
    assert_round_trips(&joined, addresses, [20.0, 60.0, 100.0]);
    joined.refuses(&name_of("several-d"), "--delay 1ms", "already has a link");
    // This link has the highest priority, one direction and a filter.
    let options = "--delay 5ms --priority 7 --direction up --filter icmp";
    let d = attach("several-e", options);
    assert_round_trips(&joined, addresses, [15.0, 35.0, 55.0]);
    let found = counts(&d.detach());
    assert!(found[0][0] >= 24 && found[0][0] == found[0][1], "{found:?}");
    assert_eq!(found[1], [0, 0], "nothing of the other direction");
    assert_round_trips(&joined, addresses, [20.0, 60.0, 100.0]);
    let found = counts(&a.detach());
    assert!(
        found.iter().all(|[entered, left]| entered == left),
        "{found:?}"
    );
    // The detached link's traffic now crosses the link for all traffic.
    assert_round_trips(&joined, addresses, [100.0, 60.0, 100.0]);
    c.detach();
    assert_round_trips(&joined, addresses, [0.0, 60.0, 0.0]);
    b.kill();
    assert_round_trips(&joined, addresses, [0.0; 3]);
    joined.assert_clean();
}

#[test]
fn a_node_that_starts_again_keeps_the_order() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let [first, second, third] = &addresses.map(prefix);
    let names = || {
        let found = within(&joined.near, || {
            let index = link_index(DEVICE).expect("a device");
            programs(index, Hook::Egress)
        });
        found.names
    };
    // Links apply in order of creation, not of names. All three select the first address.
    node.put("z", &part(&joined, "10ms", &[first]));
    node.put("b", &part(&joined, "20ms", &[first, second]));
    node.put("m", &part(&joined, "30ms", &[first, second, third]));
    let expected = ["longwireo800000", "longwireo800001", "longwireo800002"];
    assert_eq!(names(), expected);
    assert_crossed(&node, &joined, addresses, [20.0, 40.0, 60.0]);
    node.refuses("other", &part(&joined, "1ms", &[first, second]), 409);

    node.kill();
    assert_round_trips(&joined, addresses, [0.0; 3]);
    let node = RunningNode::start(&folder);
    assert_eq!(names(), expected);
    assert_crossed(&node, &joined, addresses, [20.0, 40.0, 60.0]);

    // Change the selection of an existing link.
    node.put("b", &part(&joined, "20ms", &[third]));
    assert_eq!(node.get("b")["returns"], 0);
    assert_crossed(&node, &joined, addresses, [20.0, 60.0, 40.0]);
    node.delete("z");
    assert_crossed(&node, &joined, addresses, [60.0, 60.0, 40.0]);
}

#[test]
fn another_part_is_taken_without_a_lost_packet() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let [first, second, _] = &addresses.map(prefix);
    node.put("part", &part(&joined, "2ms", &[first]));
    std::thread::scope(|scope| {
        let line = format!("ping -c 400 -i 0.005 -W 2 -q {}", joined.far_address);
        let near = &joined.near;
        let pinging = scope.spawn(move || run_in(near, line));
        for _ in 0..10 {
            for to in [&[first, second][..], &[second], &[first]] {
                node.put("part", &part(&joined, "2ms", to));
            }
        }
        pinging.join().expect("it ends").prints("400 received");
    });
    let removed = node.delete("part");
    assert_eq!(removed["packets_in"], removed["packets_out"], "{removed}");
}

#[test]
fn many_attachments_of_a_node_share_memory_and_return() {
    const MANY: usize = 40;
    const RESIDENT_MAX_KB: u64 = 300_000;
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    for number in 0..MANY {
        let near = format!("many{number}");
        let peer = format!("ip link add {near} up type veth peer peer{number}");
        change(&joined.near, peer);
        let mut body = attachment(&path_of(&joined.near), json!({ "delay": "1ms" }));
        body["interface"] = near.as_str().into();
        node.put(&near, &body);
    }
    let made = memory_of(node.program.id(), "VmRSS");
    assert!(made < 2 * RESIDENT_MAX_KB, "{made} kB");
    node.kill();
    let node = RunningNode::start(&folder);
    let all = node.attachments().into_iter();
    assert_eq!(all.filter(|view| view["state"] == "attached").count(), MANY);
    let again = memory_of(node.program.id(), "VmRSS");
    assert!(again < RESIDENT_MAX_KB, "{again} kB");
}

#[test]
fn lists_show_the_traffic_of_each() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let (some, rest) = (name_of("list-some"), name_of("list-rest"));
    let to = prefix(addresses[1]);
    let of_some = joined.attach(&some, &format!("--to {to} --priority 7 --direction up"));
    let of_rest = joined.attach(&rest, "--filter 'udp dst port 53'");
    let listed = longwire("attach list").stdout;
    for (name, words) in [
        (&some, format!("to {to}; up only; priority 7")),
        (&rest, "filter 'udp dst port 53'".to_owned()),
    ] {
        let row = listed.lines().find(|line| line.contains(name.as_str()));
        assert!(row.is_some_and(|row| row.contains(&words)), "{listed}");
    }
    let rows = longwire("attach list --json").json();
    let spec = &named(&rows, &some)["spec"];
    let found = [&spec["to"], &spec["priority"], &spec["direction"]];
    assert_eq!(found, [&json!([to]), &json!(7), &json!("up")]);
    of_some.detach();
    of_rest.detach();
    joined.assert_clean();
}
