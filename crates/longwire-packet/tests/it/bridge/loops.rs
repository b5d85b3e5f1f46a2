//! Loops, and traffic that resembles a loop.

use longwire_packet::bridge::{Bridge, BridgeConfig, Forwarding, LoopSign};
use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::bridge::{BROADCAST, frame, port, station};

/// Returns a broadcast frame with a distinguishing number.
fn numbered(source: u32, number: u64) -> Vec<u8> {
    let mut bytes = frame(BROADCAST, station(source), None);
    bytes[20..28].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn bridge() -> Bridge {
    Bridge::new(BridgeConfig::new(4)).unwrap()
}

/// Ports 1 and 2 are connected by a cable: frames flooded to one arrive at the other a
/// microsecond later.
#[test]
fn a_cable_between_two_ports_is_found_at_once() {
    let mut bridge = bridge();
    let bytes = frame(BROADCAST, station(1), Some(5));
    let mut waiting = vec![(0u64, 0u16)];
    let mut notice = None;
    for _ in 0..20 {
        let (now, arrival) = waiting.remove(0);
        let found = bridge.forward(Nanos::from_nanos(now), port(arrival), &bytes);
        for out in bridge.ports_of(found, port(arrival)) {
            match out.0 {
                1 => waiting.push((now + 1_000, 2)),
                2 => waiting.push((now + 1_000, 1)),
                _ => {}
            }
        }
        notice = notice.or(bridge.take_loop());
    }
    let notice = notice.expect("the loop is noticed");
    assert_eq!((notice.vlan, notice.station), (5, station(1)));
    let ports = [notice.ports.0.0, notice.ports.1.0];
    assert!(ports.contains(&1) || ports.contains(&2), "{notice:?}");
    assert!(notice.at <= Nanos::from_micros(10), "{notice:?}");
}

/// The loop is at port 3: a frame sent there returns forever, unchanged.
#[test]
fn a_loop_behind_a_port_is_found() {
    let mut bridge = bridge();
    for n in 0..200u64 {
        bridge.forward(
            Nanos::from_micros(n * 100),
            port(3),
            &frame(BROADCAST, station(1), None),
        );
        if let Some(notice) = bridge.take_loop() {
            assert_eq!(notice.sign, LoopSign::FrameRepeats);
            assert_eq!(notice.ports, (port(3), port(3)));
            return;
        }
    }
    panic!("no loop was noticed");
}

/// A thousand stations in a loop at once, more than the tables hold, still cause notices,
/// at most one per second.
#[test]
fn many_stations_in_a_loop_do_not_hide_it() {
    let mut bridge = bridge();
    let mut draw = Stream::of_seed(1);
    let mut notices = Vec::new();
    for n in 0..60_000u64 {
        let now = Nanos::from_micros(n * 50);
        let bytes = numbered(draw.up_to(999) as u32 + 1, n);
        bridge.forward(now, port(draw.up_to(1) as u16), &bytes);
        notices.extend(bridge.take_loop());
    }
    assert_eq!(notices.len(), 3, "{notices:?}");
    assert!(
        notices
            .iter()
            .all(|notice| notice.sign == LoopSign::StationMoves)
    );
    assert!(bridge.counters().loop_signs > 100);
}

/// Traffic without a loop: roaming, failover, retries, broadcasts at high rates.
#[test]
fn ordinary_traffic_is_no_loop() {
    let mut bridge = bridge();
    let mut draw = Stream::of_seed(2);
    for n in 0..200_000u64 {
        let now = Nanos::from_micros(n * 100);
        let source = draw.up_to(499) as u32 + 1;
        // Every station changes its port occasionally, at most once per second.
        let second = n / 10_000;
        let home = (u64::from(source) + second * u64::from(source.is_multiple_of(7))) % 4;
        // One in ten asks for the same address for the third time: the same bytes from the
        // same port.
        let bytes = match n % 10 {
            0 => numbered(source, second),
            1..4 => numbered(source, n),
            _ => frame(station(draw.up_to(499) as u32 + 1), station(source), None),
        };
        bridge.forward(now, port(home as u16), &bytes);
        assert_eq!(bridge.take_loop(), None, "frame {n}");
    }
    let counters = bridge.counters();
    assert!(
        counters.moved > 500 && counters.forwarded > 50_000,
        "{counters:?}"
    );
    assert_eq!(counters.loop_signs, 0);
}

#[test]
fn loops_are_not_looked_for_where_that_is_not_asked() {
    let mut config = BridgeConfig::new(2);
    config.loop_detection = false;
    let mut bridge = Bridge::new(config).unwrap();
    for n in 0..1_000u64 {
        let bytes = frame(BROADCAST, station(1), None);
        let found = bridge.forward(Nanos::from_micros(n), port((n % 2) as u16), &bytes);
        assert!(matches!(found, Forwarding::Flood(_)));
    }
    assert_eq!(bridge.take_loop(), None);
    assert_eq!(bridge.counters().loop_signs, 0);
}
