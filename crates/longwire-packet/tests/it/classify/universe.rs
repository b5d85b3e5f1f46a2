//! Random matchers and frames from a few values, so that they match often.

use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Matcher, PortRange, Prefix, VlanMatch, WrittenFilter};
use longwire_units::random::Stream;

/// Seeded random draws.
pub struct Universe(Stream);

const NETS: [&str; 14] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.1.0/24",
    "10.0.1.2/31",
    "10.0.1.1",
    "10.0.1.2",
    "10.0.1.3",
    "::/0",
    "2001:db8::/32",
    "2001:db8:0:1::/64",
    "2001:db8:0:1::/127",
    "2001:db8:0:1::1",
    "2001:db8:0:1::2",
    "2001:db8::/63",
];

const FILTERS: [&str; 5] = [
    "udp",
    "len > 60",
    "ip[8] < 64, ip6",
    "port 2, 3",
    "not arp and len < 100",
];

impl Universe {
    pub fn new(seed: u64) -> Universe {
        Universe(Stream::of_seed(seed))
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0.up_to(count as u64 - 1) as usize
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Draws a value with probability 1/`times`.
    fn once_in<T>(&mut self, times: usize, draw: impl FnOnce(&mut Universe) -> T) -> Option<T> {
        (self.below(times) == 0).then(|| draw(self))
    }

    fn range(&mut self) -> PortRange {
        let (a, b) = (self.below(6) as u16, self.below(6) as u16);
        match self.below(3) {
            0 => PortRange::new(a.min(b), a.max(b)).unwrap(),
            1 if a == 0 => PortRange::ALL,
            _ => PortRange::one(a),
        }
    }

    fn mac(&mut self) -> [u8; 6] {
        [2, 0, 0, 0, 0, self.below(3) as u8]
    }

    fn filter(&mut self) -> Option<Box<WrittenFilter>> {
        let text = self.of(&FILTERS);
        WrittenFilter::parse(text).ok().map(Box::new)
    }

    /// Returns a satisfiable matcher, with filters only on request.
    pub fn matcher(&mut self) -> Matcher {
        loop {
            let net = |draw: &mut Universe| prefix(draw.of(&NETS));
            let matcher = Matcher {
                source: self.once_in(2, net),
                destination: self.once_in(2, net),
                source_ports: self.once_in(5, Universe::range),
                destination_ports: self.once_in(4, Universe::range),
                protocol: self.once_in(5, |draw| draw.of(&[1, 6, 17, 47, 58])),
                dscp: self.once_in(8, |draw| draw.of(&[0, 46])),
                vlan: self.once_in(8, |draw| match draw.below(3) {
                    0 => VlanMatch::Untagged,
                    id => VlanMatch::Id(id as u16),
                }),
                vlan_priority: self.once_in(12, |draw| draw.below(3) as u8),
                inner_vlan: self.once_in(12, |draw| draw.below(3) as u16),
                source_mac: self.once_in(12, Universe::mac),
                destination_mac: self.once_in(12, Universe::mac),
                ethertype: self.once_in(10, |draw| draw.of(&[0x0800, 0x86dd, 0x0806, 0x88cc])),
                arrival_port: self.once_in(12, |draw| PortIndex(draw.below(3) as u16)),
                filter: self.once_in(12, Universe::filter).flatten(),
            };
            if matcher.check().is_ok() {
                return matcher;
            }
        }
    }

    fn v4(&mut self, payload: &[u8], protocol: u8) -> Vec<u8> {
        let options = 4 * self.once_in(6, |draw| draw.below(3)).unwrap_or(0);
        let fragment: u16 = self.of(&[0, 0, 0, 0x2000, 0x0010, 0x4000]);
        let mut packet = vec![0x45 + options as u8 / 4, self.of(&[0, 46 << 2, 3])];
        packet.extend([0, 0, 0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([self.of(&[64, 1]), protocol, 0, 0]);
        for _ in 0..2 {
            packet.extend(self.of(&[[10, 0, 1, 1], [10, 0, 1, 2], [10, 0, 1, 3], [11, 0, 0, 1]]));
        }
        packet.resize(packet.len() + options, 1);
        packet.extend(payload);
        packet
    }

    fn v6(&mut self, payload: &[u8], protocol: u8) -> Vec<u8> {
        let count = [0, 0, 0, 1, 2, 3, 10][self.below(7)];
        let kinds: Vec<u8> = (0..count).map(|_| self.of(&[0, 60, 43, 51, 44])).collect();
        let class: u8 = self.of(&[0, 46 << 2, 3]);
        let first = kinds.first().copied().unwrap_or(protocol);
        let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0, 0, 0, first, 64];
        for _ in 0..2 {
            packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, self.below(3) as u8]);
            packet.extend([0, 0, 0, 0, 0, 0, 0, self.below(3) as u8]);
        }
        for (index, kind) in kinds.iter().enumerate() {
            let next = kinds.get(index + 1).copied().unwrap_or(protocol);
            // Length of a sixteen-byte authentication header: four words, minus two.
            match kind {
                51 => packet.extend([next, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                44 => packet.extend([next, 0, 0, self.of(&[0, 1, 8]), 0, 0, 0, 0]),
                _ => packet.extend([next, 0, 0, 0, 0, 0, 0, 0]),
            }
        }
        packet.extend(payload);
        packet
    }

    /// Returns a frame with its ingress port and wire length. It is often truncated, and sometimes
    /// consists of random bytes.
    pub fn frame(&mut self) -> (PortIndex, Vec<u8>, u32) {
        let port = PortIndex(self.below(3) as u16);
        if self.below(30) == 0 {
            let len = self.below(80);
            let noise = (0..len).map(|_| self.of(&[0, 6, 8, 17, 0x45, 0x81]));
            return (port, noise.collect(), len as u32);
        }
        let mut frame = [self.mac(), self.mac()].concat();
        for _ in 0..self.below(4).saturating_sub(1) {
            let tag: u16 = self.of(&[0x8100, 0x88a8, 0x9100]);
            frame.extend(tag.to_be_bytes());
            frame.extend([self.below(3) as u8 * 32, self.below(4) as u8]);
        }
        let protocol = self.of(&[1, 6, 17, 17, 47, 58, 132]);
        let payload = [0, self.below(6) as u8, 0, self.below(6) as u8, 0, 0, 0, 0];
        let (ethertype, packet): (u16, _) = match self.below(10) {
            0 => (0x0806, vec![0; 28]),
            1 => (0x88cc, vec![2; 30]),
            2..6 => (0x0800, self.v4(&payload, protocol)),
            _ => (0x86dd, self.v6(&payload, protocol)),
        };
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        let wire_len = frame.len() as u32;
        if self.below(5) == 0 {
            let kept = self.below(frame.len() + 1);
            frame.truncate(kept);
        }
        (port, frame, wire_len)
    }
}

/// Parses a prefix through a matcher.
fn prefix(text: &str) -> Prefix {
    let matcher: Matcher = format!("src={text}").parse().unwrap();
    matcher.source.unwrap()
}
