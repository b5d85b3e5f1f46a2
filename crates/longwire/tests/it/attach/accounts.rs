//! Traffic over an attached link: every loss is reported by the link or explained by an event, and
//! a connection survives.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::sysctl;
use longwire_testbed::support::within;
use longwire_testbed::{Plan, Side};

use super::closed::{Numbered, number, wait_for_arrivals};
use super::{Joined, name_of, packets_in};
use crate::common::program::change;
use crate::common::site::stream;
use crate::common::{count, list, sum};

/// Selects near's numbered datagrams, so that the link counts no other traffic.
const FILTER: &str = "--filter 'udp dst port 9000'";

/// Sends numbered datagrams from near while `events` runs; returns them and its result.
fn under_traffic<T>(joined: &Joined, events: impl FnOnce() -> T) -> (Numbered, T) {
    joined.assert_round_trip(0.0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stream = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
        thread::sleep(Duration::from_millis(50));
        let happened = events();
        thread::sleep(Duration::from_millis(50));
        over.store(true, Ordering::Relaxed);
        (stream.join().expect("a stream"), happened)
    })
}

fn missing(stream: &Numbered) -> Vec<usize> {
    let arrived: HashSet<usize> = stream.arrived.iter().map(|(number, _)| *number).collect();
    assert_eq!(arrived.len(), stream.arrived.len(), "none arrives twice");
    let sent = 0..stream.sent.len();
    sent.filter(|number| !arrived.contains(number)).collect()
}

#[test]
fn losses_equal_the_reported_ones() {
    let Some(joined) = Joined::new() else { return };
    let (stream, reports) = under_traffic(&joined, || {
        ["0%", "5%", "30%", "0%"].map(|loss| {
            let name = name_of(&format!("account-{}", loss.trim_end_matches('%')));
            let attached = joined.attach(&name, &format!("{FILTER} --delay 4ms --loss {loss}"));
            thread::sleep(Duration::from_millis(40));
            attached.set("delay=8ms");
            thread::sleep(Duration::from_millis(40));
            attached.detach()
        })
    });
    let (mut dropped, mut carried, mut unseen) = (0, 0, 0);
    for report in &reports {
        let up = &report["links"][0];
        let of_link = sum(&up["drops"]);
        assert_eq!(
            count(&up["packets_in"]),
            count(&up["packets_out"]) + of_link,
            "{up}"
        );
        assert_eq!(packets_in(report)[1], 0, "nothing comes from port 9000");
        dropped += of_link;
        carried += count(&up["packets_in"]);
        // The kernel drops frames while the port's thread waits for a core.
        let ports = list(&report["ports"]).iter();
        unseen += ports
            .map(|port| count(&port["artifacts"]["ring_full"]))
            .sum::<u64>();
    }
    assert!(carried > 1_000, "{carried} of {}", stream.sent.len());
    assert!(dropped > 50, "{dropped}");
    let missing = missing(&stream).len() as u64;
    assert_eq!(missing, dropped + unseen, "every loss is in a report");
    joined.assert_clean();
}

#[test]
fn a_kill_loses_the_frames_on_the_link() {
    const DELAY: Duration = Duration::from_millis(20);
    let Some(joined) = Joined::new() else { return };
    let (stream, (begin, kill, end)) = under_traffic(&joined, || {
        let attached = joined.attach(&name_of("lost"), &format!("{FILTER} --delay 20ms"));
        let begin = Instant::now();
        // The link must deliver some datagrams, so wait for more than it can hold.
        wait_for_arrivals(&joined, 500);
        let before = Instant::now();
        attached.kill();
        (begin, before, Instant::now())
    });
    let missing = missing(&stream);
    joined.assert_clean();
    let Some(&first) = missing.first() else {
        // The link is empty if the machine paused the sender for longer than the delay.
        let paused = stream
            .sent
            .windows(2)
            .any(|pair| pair[1] + DELAY >= kill && pair[0] <= end && pair[1] - pair[0] >= DELAY);
        assert!(paused, "frames were on the link");
        return;
    };
    assert!(stream.sent[first] > begin, "no frame has crossed the link");
    // The link preserves order, so the kill loses the last frames on it. A frame was certainly sent
    // before the kill if the sender had begun the next one.
    let on_link = stream.sent.partition_point(|at| *at <= kill);
    let on_link = first..on_link.saturating_sub(1);
    let arrived = |number: &usize| missing.binary_search(number).is_err();
    let later: Vec<usize> = on_link.filter(arrived).collect();
    assert!(later.is_empty(), "{first} was lost before {later:?}");
    // The link accepts frames only until the process ends.
    for number in missing {
        assert!(
            stream.sent[number] <= end,
            "{number} was lost after the end"
        );
    }
}

