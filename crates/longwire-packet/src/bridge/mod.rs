//! A learning bridge: selects the egress ports of frames.
//!
//! [`Bridge::forward`] shows all steps in order. The bridge is pure: equal frames at equal times
//! yield equal results.

mod config;
mod loops;
mod outcome;
mod storm;
mod table;

use alloc::vec::Vec;

pub use config::{BridgeConfig, BridgeError, Reserved, StaticEntry, StormLimit, Switching};
pub use outcome::{BridgeCounters, Flooded, Forwarding, NotForwarded};

use loops::LoopWatch;
use storm::Storms;
use table::{Learnt, StationKey, Stations, station_key, tick};

use longwire_units::Nanos;

use crate::bytes::{array, word};
use crate::mac::MacAddress;

/// Index of a port in a bridge or run, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u16);

impl core::fmt::Display for PortIndex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A bridge (IEEE 802.1D, clause 7) that learns stations by VLAN and MAC address (independent VLAN
/// learning, 802.1Q). The outermost tag determines the VLAN. Tags are not modified, and every port
/// belongs to every VLAN.
///
/// When the table is full, aged stations are evicted. If there are none, new stations are not
/// learned and frames to them are flooded, so a sender with random addresses cannot evict active
/// stations.
#[derive(Clone, Debug)]
pub struct Bridge {
    ports: u16,
    partners: Option<Vec<Option<PortIndex>>>,
    learns: bool,
    floods_unknown: bool,
    passes_reserved: bool,
    stations: Stations,
    storms: Option<Storms>,
    loops: Option<LoopWatch>,
    counters: BridgeCounters,
}

/// Group bit of a MAC address.
const GROUP: u64 = 1 << 40;
const BROADCAST: u64 = 0xffff_ffff_ffff;

/// 01-80-C2-00-00-00 to 0F.
const RESERVED: u64 = 0x0180_c200_0000;

const VLAN_MAX: u16 = 4094;

impl Bridge {
    /// Creates a bridge.
    ///
    /// # Errors
    /// The invalid value and the valid ones.
    pub fn new(config: BridgeConfig) -> Result<Bridge, BridgeError> {
        config.check()?;
        let partners = config.partners()?;
        let is_bridge = config.switching == Switching::Bridge;
        // Pairs need no station table.
        let rows = partners.as_ref().map_or(config.table_max, |_| 1);
        let mut bridge = Bridge {
            ports: config.ports,
            learns: is_bridge && config.ageing > Nanos::ZERO,
            floods_unknown: is_bridge,
            passes_reserved: config.reserved == Reserved::Pass,
            stations: Stations::new(rows, config.ageing, config.seed),
            storms: config.storm.map(|limit| Storms::new(limit, config.ports)),
            loops: config.loop_detection.then(LoopWatch::new),
            counters: BridgeCounters::default(),
            partners,
        };
        // Static entries have no effect on pairs but are still checked.
        for entry in config.statics {
            bridge.check_static(&entry)?;
            let key = station_key(entry.vlan, MacAddress(entry.mac).to_u64());
            if bridge.partners.is_none() && !bridge.stations.give(key, entry.port.0) {
                return Err(BridgeError::TableFull(rows));
            }
        }
        Ok(bridge)
    }

    /// Returns the port's partner, if ports are paired.
    pub fn partner(&self, port: PortIndex) -> Option<PortIndex> {
        *self.partners.as_ref()?.get(usize::from(port.0))?
    }

    /// Counts frames passed to a partner without [`Bridge::forward`].
    pub fn count_paired(&mut self, frames: u64) {
        self.counters.forwarded += frames;
    }

    /// Decides where to send a frame that arrives at `port` at `now`. `frame` is the frame or at
    /// least its first 128 bytes.
    #[inline(always)]
    pub fn forward(&mut self, now: Nanos, port: PortIndex, frame: &[u8]) -> Forwarding {
        let forwarding = self.decide(now, port, frame);
        self.counters.note(forwarding);
        forwarding
    }

    /// Decides in this order: port, partner, headers, learning of the source, reserved addresses,
    /// groups, known destination, loops and storms.
    #[inline(always)]
    fn decide(&mut self, now: Nanos, port: PortIndex, frame: &[u8]) -> Forwarding {
        if port.0 >= self.ports {
            return Forwarding::None(NotForwarded::NoSuchPort);
        }
        if let Some(partners) = &self.partners {
            let partner = partners[usize::from(port.0)];
            return partner.map_or(Forwarding::None(NotForwarded::Unpaired), Forwarding::One);
        }
        self.decide_by_station(now, port, frame)
    }

    // Not inlined, so that the decision for paired ports is.
    #[inline(never)]
    fn decide_by_station(&mut self, now: Nanos, port: PortIndex, frame: &[u8]) -> Forwarding {
        let Some((destination, source, vlan)) = addresses(frame) else {
            return Forwarding::None(NotForwarded::Short);
        };
        if source & GROUP != 0 || source == 0 {
            return Forwarding::None(NotForwarded::Source);
        }
        let station = station_key(vlan, source);
        if self.learns {
            self.learn(now, port, station);
        }
        if destination & GROUP != 0 {
            let kind = match destination {
                BROADCAST => Flooded::Broadcast,
                group if group & !0xf == RESERVED && !self.passes_reserved => {
                    return Forwarding::None(NotForwarded::Reserved);
                }
                _ => Flooded::Multicast,
            };
            return self.flood(now, port, frame, kind);
        }
        match self.stations.get(station_key(vlan, destination), tick(now)) {
            Some(known) if known == port.0 => Forwarding::None(NotForwarded::Reflection),
            Some(known) => Forwarding::One(PortIndex(known)),
            None if self.floods_unknown => self.flood(now, port, frame, Flooded::Unknown),
            None => Forwarding::None(NotForwarded::Unknown),
        }
    }

    #[inline]
    fn learn(&mut self, now: Nanos, port: PortIndex, station: StationKey) {
        match self.stations.learn(station, port.0, tick(now)) {
            Learnt::Known => {}
            Learnt::New | Learnt::Again => self.counters.learnt += 1,
            Learnt::Full => self.counters.not_learnt += 1,
            Learnt::Static => self.counters.static_elsewhere += 1,
            Learnt::Moved => {
                self.counters.moved += 1;
                if let Some(loops) = &mut self.loops {
                    loops.note_move(now, station);
                }
            }
        }
    }

    fn flood(&mut self, now: Nanos, port: PortIndex, frame: &[u8], kind: Flooded) -> Forwarding {
        // Loop detection precedes the storm limit, which would drop the repeated frames.
        if let Some(loops) = &mut self.loops {
            loops.note_flooded(now, port.0, frame);
        }
        if let Some(storms) = &mut self.storms
            && !storms.allow(now, port.0)
        {
            return Forwarding::None(NotForwarded::Storm);
        }
        Forwarding::Flood(kind)
    }

    /// Returns the counters.
    pub fn counters(&self) -> BridgeCounters {
        BridgeCounters {
            aged: self.stations.aged,
            loop_signs: self.loops.as_ref().map_or(0, |loops| loops.signs),
            ..self.counters
        }
    }

    /// Returns the number of stations in the table, including aged ones.
    pub fn station_count(&self) -> usize {
        self.stations.len
    }

    fn check_static(&self, entry: &StaticEntry) -> Result<(), BridgeError> {
        let mac = MacAddress(entry.mac).to_u64();
        if entry.port.0 >= self.ports {
            return Err(BridgeError::no_port(entry.port, self.ports));
        }
        if mac == 0 || mac & GROUP != 0 {
            return Err(BridgeError::NoStation(entry.mac));
        }
        match entry.vlan {
            0..=VLAN_MAX => Ok(()),
            vlan => Err(BridgeError::NoSuchVlan(vlan)),
        }
    }
}

/// Returns a frame's destination, source and VLAN.
#[inline]
fn addresses(frame: &[u8]) -> Option<(u64, u64, u16)> {
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = array(frame, 0)?;
    let destination = MacAddress([d0, d1, d2, d3, d4, d5]).to_u64();
    let source = MacAddress([s0, s1, s2, s3, s4, s5]).to_u64();
    let vlan = match [t0, t1] {
        [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => word(frame, 14).unwrap_or(0) & 0x0fff,
        _ => 0,
    };
    Some((destination, source, vlan))
}
