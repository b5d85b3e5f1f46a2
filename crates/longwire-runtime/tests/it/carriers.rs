//! Carriers follow link states after the frames in transit. Virtual time makes the order of frames
//! and carrier changes at a port exact.

use std::num::NonZero;

use longwire_engine::{Bytes, LinkChange, LinkId, LinkState, Nanos};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_packet::bridge::{BridgeConfig, PortIndex};
use longwire_runtime::deciding::pipeline::run_to_end;
use longwire_runtime::deciding::{Operation, PortCarrier, Sharding, Target};
use longwire_testbed::support::frames::udp4;

use crate::common::network::{link, parts, rules};
use crate::composed::ports::arrivals;

const PACE: Nanos = Nanos::from_millis(1);

/// Events at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Frame(u8),
    Carrier(bool),
}

use Event::{Carrier, Frame};

/// Records departing frames and carrier changes.
#[derive(Default)]
struct Noted {
    events: Vec<Event>,
    pushed: usize,
}

impl TxPort for Noted {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        self.events.push(Frame(frame.bytes[42]));
        self.pushed += 1;
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.pushed))
    }

    fn free_slots(&self) -> usize {
        usize::MAX
    }

    fn unsent(&self) -> usize {
        self.pushed
    }

    fn set_carrier(&mut self, up: bool) {
        self.events.push(Carrier(up));
    }
}

fn change(link: u32, state: LinkState) -> Operation {
    Box::new(move |core, at| {
        let change = LinkChange {
            state: Some(state),
            ..LinkChange::default()
        };
        drop(core.change_link(LinkId(link), at, change));
    })
}

/// Makes the carrier of port 1 follow these links.
fn follow(toward: Vec<u32>) -> Operation {
    Box::new(move |core, _| {
        core.follow_carriers(vec![PortCarrier {
            port: PortIndex(1),
            name: "far".to_owned(),
            toward: toward.into_iter().map(LinkId).collect(),
        }]);
    })
}

/// Sends frames 1 to 80, one per millisecond, from port 0: odd ones over link 0, even ones over
/// link 1. The switch does not know their destination and floods them to ports 1 and 2. Returns the
/// events at all ports.
fn run(links: [&str; 2], orders: Vec<(u64, Operation)>) -> [Vec<Event>; 3] {
    run_on(Sharding::one(), links, orders)
}

/// Like [`run`], with sharded links.
fn run_on(sharding: Sharding, links: [&str; 2], orders: Vec<(u64, Operation)>) -> [Vec<Event>; 3] {
    let rules = rules(Target::Drop, &[("src=10.0.0.1", 0), ("src=10.0.0.2", 1)]);
    let (mut parts, _) = parts(BridgeConfig::new(3), rules, links.map(link), &[&[0], &[1]]);
    let orders = orders.into_iter();
    let orders = orders.map(|(at, order)| (Nanos::from_millis(at), order));
    parts.orders.extend(orders);
    parts.sharding = sharding;
    let frames = (1..=80).map(|number: u8| {
        let at = Nanos::from_nanos(PACE.as_nanos() * u64::from(number));
        let from = 2 - number % 2;
        let frame = udp4([10, 0, 0, from], [10, 0, 0, 9], (0, 0), &[number; 30]);
        (at, frame)
    });
    let ports = [frames.collect(), Vec::new(), Vec::new()];
    let ports = ports.map(|frames| (arrivals(frames, 7), Noted::default()));
    let end = run_to_end(ports.into(), parts, (1, Bytes(1 << 20)), None).expect("it runs");
    let mut events = end.ports.into_iter().map(|port| port.events);
    std::array::from_fn(|_| events.next().expect("three ports"))
}

#[test]
fn a_carrier_is_lost_after_the_frames_in_transit() {
    let two = Sharding::new(vec![0, 1], 2, NonZero::<usize>::MIN);
    for sharding in [Sharding::one(), two] {
        // On link 0, frames 1 to 19 arrive 10 ms later, until the 29th millisecond. Frames 21 to 39
        // are dropped.
        let orders = vec![
            (0, follow(vec![0])),
            (20, change(0, LinkState::Off)),
            (40, change(0, LinkState::On)),
        ];
        let [near, far, other] = run_on(sharding, ["delay=10ms", "loss=100%"], orders);
        let before = (1..=19).step_by(2).map(Frame);
        let after = (41..=79).step_by(2).map(Frame);
        let switches = [Carrier(false), Carrier(true)];
        let frames: Vec<Event> = before.clone().chain(after.clone()).collect();
        let expected: Vec<Event> = before.chain(switches).chain(after).collect();
        assert_eq!(far, expected);
        assert_eq!(
            (near, other),
            (Vec::new(), frames),
            "ports that follow no link"
        );
    }
}

#[test]
fn a_carrier_is_kept_if_the_link_is_up_again_while_frames_are_in_transit() {
    let orders = vec![
        (0, follow(vec![0])),
        (20, change(0, LinkState::Off)),
        (25, change(0, LinkState::On)),
    ];
    let [_, far, _] = run(["delay=10ms", "loss=100%"], orders);
    let kept = (1..=19).step_by(2).chain((25..=79).step_by(2));
    assert_eq!(far, kept.map(Frame).collect::<Vec<_>>());
}

/// The inputs deliver up to 7 frames (7 ms) at once, so the link goes up and down again between two
/// steps.
#[test]
fn frames_of_a_short_recovery_leave_with_a_carrier() {
    let orders = vec![
        (0, follow(vec![0])),
        (20, change(0, LinkState::Off)),
        (43, change(0, LinkState::On)),
        (47, change(0, LinkState::Off)),
    ];
    let [_, far, _] = run(["delay=1us", "loss=100%"], orders);
    let mut expected: Vec<Event> = (1..20).step_by(2).map(Frame).collect();
    expected.extend([Carrier(false), Carrier(true)]);
    expected.extend([Frame(43), Frame(45), Carrier(false)]);
    assert_eq!(far, expected);
}

#[test]
fn a_port_has_a_carrier_while_one_of_its_links_is_not_down() {
    let orders = vec![
        (0, follow(vec![0, 1])),
        (10, change(0, LinkState::Off)),
        (20, change(1, LinkState::Paused)),
        (30, change(1, LinkState::Off)),
        (40, change(1, LinkState::On)),
        (44, change(1, LinkState::Off)),
        // A port that follows no links has a carrier.
        (65, follow(Vec::new())),
    ];
    let [_, far, _] = run(["delay=1us", "delay=1us"], orders);
    let mut expected: Vec<Event> = (1..10).map(Frame).collect();
    expected.extend((10..20).step_by(2).map(Frame));
    expected.extend([Carrier(false), Carrier(true)]);
    expected.extend((40..44).step_by(2).map(Frame));
    expected.extend([Carrier(false), Carrier(true)]);
    assert_eq!(far, expected);
}

#[test]
fn frames_are_not_flooded_to_a_port_without_a_carrier() {
    let orders = vec![
        (0, follow(vec![0])),
        (20, change(0, LinkState::Off)),
        (60, change(0, LinkState::On)),
    ];
    let [_, far, other] = run(["delay=1us", "delay=1us"], orders);
    let lost = far.iter().position(|event| *event == Carrier(false));
    let lost = lost.expect("it is lost");
    assert_eq!(far[lost + 1], Carrier(true), "{far:?}");
    // The other link was always up.
    let even = |number: &u8| number.is_multiple_of(2);
    let frames = (1..=80).filter(|number| even(number) || !(20..60).contains(number));
    assert_eq!(other, frames.map(Frame).collect::<Vec<_>>());
}
