//! Several links at one interface, each for part of the traffic.

use std::net::IpAddr;

use longwire_io::bpf::tcx::{Hook, programs};
use longwire_io::net::addr_add;
use longwire_io::net::link::link_index;
use longwire_testbed::support::Folder;
use serde_json::{Value, json};

use super::node::{RunningNode, attachment};
use super::{DEVICE, Joined, name_of};
use crate::common::longwire;
use crate::common::site::{run_in, well};

/// Additional addresses of far.
const SECOND: &str = "10.98.7.2";
const THIRD: &str = "10.98.7.3";

/// Returns networks in which far has three addresses.
pub(super) fn joined() -> Option<(Joined, [IpAddr; 3])> {
    let joined = Joined::new()?;
    let more = [SECOND, THIRD].map(|address| address.parse().expect("an address"));
    let added = joined.far.run(|| {
        more.iter()
            .try_for_each(|address| addr_add(DEVICE, *address, 24))
    });
    added.expect("entered").expect("added");
    let own = "10.98.7.1".parse().expect("an address");
    let added = joined.near.run(|| addr_add(DEVICE, own, 24));
    added.expect("entered").expect("added");
    let [second, third] = more;
    let addresses = [joined.far_address, second, third];
    Some((joined, addresses))
}

/// Asserts the round-trip times to addresses, in milliseconds.
#[track_caller]
fn assert_round_trips(joined: &Joined, addresses: [IpAddr; 3], expected: [f64; 3]) {
    for (address, expected) in addresses.into_iter().zip(expected) {
        let mut found = f64::INFINITY;
        for _ in 0..10 {
            found = found.min(joined.round_trip_to(address).expect("answers"));
            assert!(
                found > expected - 0.1,
                "{address}: {found} ms, not {expected}"
            );
            if found < expected + 5.0 {
                break;
            }
        }
        assert!(
            found < expected + 5.0,
            "{address}: {found} ms, not {expected}"
        );
    }
}

fn names(joined: &Joined) -> Vec<String> {
    let found = joined.near.run(|| {
        let index = link_index(DEVICE).expect("a device");
        programs(index, Hook::Egress)
    });
    found.expect("entered").expect("programs").names
}

pub(super) fn prefix(address: IpAddr) -> String {
    format!("{address}/32")
}

/// Returns the input and output frames of each link in a report.
fn counts(report: &Value) -> Vec<[u64; 2]> {
    let links = report["links"].as_array().expect("links");
    let count = |link: &Value, name: &str| link[name].as_u64().expect("a count");
    links
        .iter()
        .map(|link| [count(link, "packets_in"), count(link, "packets_out")])
        .collect()
}

#[test]
fn each_link_has_its_part_and_the_rest_passes() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let [first, second, _] = addresses;
    assert_round_trips(&joined, addresses, [0.0; 3]);
    let name = name_of("several-a");
    let a = joined.attach(&name, &["--delay", "10ms", "--to", &prefix(first)]);
    let name = name_of("several-b");
    let b = joined.attach(&name, &["--delay", "30ms", "--to", &prefix(second)]);
    assert_round_trips(&joined, addresses, [20.0, 60.0, 0.0]);
    // A link for all traffic comes after them and gets only the rest.
    let c = joined.attach(&name_of("several-c"), &["--delay", "50ms"]);
    assert_round_trips(&joined, addresses, [20.0, 60.0, 100.0]);
    let refused = joined.refused(&name_of("several-d"), &["--delay", "1ms"]);
    assert!(refused.stderr.contains("has a link already"), "{refused:?}");
    // Comes first, with one direction and a filter.
    let options = ["--delay", "5ms", "--priority", "7", "--direction", "up"];
    let filter = ["--filter", "icmp"];
    let d = joined.attach(&name_of("several-e"), &[&options[..], &filter].concat());
    assert_round_trips(&joined, addresses, [15.0, 35.0, 55.0]);
    let report = d.detach();
    let found = counts(&report);
    assert!(found[0][0] >= 24 && found[0][0] == found[0][1], "{found:?}");
    assert_eq!(found[1], [0, 0], "nothing of the other direction");
    assert_round_trips(&joined, addresses, [20.0, 60.0, 100.0]);
    let found = counts(&a.detach());
    assert!(
        found.iter().all(|[entered, left]| entered == left),
        "{found:?}"
    );
    // Its traffic now belongs to the rest.
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
    let body = |delay: &str, to: &[String]| {
        let mut body = attachment(&joined, json!({ "delay": delay }));
        body["to"] = json!(to);
        body
    };
    let [first, second, third] = addresses.map(prefix);
    // Names are not in creation order. All select the first address.
    node.put("z", &body("10ms", std::slice::from_ref(&first)));
    node.put("b", &body("20ms", &[first.clone(), second.clone()]));
    node.put(
        "m",
        &body("30ms", &[first.clone(), second.clone(), third.clone()]),
    );
    let expected = ["longwireo800000", "longwireo800001", "longwireo800002"];
    assert_eq!(names(&joined), expected);
    assert_round_trips(&joined, addresses, [20.0, 40.0, 60.0]);
    let same = body("1ms", &[first.clone(), second.clone()]);
    assert_eq!(node.refused("other", &same), 409);

    node.kill();
    assert_round_trips(&joined, addresses, [0.0; 3]);
    let node = RunningNode::start(&folder);
    assert_eq!(names(&joined), expected);
    assert_round_trips(&joined, addresses, [20.0, 40.0, 60.0]);

    // A different selection, on the same link.
    node.put("b", &body("20ms", std::slice::from_ref(&third)));
    assert_eq!(node.get("b")["returns"], 0);
    assert_round_trips(&joined, addresses, [20.0, 60.0, 40.0]);
    let mut client = node.client();
    client.delete("/v1/attachments/z").expect("removed");
    assert_round_trips(&joined, addresses, [60.0, 60.0, 40.0]);
}