#[test]
fn a_connection_survives_attach_and_detach() {
    let Some(joined) = Joined::new() else { return };
    let sent = stream(&joined.near, (&joined.far, joined.far_address), || {
        for round in 0..3 {
            let attached = joined.attach(&name_of(&format!("stream{round}")), "--delay 3ms");
            joined.round_trip().expect("answers");
            attached.set("loss=1%");
            if round == 1 {
                attached.kill();
            } else {
                attached.detach();
            }
        }
    });
    assert!(sent > 700_000, "{sent} bytes");
    joined.assert_clean();
}

#[test]
fn later_fragments_have_no_ports() {
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    for (filter, expected) in [("udp dst port 9000", 1), ("udp", 3), ("fragment", 3)] {
        let options = format!("--filter '{filter}' --delay 2ms");
        let attached = joined.attach(&name_of("pieces"), &options);
        let (near, _far) = joined.sockets(9_000);
        let sent = near.send_to(&[7; 4_000], (joined.far_address, 9_000));
        assert_eq!(sent.expect("three fragments"), 4_000);
        thread::sleep(Duration::from_millis(30));
        let report = attached.detach();
        assert_eq!(packets_in(&report)[0], expected, "{filter}: {report}");
    }
}

#[test]
fn the_way_back_has_source_and_destination_exchanged() {
    let Some(joined) = Joined::new() else { return };
    let options = "--filter 'icmp and dst host 10.199.7.1' --delay 20ms";
    let attached = joined.attach(&name_of("back"), options);
    joined.add_addresses("10.199.7.2", &["10.199.7.1"]);
    joined.assert_round_trip(0.0);
    joined.assert_round_trip_to("10.199.7.1".parse().expect("an address"), 40.0);
    let report = attached.detach();
    assert_eq!(packets_in(&report), [8, 8], "{report}");
}

#[test]
fn a_forwarded_packet_crosses_both_directions() {
    const PACKETS: u64 = 20;
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    // Near is a one-armed router: packets from far return to far.
    let route = |namespace, by: &str| {
        change(namespace, format!("ip route add 10.90.0.0/24 via {by}"));
    };
    route(&joined.near, &joined.far_address.to_string());
    route(&joined.far, &Plan::USUAL.v4_of(Side::Near).to_string());
    within(&joined.near, || {
        sysctl::set("ipv4/ip_forward", "1")?;
        sysctl::set("ipv4/conf/eth0/send_redirects", "0")?;
        sysctl::set("ipv4/conf/all/send_redirects", "0")
    });
    let options = "--filter udp --delay 5ms --up-loss 100%";
    let attached = joined.attach(&name_of("forwarded"), options);
    let (_, far) = joined.sockets(9_000);
    for _ in 0..PACKETS {
        let sent = far.send_to(&[7; 100], ("10.90.0.1", 9_000));
        sent.expect("a datagram");
    }
    thread::sleep(Duration::from_millis(50));
    let report = attached.detach();
    let [up, down] = [0, 1].map(|link: usize| &report["links"][link]);
    assert_eq!(down["packets_out"], PACKETS, "{down}");
    assert_eq!(up["packets_in"], PACKETS, "{up}");
    assert_eq!(up["packets_out"], 0, "{up}");
}
