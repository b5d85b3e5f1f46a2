//! The bridge, compared with a linear search over a list of stations.

use longwire_packet::bridge::{
    Bridge, BridgeConfig, Flooded, Forwarding, NotForwarded, PortIndex, Reserved, StaticEntry,
    StormLimit, Switching,
};
use longwire_units::Nanos;
use longwire_units::random::Stream;
use longwire_units::{PacketRate, Packets};

use crate::bridge::{BROADCAST, frame, port, station};

/// VLAN, address, port and time last seen; the time is `None` for static entries.
type Known = (u16, [u8; 6], u16, Option<u64>);

struct Naive {
    config: BridgeConfig,
    known: Vec<Known>,
    moved: u64,
    learnt: u64,
    not_learnt: u64,
    static_elsewhere: u64,
    credit: Vec<(f64, u64)>,
}

/// Unit in which [`BridgeConfig::ageing`] is counted.
const TICK: u64 = 1 << 20;

impl Naive {
    fn new(config: BridgeConfig) -> Naive {
        let given = config.statics.iter();
        let known = given.map(|entry| (entry.vlan, entry.mac, entry.port.0, None));
        let burst = config.storm.map_or(0, |limit| limit.burst.0) as f64;
        Naive {
            credit: vec![(burst, 0); config.ports.into()],
            known: known.collect(),
            moved: 0,
            learnt: 0,
            not_learnt: 0,
            static_elsewhere: 0,
            config,
        }
    }

    fn is_fresh(&self, heard: Option<u64>, now: u64) -> bool {
        let ageing = self.config.ageing.as_nanos().div_ceil(TICK);
        heard.is_none_or(|heard| now / TICK - heard / TICK <= ageing)
    }

    fn learn(&mut self, now: u64, arrival: u16, vlan: u16, mac: [u8; 6]) {
        let mut known = self.known.iter();
        match known.position(|known| known.0 == vlan && known.1 == mac) {
            Some(at) => {
                let (_, _, before, heard) = self.known[at];
                if heard.is_none() {
                    self.static_elsewhere += u64::from(before != arrival);
                    return;
                }
                if self.is_fresh(heard, now) {
                    self.moved += u64::from(before != arrival)
                } else {
                    self.learnt += 1
                }
                self.known[at] = (vlan, mac, arrival, Some(now));
            }
            None if self.known.len() < self.config.table_max as usize => {
                self.learnt += 1;
                self.known.push((vlan, mac, arrival, Some(now)));
            }
            None => self.not_learnt += 1,
        }
    }

    fn forward(&mut self, now: u64, arrival: u16, frame: &[u8]) -> Forwarding {
        if arrival >= self.config.ports {
            return Forwarding::None(NotForwarded::NoSuchPort);
        }
        if frame.len() < 14 {
            return Forwarding::None(NotForwarded::Short);
        }
        let (destination, source) = (&frame[..6], <[u8; 6]>::try_from(&frame[6..12]).unwrap());
        if source[0] % 2 == 1 || source == [0; 6] {
            return Forwarding::None(NotForwarded::Source);
        }
        let tagged = matches!(frame[12..14], [0x81 | 0x91, 0] | [0x88, 0xa8]);
        let vlan = match frame.get(14..16).filter(|_| tagged) {
            Some(tag) => u16::from(tag[0] & 15) * 256 + u16::from(tag[1]),
            None => 0,
        };
        if self.config.switching == Switching::Bridge && self.config.ageing > Nanos::ZERO {
            self.learn(now, arrival, vlan, source);
        }
        let is_reserved = destination[..5] == [1, 0x80, 0xc2, 0, 0] && destination[5] < 16;
        if destination == BROADCAST {
            return self.flood(now, arrival, Flooded::Broadcast);
        }
        if is_reserved && self.config.reserved == Reserved::Drop {
            return Forwarding::None(NotForwarded::Reserved);
        }
        if destination[0] % 2 == 1 {
            return self.flood(now, arrival, Flooded::Multicast);
        }
        let mut known = self.known.iter();
        let found = known.find(|known| known.0 == vlan && known.1 == destination);
        match found.filter(|known| self.is_fresh(known.3, now)) {
            Some(known) if known.2 == arrival => Forwarding::None(NotForwarded::Reflection),
            Some(known) => Forwarding::One(PortIndex(known.2)),
            None if self.config.switching == Switching::Static => {
                Forwarding::None(NotForwarded::Unknown)
            }
            None => self.flood(now, arrival, Flooded::Unknown),
        }
    }

    fn flood(&mut self, now: u64, arrival: u16, kind: Flooded) -> Forwarding {
        if let Some(limit) = self.config.storm {
            // The rate, 1000/s, and whole milliseconds keep credits exact in `f64`.
            let (credit, since) = &mut self.credit[usize::from(arrival)];
            let earned = (now - *since) as f64 / 1e9 * limit.rate.packets_per_sec();
            *credit = (*credit + earned).min(limit.burst.0 as f64);
            *since = now;
            if *credit < 1.0 - 1e-9 {
                return Forwarding::None(NotForwarded::Storm);
            }
            *credit -= 1.0;
        }
        Forwarding::Flood(kind)
    }
}

fn random_frame(draw: &mut Stream, stations: u64) -> Vec<u8> {
    let source = match draw.up_to(40) {
        0 => [0; 6],
        1 => [3, 0, 0, 0, 0, 1],
        _ => station(draw.up_to(stations) as u32 + 1),
    };
    let destination = match draw.up_to(12) {
        0 => BROADCAST,
        1 => [1, 0, 0x5e, 0, 0, draw.up_to(3) as u8],
        2 => [1, 0x80, 0xc2, 0, 0, draw.up_to(20) as u8],
        3 => [0; 6],
        _ => station(draw.up_to(stations) as u32 + 1),
    };
    let vlan = [None, None, Some(0), Some(1), Some(0x2001)][draw.up_to(4) as usize];
    let mut frame = frame(destination, source, vlan);
    if draw.up_to(20) == 0 {
        frame.truncate(draw.up_to(20) as usize);
    }
    frame
}

