//! Random arrivals.

use longwire_engine::{FrameMeta, Nanos};
use longwire_units::random::Stream;

/// An arriving frame.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Index among all frames.
    pub number: usize,
    /// Arrival in nanoseconds.
    pub arrival: u64,
    pub len: u32,
    pub dscp: u8,
    /// ECN field (RFC 3168).
    pub ecn: u8,
    pub flow: u8,
    pub kind: Kind,
    /// Type and priority of the outermost VLAN tag.
    pub tag: Option<(u16, u8)>,
}

impl Packet {
    /// Creates a 1,000-byte packet of flow 0, without ECN.
    pub fn plain(number: usize, arrival: u64) -> Packet {
        Packet {
            number,
            arrival,
            len: 1_000,
            dscp: 0,
            ecn: 0,
            flow: 0,
            kind: Kind::Ipv4,
            tag: None,
        }
    }
}

/// Ethertype of a service tag (IEEE 802.1ad).
const SERVICE_TAG: u16 = 0x88a8;

/// Contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ipv4,
    Ipv6,
    /// Not IP.
    Other,
}

impl Packet {
    pub fn meta(&self) -> FrameMeta {
        FrameMeta::new(Nanos::from_nanos(self.arrival), self.len)
    }

    /// Returns the frame's headers: a UDP datagram whose addresses and ports identify the flow.
    pub fn bytes(&self) -> Vec<u8> {
        let class = self.dscp << 2 | self.ecn;
        let mut bytes = vec![2, 0, 0, 0, 0, self.flow, 2, 0, 0, 0, 1, 1];
        if let Some((kind, pcp)) = self.tag {
            bytes.extend(kind.to_be_bytes());
            // VLAN 0: only a priority tag.
            bytes.extend([pcp << 5, 0]);
            if kind == SERVICE_TAG {
                // The inner tag's priority must be ignored.
                bytes.extend([0x81, 0x00, (7 - pcp) << 5, 9]);
            }
        }
        match self.kind {
            Kind::Ipv4 => {
                bytes.extend([0x08, 0x00, 0x45, class, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
                bytes.extend([10, 0, 0, self.flow, 10, 0, 1, 1]);
            }
            Kind::Ipv6 => {
                bytes.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4]);
                bytes.extend([0, 0, 0, 26, 17, 64]);
                bytes.extend([0xfd; 15]);
                bytes.push(self.flow);
                bytes.extend([0xfd; 16]);
            }
            Kind::Other => bytes.extend([0x08, 0x06]),
        }
        bytes.extend([0x10, self.flow, 0x20, 0x01, 0, 26, 0, 0]);
        bytes.resize(bytes.len().max(64), 0);
        bytes
    }

    /// Returns the tag's priority; 0 without a tag.
    pub fn pcp(&self) -> u8 {
        self.tag.map_or(0, |(_, pcp)| pcp)
    }

    /// Returns DSCP and ECN as parsed by the engine; 0 without IP.
    pub fn class(&self) -> (u8, u8) {
        match self.kind {
            Kind::Other => (0, 0),
            Kind::Ipv4 | Kind::Ipv6 => (self.dscp, self.ecn),
        }
    }
}

/// Seeded draws for tests, independent of the engine's draws.
pub struct Draws(Stream);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(Stream::of_seed(seed))
    }

    /// Draws uniformly from `least..=most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.up_to(most - least)
    }

    /// Draws log-uniformly from `least..=most`.
    pub fn scale(&mut self, least: u64, most: u64) -> u64 {
        let (low, high) = ((least as f64).ln(), (most as f64).ln());
        let drawn = (low + (high - low) * self.0.unit()).exp() as u64;
        drawn.clamp(least, most)
    }

    pub fn real(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.unit()
    }

    /// Returns `true` with probability 1/n.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.0.up_to(n - 1) == 0
    }

    pub fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.up_to(of.len() as u64 - 1) as usize]
    }
}

/// A link's rate and its arrivals.
#[derive(Debug)]
pub struct Pattern {
    pub rate: u64,
    pub packets: Vec<Packet>,
}

impl Pattern {
    /// Returns the time unit of a pattern: the serialisation time of 1000 bytes in nanoseconds.
    pub fn unit(&self) -> u64 {
        unit(self.rate)
    }
}

fn unit(rate: u64) -> u64 {
    (8_000_000_000_000 / rate).max(1)
}

/// Draws a pattern with phases of different load, bursts and pauses. All times scale with a frame's
/// serialisation time.
pub fn pattern(draws: &mut Draws, frames: usize) -> Pattern {
    let rate = draws.scale(100_000, 20_000_000_000);
    let unit = unit(rate);
    let mut packets: Vec<Packet> = Vec::with_capacity(frames);
    let mut now = draws.between(0, 3 * unit);
    while packets.len() < frames {
        let phase = Phase::draw(draws);
        let count = draws.scale(1, frames as u64);
        for _ in 0..count {
            if packets.len() == frames {
                break;
            }
            now += phase.gap(draws, unit);
            packets.push(phase.packet(draws, packets.len(), now));
        }
        if draws.once_in(3) {
            now += draws.scale(unit, unit.saturating_mul(3_000));
        }
    }
    // Drawn separately, so that patterns with and without tags are otherwise equal.
    let mut draws = Draws::new(rate ^ frames as u64);
    for packet in &mut packets {
        let kind = draws.choose(&[None, Some(0x8100), Some(0x8100), Some(SERVICE_TAG)]);
        packet.tag = kind.map(|kind| (kind, draws.between(0, 7) as u8));
    }
    Pattern { rate, packets }
}

/// Parameters of a constant-load phase.
struct Phase {
    load: f64,
    len: (u32, u32),
    burst: u64,
    flows: u8,
    ecn: &'static [u8],
    kinds: &'static [Kind],
}

impl Phase {
    fn draw(draws: &mut Draws) -> Phase {
        Phase {
            load: draws.choose(&[0.2, 0.9, 1.0, 1.1, 1.5, 3.0]),
            len: draws.choose(&[
                (1_000, 1_000),
                (64, 64),
                (60, 1_514),
                (1_514, 1_514),
                (1, 9_000),
            ]),
            burst: draws.choose(&[1, 1, 4, 40]),
            flows: draws.choose(&[1, 2, 5, 40]),
            ecn: draws.choose(&[&[0][..], &[2], &[1], &[3], &[0, 1, 2, 3]]),
            kinds: draws.choose(&[&[Kind::Ipv4][..], &[Kind::Ipv4, Kind::Ipv6, Kind::Other]]),
        }
    }

    fn gap(&self, draws: &mut Draws, unit: u64) -> u64 {
        if !draws.once_in(self.burst) {
            return 0;
        }
        let frame = f64::from(self.len.0 + self.len.1) / 2_000.0;
        let mean = unit as f64 * frame * self.burst as f64 / self.load;
        if draws.once_in(4) {
            // In lockstep with the link, to produce ties of all kinds.
            mean as u64
        } else {
            draws.real(0.0, 2.0 * mean) as u64
        }
    }

    fn packet(&self, draws: &mut Draws, number: usize, arrival: u64) -> Packet {
        let (least, most) = self.len;
        Packet {
            len: draws.between(u64::from(least), u64::from(most)) as u32,
            dscp: draws.choose(&[0, 0, 1, 8, 34, 46, 48, 63]),
            ecn: draws.choose(self.ecn),
            flow: draws.between(0, u64::from(self.flows) - 1) as u8,
            kind: draws.choose(self.kinds),
            ..Packet::plain(number, arrival)
        }
    }
}
