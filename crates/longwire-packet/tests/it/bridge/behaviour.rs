//! Bridge modes, limits and errors.

use longwire_packet::bridge::{
    Bridge, BridgeConfig, Forwarding, NotForwarded, StaticEntry, StormLimit, Switching,
};
use longwire_units::Nanos;
use longwire_units::{PacketRate, Packets};

use crate::bridge::{BROADCAST, frame, port, station};

fn entry(mac: [u8; 6], vlan: u16, number: u16) -> StaticEntry {
    let port = port(number);
    StaticEntry { vlan, mac, port }
}

fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

#[test]
fn paired_ports_forward_everything_and_learn_nothing() {
    let mut config = BridgeConfig::new(5);
    config.switching = Switching::Pairs(vec![(port(0), port(3)), (port(1), port(2))]);
    let mut bridge = Bridge::new(config).unwrap();
    for bytes in [
        frame(BROADCAST, station(1), None),
        vec![0; 3],
        frame([1, 0x80, 0xc2, 0, 0, 0], [0; 6], None),
    ] {
        for (from, to) in [(0, 3), (3, 0), (1, 2), (2, 1)] {
            let found = bridge.forward(at(0), port(from), &bytes);
            assert_eq!(found, Forwarding::One(port(to)));
        }
        let found = bridge.forward(at(0), port(4), &bytes);
        assert_eq!(found, Forwarding::None(NotForwarded::Unpaired));
    }
    assert_eq!(bridge.station_count(), 0);
    assert_eq!(bridge.counters().not_forwarded(NotForwarded::Unpaired), 3);
}

#[test]
fn invalid_configurations_are_refused() {
    let with = |change: &dyn Fn(&mut BridgeConfig)| {
        let mut config = BridgeConfig::new(2);
        change(&mut config);
        config
    };
    let paired = |pairs: &[(u16, u16)]| {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (port(*a), port(*b))).collect();
        with(&|config| config.switching = Switching::Pairs(pairs.clone()))
    };
    let table = |table_max, entries: &[([u8; 6], u16, u16)]| {
        with(&|config| {
            config.table_max = table_max;
            let entries = entries
                .iter()
                .map(|(mac, vlan, number)| entry(*mac, *vlan, *number));
            config.statics = entries.collect();
        })
    };
    let burst = |burst| {
        let (rate, burst) = (PacketRate::MAX, Packets(burst));
        with(&|config| config.storm = Some(StormLimit { rate, burst }))
    };
    let two = [(station(1), 0, 0), (station(2), 0, 0)];
    for (config, refusal) in [
        (BridgeConfig::new(0), "a bridge needs at least one port"),
        (
            table(0, &[]),
            "a table of 0 stations is outside 1..16777216",
        ),
        (table(1, &two), "the station table (1 entries) is full"),
        (
            paired(&[(0, 2)]),
            "unknown port 2; the bridge has 2, numbered from 0",
        ),
        (paired(&[(1, 1)]), "port 1 is paired with itself"),
        (paired(&[(0, 1), (1, 0)]), "port 1 is in two pairs"),
        (table(9, &[(station(1), 0, 2)]), "unknown port 2"),
        (
            table(9, &[([1; 6], 0, 0)]),
            "01:01:01:01:01:01 is zero or multicast",
        ),
        (
            table(9, &[(station(1), 4095, 0)]),
            "VLAN 4095 is outside 1..4094",
        ),
        (
            burst(0),
            "a burst of 0 flooded frames is outside 1..1048576",
        ),
        (burst((1 << 20) + 1), "a burst of 1048577 flooded frames"),
    ] {
        let error = Bridge::new(config).unwrap_err().to_string();
        assert!(error.starts_with(refusal), "{refusal}: {error}");
    }
}

#[test]
fn a_flood_of_random_addresses_evicts_no_station() {
    let mut config = BridgeConfig::new(3);
    config.table_max = 1_000;
    let mut bridge = Bridge::new(config).unwrap();
    for number in 1..=500 {
        bridge.forward(at(0), port(1), &frame(BROADCAST, station(number), None));
    }
    for number in 10_000..60_000 {
        let bytes = frame(station(number + 1), station(number), None);
        bridge.forward(at(1), port(0), &bytes);
    }
    assert_eq!(bridge.station_count(), 1_000);
    assert_eq!(bridge.counters().not_learnt, 49_500);
    for number in 1..=500 {
        let bytes = frame(station(number), station(9_999), None);
        let found = bridge.forward(at(2), port(0), &bytes);
        assert_eq!(found, Forwarding::One(port(1)));
    }
    // After all stations have aged, new ones are soon learned again.
    let later = Nanos::from_secs(301);
    for number in 100_000..100_100 {
        bridge.forward(later, port(2), &frame(BROADCAST, station(number), None));
    }
    for number in 100_000..100_100 {
        let bytes = frame(station(number), station(9_999), None);
        let found = bridge.forward(later, port(0), &bytes);
        assert_eq!(found, Forwarding::One(port(2)));
    }
}

#[test]
fn the_storm_limit_is_exact_and_per_port() {
    let mut config = BridgeConfig::new(3);
    config.storm = Some(StormLimit {
        rate: PacketRate::from_packets_per_sec(300).unwrap(),
        burst: Packets(10),
    });
    config.loop_detection = false;
    let mut bridge = Bridge::new(config).unwrap();
    let bytes = frame(BROADCAST, station(1), None);
    let mut passed = 0;
    // A million frames in a second: the burst, plus the rate times one second.
    for n in 0..1_000_000u64 {
        let found = bridge.forward(Nanos::from_nanos(n * 1_000), port(0), &bytes);
        passed += u64::from(matches!(found, Forwarding::Flood(_)));
    }
    assert_eq!(passed, 10 + 299);
    let storm = bridge.counters().not_forwarded(NotForwarded::Storm);
    assert_eq!(storm, 1_000_000 - passed);
    let other = frame(BROADCAST, station(2), None);
    let found = bridge.forward(Nanos::from_secs(1), port(1), &other);
    assert!(matches!(found, Forwarding::Flood(_)));
    // Frames to a known station do not count towards the limit.
    let known = frame(station(2), station(1), None);
    let found = bridge.forward(Nanos::from_nanos(999_999_999), port(0), &known);
    assert_eq!(found, Forwarding::One(port(1)));
}