fn random_config(draw: &mut Stream, small: bool) -> BridgeConfig {
    let mut config = BridgeConfig::new(1 + draw.up_to(5) as u16);
    config.seed = draw.next_u64();
    config.switching = match draw.up_to(4) {
        0 => Switching::Static,
        _ => Switching::Bridge,
    };
    if draw.up_to(1) == 0 {
        config.reserved = Reserved::Pass;
    }
    if draw.up_to(3) == 0 {
        config.storm = Some(StormLimit {
            rate: PacketRate::from_packets_per_sec(1_000).unwrap(),
            burst: Packets(1 + draw.up_to(4)),
        });
    }
    // Either the table is small and nothing ages, or the table is large: the time at which aged
    // stations are evicted is unspecified.
    if small {
        config.table_max = 4 + draw.up_to(8) as u32;
        config.ageing = Nanos::MAX;
    } else {
        config.ageing = match draw.up_to(4) {
            0 => Nanos::ZERO,
            _ => Nanos::from_millis(20 + draw.up_to(100)),
        };
    }
    for n in 0..draw.up_to(3) {
        config.statics.push(StaticEntry {
            vlan: n as u16,
            mac: station(n as u32 + 1),
            port: port(draw.up_to(config.ports as u64 - 1) as u16),
        });
    }
    config
}

#[test]
fn bridges_agree_with_a_linear_search() {
    let (mut one, mut flooded, mut none) = (0, 0, 0);
    let (mut static_elsewhere, mut unlearnt) = (0, 0);
    for seed in 0..1_500u64 {
        let mut draw = Stream::of_seed(seed);
        let config = random_config(&mut draw, seed % 2 == 0);
        let mut bridge = Bridge::new(config.clone()).unwrap();
        let mut naive = Naive::new(config.clone());
        let mut now = 0;
        for step in 0..200 {
            now += draw.up_to(3) * 1_000_000;
            let arrival = draw.up_to(config.ports as u64) as u16;
            let frame = random_frame(&mut draw, 14);
            let found = bridge.forward(Nanos::from_nanos(now), port(arrival), &frame);
            let expected = naive.forward(now, arrival, &frame);
            let context = format!("seed {seed}, step {step}, {config:?}: {frame:x?}");
            assert_eq!(found, expected, "{context}");
            match found {
                Forwarding::One(_) => one += 1,
                Forwarding::Flood(_) => flooded += 1,
                Forwarding::None(_) => none += 1,
            }
        }
        let counters = bridge.counters();
        let forwarded = counters.forwarded + counters.flooded.iter().sum::<u64>();
        assert_eq!(forwarded + counters.not_forwarded.iter().sum::<u64>(), 200);
        let found = [
            counters.moved,
            counters.learnt,
            counters.not_learnt,
            counters.static_elsewhere,
        ];
        let expected = [
            naive.moved,
            naive.learnt,
            naive.not_learnt,
            naive.static_elsewhere,
        ];
        assert_eq!(found, expected, "seed {seed}");
        static_elsewhere += naive.static_elsewhere;
        unlearnt += u64::from(config.ageing == Nanos::ZERO);
        // Both bridges know the same stations.
        for number in 1..=15 {
            for vlan in [None, Some(1)] {
                let frame = frame(station(number), station(20), vlan);
                let found = bridge.forward(Nanos::from_nanos(now), port(0), &frame);
                let expected = naive.forward(now, 0, &frame);
                assert_eq!(found, expected, "seed {seed}, {number}");
            }
        }
    }
    let least = one.min(flooded).min(none);
    assert!(least > 20_000, "{one} {flooded} {none}");
    assert!(
        static_elsewhere.min(unlearnt) > 100,
        "{static_elsewhere} {unlearnt}"
    );
}

/// With ageing and a table that is too small, the size limit holds, and frames are only sent to
/// ports where the station was recently seen.
#[test]
fn a_small_table_with_ageing_keeps_its_bounds() {
    for seed in 0..200u64 {
        let mut draw = Stream::of_seed(seed);
        let mut config = BridgeConfig::new(4);
        config.table_max = 1 + draw.up_to(30) as u32;
        config.ageing = Nanos::from_millis(50);
        config.seed = seed;
        let table_max = config.table_max as usize;
        let mut bridge = Bridge::new(config).unwrap();
        let mut heard: Vec<(usize, u16, u64)> = Vec::new();
        let mut now = 0u64;
        for _ in 0..2_000 {
            now += draw.up_to(2_000_000);
            let (from, to) = (draw.up_to(60) as usize, draw.up_to(60) as usize);
            let arrival = draw.up_to(3) as u16;
            let bytes = frame(station(to as u32 + 1), station(from as u32 + 1), None);
            heard.push((from, arrival, now));
            let found = bridge.forward(Nanos::from_nanos(now), port(arrival), &bytes);
            assert!(bridge.station_count() <= table_max);
            if let Forwarding::One(there) = found {
                let last = heard.iter().rfind(|(known, _, _)| *known == to).unwrap();
                assert!(now - last.2 <= 50_000_000 + 2 * TICK, "seed {seed}");
                assert_eq!(last.1, there.0, "seed {seed}: heard elsewhere");
            }
        }
        let counters = bridge.counters();
        let is_small = counters.learnt > table_max as u64;
        assert!(counters.aged > 0 && is_small, "{counters:?}");
    }
}
