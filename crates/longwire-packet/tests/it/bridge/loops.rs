//! Loops, and traffic that resembles a loop.

use std::collections::VecDeque;

use longwire_packet::bridge::{Bridge, BridgeConfig, Forwarding};
use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::bridge::{BROADCAST, frame, port, station};

/// Returns a broadcast frame that contains a number.
fn numbered(source: u32, number: u64) -> Vec<u8> {
    let mut bytes = frame(BROADCAST, station(source), None);
    bytes[20..28].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn bridge() -> Bridge {
    Bridge::new(BridgeConfig::new(4)).unwrap()
}

/// A cable connects ports 1 and 2: frames flooded to one arrive at the other a microsecond later.
#[test]
fn a_cable_between_two_ports_is_detected_at_once() {
    let mut bridge = bridge();
    let bytes = frame(BROADCAST, station(1), Some(5));
    let mut waiting = VecDeque::from([(0, 0)]);
    while bridge.counters().loop_signs == 0 {
        let (now, arrival) = waiting.pop_front().expect("a frame in the loop");
        assert!(now <= 10_000, "not found within 10 us");
        let found = bridge.forward(Nanos::from_nanos(now), port(arrival), &bytes);
        assert!(matches!(found, Forwarding::Flood(_)));
        let other = |out| 3 - out;
        let outputs = [1, 2].into_iter().filter(|out| *out != arrival);
        waiting.extend(outputs.map(|out| (now + 1_000, other(out))));
    }
}

/// A loop beyond port 3: frames sent to that port return forever, unchanged.
#[test]
fn a_loop_behind_a_port_is_detected_unless_detection_is_off() {
    for loop_detection in [true, false] {
        let mut config = BridgeConfig::new(4);
        config.loop_detection = loop_detection;
        let mut bridge = Bridge::new(config).unwrap();
        let bytes = frame(BROADCAST, station(1), None);
        for n in 0..200 {
            let found = bridge.forward(Nanos::from_micros(n * 100), port(3), &bytes);
            assert!(matches!(found, Forwarding::Flood(_)));
        }
        assert_eq!(bridge.counters().loop_signs > 0, loop_detection);
    }
}

/// A thousand stations loop simultaneously, more than the tables hold.
#[test]
fn many_stations_in_a_loop_do_not_hide_it() {
    let mut bridge = bridge();
    let mut draw = Stream::of_seed(1);
    for n in 0..60_000u64 {
        let now = Nanos::from_micros(n * 50);
        let bytes = numbered(draw.up_to(999) as u32 + 1, n);
        bridge.forward(now, port(draw.up_to(1) as u16), &bytes);
    }
    assert!(bridge.counters().loop_signs > 100);
}

/// Loop-free traffic: roaming, failover, retries, broadcasts at high rates.
#[test]
fn ordinary_traffic_is_not_a_loop() {
    let mut bridge = bridge();
    let mut draw = Stream::of_seed(2);
    for n in 0..200_000u64 {
        let now = Nanos::from_micros(n * 100);
        let source = draw.up_to(499) as u32 + 1;
        // Stations change ports occasionally, at most once per second.
        let second = n / 10_000;
        let home = (u64::from(source) + second * u64::from(source.is_multiple_of(7))) % 4;
        // One frame in ten repeats a request: each station sends the same bytes about twice per
        // second, through the same port.
        let bytes = match n % 10 {
            0 => numbered(source, second),
            1..4 => numbered(source, n),
            _ => frame(station(draw.up_to(499) as u32 + 1), station(source), None),
        };
        bridge.forward(now, port(home as u16), &bytes);
        assert_eq!(bridge.counters().loop_signs, 0, "frame {n}");
    }
    let counters = bridge.counters();
    assert!(counters.moved > 500, "{counters:?}");
    assert!(counters.forwarded > 50_000, "{counters:?}");
}

/// A station alternates between two ports.
#[test]
fn a_moving_station_is_ignored_without_loop_detection() {
    let mut config = BridgeConfig::new(2);
    config.loop_detection = false;
    let mut bridge = Bridge::new(config).unwrap();
    for n in 0..1_000u64 {
        let bytes = frame(BROADCAST, station(1), None);
        let found = bridge.forward(Nanos::from_micros(n), port((n % 2) as u16), &bytes);
        assert!(matches!(found, Forwarding::Flood(_)));
    }
    assert_eq!(bridge.counters().loop_signs, 0);
}
