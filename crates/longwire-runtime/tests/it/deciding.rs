//! Networks in virtual time: each frame leaves at the right port and time, and the result is
//! independent of the number of ports.

use std::sync::{Arc, Mutex};

use longwire_engine::{FrameMeta, Nanos, PathId};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::Matcher;
use longwire_runtime::deciding::{OutputFrame, Simulation, Target};
use longwire_testbed::support::frames::udp4;

use crate::common::network::{self, link, parts, rules, run_stages};

/// Returns a numbered UDP frame from station `from` to station `to`.
fn frame(from: u8, to: u8, number: u32, len: usize) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(len - 42, 0);
    udp4([10, 0, 0, from], [10, 0, 0, to], (0, 0), &payload)
}

fn number_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[42], bytes[43], bytes[44], bytes[45]])
}

const MS: u64 = 1_000_000;

fn at(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

#[test]
fn stations_are_learnt_and_links_act() {
    let classifier = rules(Target::Pass, &[("src=10.0.0.1,dst=10.0.0.2", 0)]);
    let links = [link("delay=5ms")];
    let (parts, cells) = parts(BridgeConfig::new(3), classifier, links, &[&[0]]);
    let inputs = vec![
        // The first frame goes to an unknown station and is flooded; the second goes to a known
        // one.
        vec![
            (at(MS), frame(1, 2, 1, 100)),
            (at(30 * MS), frame(1, 2, 4, 100)),
        ],
        vec![(at(10 * MS), frame(2, 1, 2, 100))],
        // No rule matches, so the frame passes immediately.
        vec![(at(20 * MS), frame(3, 1, 3, 100))],
    ];
    let out = run_stages(parts, 1, inputs);
    let arrivals: Vec<Vec<_>> = out
        .iter()
        .map(|port| {
            port.iter()
                .map(|(at, bytes)| (at.as_nanos() / MS, number_of(bytes)))
                .collect()
        })
        .collect();
    assert_eq!(arrivals[0], [(10, 2), (20, 3)]);
    assert_eq!(arrivals[1], [(6, 1), (35, 4)]);
    assert_eq!(arrivals[2], [(6, 1)]);
    let totals = cells[0].totals();
    assert_eq!(
        (
            totals.traffic.packets_in,
            totals.traffic.packets_out,
            totals.drops.total()
        ),
        (2, 2, 0)
    );
}

/// Frames from two ports queue on a shared link in order of arrival.
#[test]
fn a_link_may_be_shared_by_ports() {
    let classifier = rules(Target::Drop, &[("dst=10.0.0.9", 0)]);
    // 1,000 bytes take 1 ms.
    let links = [link("rate=8mbit queue=100p")];
    let (mut parts, _) = parts(BridgeConfig::new(3), classifier, links, &[&[0]]);
    parts.switch.switching = Switching::Bridge;
    let burst = |from: u8, offset: u64| -> Vec<_> {
        let frame = |n: u64| {
            (
                at(offset + 10 * n),
                frame(from, 9, (u32::from(from) << 8) | n as u32, 1_000),
            )
        };
        (0..10).map(frame).collect()
    };
    let out = run_stages(parts, 1, vec![burst(1, 0), burst(2, 5), vec![]]);
    let left: Vec<_> = out[2]
        .iter()
        .map(|(at, bytes)| (at.as_nanos(), number_of(bytes)))
        .collect();
    let expected: Vec<_> = (0..20u64)
        .map(|n| ((n + 1) * MS, (((n % 2 + 1) << 8) | (n / 2)) as u32))
        .collect();
    assert_eq!(left, expected);
}

/// A path of two links shares its second link with another path. Meanwhile, an order moves one
/// class of frames from the first path to the second.
#[test]
fn paths_share_links_and_orders_apply_on_time() {
    let classifier = rules(Target::Pass, &[("src=10.0.0.1", 0), ("src=10.0.0.2", 1)]);
    let links = [link("delay=2ms"), link("delay=3ms")];
    let paths: [&[u32]; 2] = [&[0, 1], &[1]];
    let (mut parts, cells) = parts(BridgeConfig::new(3), classifier, links, &paths);
    parts.orders.push((
        at(10 * MS),
        Box::new(|core, now| {
            assert_eq!(now, at(10 * MS));
            core.set_unmatched(Target::Drop);
            let matcher: Matcher = "src=10.0.0.1".parse().expect("right");
            let added = core.add_rule(2, matcher, Target::Path(PathId(1)));
            // The added rule follows the existing one and has no effect. Then that rule's target
            // changes.
            core.set_target(0, Target::Path(PathId(1)));
            added.expect("room");
        }),
    ));
    let inputs = vec![
        (0..20)
            .map(|n| (at(n * MS + 1), frame(1, 9, n as u32, 100)))
            .collect(),
        (0..20)
            .map(|n| (at(n * MS + 2), frame(2, 9, 100 + n as u32, 100)))
            .collect(),
        // Frames without a rule pass until 10 ms and are dropped afterwards.
        (0..20)
            .map(|n| (at(n * MS + 3), frame(9, 1, 200 + n as u32, 100)))
            .collect(),
    ];
    let out = run_stages(parts, 1, inputs);
    let of = |from: u32, port: &[(Nanos, Vec<u8>)]| -> Vec<u64> {
        let mine = port
            .iter()
            .filter(|(_, bytes)| number_of(bytes) / 100 == from);
        mine.map(|(at, _)| at.as_nanos()).collect()
    };
    let first: Vec<u64> = (0..20)
        .map(|n| n * MS + 1 + if n < 10 { 5 } else { 3 } * MS)
        .collect();
    let mut found = of(0, &out[2]);
    found.sort_unstable();
    let mut sorted = first;
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    let second: Vec<u64> = (0..20).map(|n| n * MS + 2 + 3 * MS).collect();
    assert_eq!(of(1, &out[2]), second);
    assert_eq!(of(2, &out[0]).len(), 10);
    assert_eq!(cells[1].totals().traffic.packets_out, 40);
    assert_eq!(cells[0].totals().traffic.packets_out, 10);
}

/// All fragments of a datagram cross one link, although later ones do not match the catch-all rule.
#[test]
fn fragments_cross_the_link_of_their_datagram() {
    let rules = rules(Target::Drop, &[("dport=53", 0), ("proto=udp", 1)]);
    let links = [link("delay=1ms"), link("delay=7ms")];
    let (parts, cells) = parts(BridgeConfig::new(2), rules, links, &[&[0], &[1]]);
    let mut frames = Vec::new();
    for datagram in 0..40u16 {
        for (piece, field) in [0x2000u16, 0x2003, 0x0006].into_iter().enumerate() {
            let port = if datagram % 2 == 0 { 53 } else { 80 };
            // Later fragments have payload where the ports would be.
            let ports = if piece == 0 { (9, port) } else { (0, 53) };
            let number = (u32::from(datagram) << 8 | piece as u32).to_be_bytes();
            let mut bytes = udp4([10, 0, 0, 1], [10, 0, 0, 2], ports, &number);
            bytes[18..20].copy_from_slice(&datagram.to_be_bytes());
            bytes[20..22].copy_from_slice(&field.to_be_bytes());
            let time = u64::from(datagram / 4) * MS + piece as u64 * 10_000;
            frames.push((at(time + u64::from(datagram % 4)), bytes));
        }
    }
    frames.sort_by_key(|(at, _)| *at);
    let out = run_stages(parts, 1, vec![frames, Vec::new()]);
    assert_eq!(out[1].len(), 120);
    for cells in cells {
        assert_eq!(cells.totals().traffic.packets_in, 60);
    }
    for (release, bytes) in &out[1] {
        let delay = if (number_of(bytes) >> 8).is_multiple_of(2) {
            1
        } else {
            7
        };
        let arrival = release.as_nanos() - delay * MS;
        assert!(arrival % MS < 30_000, "{release:?}");
    }
}

/// When a run is repeated from its report, a change precedes the frames with the same time. A late
/// change must therefore get a later time than the frames that entered before it.
#[test]
fn a_late_change_follows_the_frames_that_entered() {
    let rules = rules(Target::Drop, &[("in-port=0", 0), ("in-port=1", 1)]);
    let links = ["delay=1ms", "delay=1ms"].map(link);
    let (parts, _) = parts(network::pair(), rules, links, &[&[0], &[1]]);
    let simulation = Simulation::new(&["a", "b"], parts, 3, Nanos::ZERO, None);
    let mut simulation = simulation.expect("it starts");
    let mut out = |_: OutputFrame<'_>| Ok::<(), ()>(());
    let changed = Arc::new(Mutex::new(Vec::new()));
    let order = |simulation: &mut Simulation, at| {
        let changed = Arc::clone(&changed);
        simulation.order(
            at,
            Box::new(move |_, at| changed.lock().expect("a list").push(at)),
        );
    };
    let [before, arrival, later] = [4, 5, 6].map(Nanos::from_millis);
    order(&mut simulation, arrival);
    let frame = udp4([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[0; 30]);
    let meta = FrameMeta::new(arrival, frame.len() as u32);
    let entered = simulation.frame(PortIndex(0), meta, &frame, &mut out);
    entered.expect("nothing fails");
    for at in [before, arrival, later] {
        order(&mut simulation, at);
        simulation
            .advance(arrival, &mut out)
            .expect("nothing fails");
    }
    simulation.advance(later, &mut out).expect("nothing fails");
    let after = arrival.saturating_add(Nanos::from_nanos(1));
    assert_eq!(
        *changed.lock().expect("a list"),
        [arrival, after, after, later]
    );
}