#[test]
fn another_part_is_taken_without_a_lost_packet() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    let [first, second, _] = addresses.map(prefix);
    let body = |to: &[&String]| {
        let mut body = attachment(&joined, json!({ "delay": "2ms" }));
        body["to"] = json!(to);
        body
    };
    node.put("part", &body(&[&first]));
    let ping = std::thread::scope(|scope| {
        let pinging = scope.spawn(|| {
            let address = joined.far_address.to_string();
            let words = [
                "ping", "-c", "400", "-i", "0.005", "-W", "2", "-q", &address,
            ];
            crate::common::site::run_in(&joined.near, &words)
        });
        for _ in 0..10 {
            node.put("part", &body(&[&first, &second]));
            node.put("part", &body(&[&second]));
            node.put("part", &body(&[&first]));
        }
        pinging.join().expect("it ends")
    });
    assert!(ping.stdout.contains("400 received"), "{ping:?}");
    let removed = node.client().delete("/v1/attachments/part");
    let removed = removed.expect("removed");
    assert_eq!(removed["packets_in"], removed["packets_out"], "{removed}");
}

#[test]
fn many_attachments_of_a_node_share_memory_and_return() {
    const MANY: usize = 40;
    const RESIDENT_MAX_KB: u64 = 300_000;
    let Some(joined) = Joined::new() else { return };
    let folder = Folder::new();
    let mut node = RunningNode::start(&folder);
    for number in 0..MANY {
        let (near, far) = (format!("many{number}"), format!("peer{number}"));
        let words = [
            "ip", "link", "add", &near, "up", "type", "veth", "peer", &far,
        ];
        well(&words, run_in(&joined.near, &words));
        let mut body = attachment(&joined, json!({ "delay": "1ms" }));
        body["interface"] = near.as_str().into();
        node.put(&near, &body);
    }
    let resident_kb = |node: &mut RunningNode| -> u64 {
        let status = format!("/proc/{}/status", node.program.child().id());
        let status = std::fs::read_to_string(status).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.expect("a number").parse().expect("a number")
    };
    let made = resident_kb(&mut node);
    assert!(made < 2 * RESIDENT_MAX_KB, "{made} kB");
    node.kill();
    let mut node = RunningNode::start(&folder);
    let all = node.client().get("/v1/attachments").expect("a list");
    let all = all["attachments"].as_array().expect("a list");
    let attached = all.iter().filter(|view| view["state"] == "attached");
    assert_eq!(attached.count(), MANY);
    let again = resident_kb(&mut node);
    assert!(again < RESIDENT_MAX_KB, "{again} kB");
}

#[test]
fn lists_show_the_traffic_of_each() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    let (some, rest) = (name_of("list-some"), name_of("list-rest"));
    let to = prefix(addresses[1]);
    let options = ["--to", &to, "--priority", "7", "--direction", "up"];
    let of_some = joined.attach(&some, &options);
    let of_rest = joined.attach(&rest, &["--filter", "udp dst port 53"]);
    let listed = longwire(&["attach", "list"]).stdout;
    for (name, words) in [
        (&some, format!("to {to}; up only; priority 7")),
        (&rest, "filter 'udp dst port 53'".to_owned()),
    ] {
        let row = listed.lines().find(|line| line.contains(name.as_str()));
        assert!(row.is_some_and(|row| row.contains(&words)), "{listed}");
    }
    let rows = longwire(&["attach", "list", "--json"]).json();
    let rows = rows.as_array().expect("rows").iter();
    let row = rows
        .clone()
        .find(|row| row["name"] == some.as_str())
        .expect("listed");
    let spec = &row["spec"];
    assert_eq!(
        (&spec["to"], &spec["priority"], &spec["direction"]),
        (&json!([to]), &json!(7), &json!("up"))
    );
    let _ = (of_some.detach(), of_rest.detach());
    joined.assert_clean();
}
