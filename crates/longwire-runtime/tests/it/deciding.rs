//! Networks in virtual time: each frame leaves at the right port and time, and the result is
//! independent of the number of ports.

use std::sync::{Arc, Mutex};

use longwire_engine::{FrameMeta, LinkId, Nanos, PathId};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::Matcher;
use longwire_runtime::deciding::{Core, NetworkParts, OutputFrame, Simulation, Target};
use longwire_testbed::support::frames::udp4;

use crate::common::network::{self, link, parts, rules, run_stages};
use crate::composed::ports::Frame;

/// Returns a numbered UDP frame from station `from` to station `to`.
fn frame(from: u8, to: u8, number: u32, len: usize) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(len - 42, 0);
    udp4([10, 0, 0, from], [10, 0, 0, to], (0, 0), &payload)
}

/// Releases, in nanoseconds, and numbers of the frames that left a port.
type Left = Vec<(u64, u32)>;

fn run<const N: usize>(parts: NetworkParts, inputs: [Vec<Frame>; N]) -> [Left; N] {
    let mut left = run_stages(parts, 1, inputs.into()).into_iter();
    let numbered = |(at, bytes): Frame| {
        let number = bytes[42..].first_chunk().expect("a number");
        (at.as_nanos(), u32::from_be_bytes(*number))
    };
    std::array::from_fn(|_| left.next().into_iter().flatten().map(numbered).collect())
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
    let inputs = [
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
    let in_ms = |port: Left| {
        port.into_iter()
            .map(|(at, number)| (at / MS, number))
            .collect()
    };
    let [a, b, c]: [Left; 3] = run(parts, inputs).map(in_ms);
    assert_eq!(a, [(10, 2), (20, 3)]);
    assert_eq!(b, [(6, 1), (35, 4)]);
    assert_eq!(c, [(6, 1)]);
    let totals = cells[0].totals();
    assert_eq!(
        (totals.traffic.packets_in, totals.traffic.packets_out),
        (2, 2)
    );
    assert_eq!(totals.drops.total(), 0);
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
        let number = |n: u64| u32::from(from) << 8 | n as u32;
        let frame = |n: u64| (at(offset + 10 * n), frame(from, 9, number(n), 1_000));
        (0..10).map(frame).collect()
    };
    let [_, _, left] = run(parts, [burst(1, 0), burst(2, 5), vec![]]);
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
            // The added rule has no effect, because rule 0 precedes it. The new target of rule 0
            // takes effect.
            core.set_target(0, Target::Path(PathId(1)));
            added.expect("room");
        }),
    ));
    let every_ms = |(from, to, first): (u8, u8, u32)| -> Vec<_> {
        let frame = |n| (at(u64::from(n) * MS + 1), frame(from, to, first + n, 100));
        (0..20).map(frame).collect()
    };
    // Frames without a rule pass until 10 ms and are dropped afterwards.
    let inputs = [(1, 9, 0), (2, 9, 100), (9, 1, 200)].map(every_ms);
    let [back, _, left] = run(parts, inputs);
    let of = |from: u32, port: &Left| -> Vec<u64> {
        let mine = port.iter().filter(|(_, number)| number / 100 == from);
        mine.map(|(at, _)| *at).collect()
    };
    let mut first: Vec<u64> = (0..20)
        .map(|n| n * MS + 1 + if n < 10 { 5 } else { 3 } * MS)
        .collect();
    first.sort_unstable();
    let mut found = of(0, &left);
    found.sort_unstable();
    assert_eq!(found, first);
    let second: Vec<u64> = (0..20).map(|n| n * MS + 1 + 3 * MS).collect();
    assert_eq!(of(1, &left), second);
    assert_eq!(of(2, &back).len(), 10);
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
    let [_, left] = run(parts, [frames, Vec::new()]);
    assert_eq!(left.len(), 120);
    for cells in cells {
        assert_eq!(cells.totals().traffic.packets_in, 60);
    }
    for (release, number) in left {
        let delay = [1, 7][(number >> 8) as usize % 2];
        assert!((release - delay * MS) % MS < 30_000, "{release}");
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
        let note = move |_: &mut Core, at| changed.lock().expect("a list").push(at);
        simulation.order(at, Box::new(note));
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

/// Frames that were decided ahead leave the queue without an event.
#[test]
fn a_queue_that_was_decided_ahead_is_empty_after_the_last_departure() {
    let rules = rules(Target::Drop, &[("in-port=0", 0), ("in-port=1", 1)]);
    let links = ["rate=1mbit", "rate=1mbit"].map(link);
    let (parts, _) = parts(network::pair(), rules, links, &[&[0], &[1]]);
    let simulation = Simulation::new(&["a", "b"], parts, 3, Nanos::ZERO, None);
    let mut simulation = simulation.expect("it starts");
    simulation.stays_until(Nanos::MAX);
    let mut out = |_: OutputFrame<'_>| Ok::<(), ()>(());
    let frame = udp4([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[0; 83]);
    for _ in 0..3 {
        let meta = FrameMeta::new(Nanos::ZERO, frame.len() as u32);
        let entered = simulation.frame(PortIndex(0), meta, &frame, &mut out);
        entered.expect("nothing fails");
    }
    let queued = Arc::new(Mutex::new(None));
    let found = Arc::clone(&queued);
    let look = move |core: &mut Core, _| {
        let queue = core.occupancy(LinkId(0)).expect("a link");
        *found.lock().expect("a place") = Some((queue.packets, queue.bytes, queue.packets_max));
    };
    simulation.order(Nanos::from_millis(4), Box::new(look));
    let end = Nanos::from_millis(5);
    simulation.advance(end, &mut out).expect("nothing fails");
    assert_eq!(*queued.lock().expect("a place"), Some((0, 0, 3)));
}

/// Simultaneous departures at time 0 are in order of their lines, as at any other time.
#[test]
fn departures_at_time_0_are_in_order() {
    for start in [0, 1_000] {
        let rules = rules(Target::Pass, &[("src=10.0.0.1", 0)]);
        let (parts, _) = parts(network::pair(), rules, [link("")], &[&[0]]);
        let simulation = Simulation::new(&["a", "b"], parts, 3, Nanos::ZERO, None);
        let mut simulation = simulation.expect("it starts");
        let mut left = Vec::new();
        let mut out = |frame: OutputFrame<'_>| {
            left.push(frame.bytes[29]);
            Ok::<(), ()>(())
        };
        for from in [1, 1, 1, 2] {
            let frame = udp4([10, 0, 0, from], [10, 0, 0, 9], (1, 2), &[0; 30]);
            let meta = FrameMeta::new(at(start), frame.len() as u32);
            let entered = simulation.frame(PortIndex(0), meta, &frame, &mut out);
            entered.expect("nothing fails");
        }
        let ended = simulation.advance(Nanos::MAX, &mut out);
        ended.expect("nothing fails");
        assert_eq!(left, [2, 1, 1, 1], "at {start} ns");
    }
}
