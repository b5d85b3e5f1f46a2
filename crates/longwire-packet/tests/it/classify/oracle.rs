//! Frame fields, parsed byte by byte, and conditions on them.

use std::net::IpAddr;

use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Matcher, PortRange, Prefix, VlanMatch};
use longwire_packet::filter::Filter;

/// The available fields of a frame.
#[derive(Debug, Default)]
pub struct Fields {
    pub macs: Option<([u8; 6], [u8; 6])>,
    pub tags: Vec<u16>,
    pub ethertype: Option<u16>,
    pub addresses: Option<(IpAddr, IpAddr)>,
    pub dscp: Option<u8>,
    pub protocol: Option<u8>,
    pub ports: Option<(u16, u16)>,
}

/// Consumes bytes from the front of a frame.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }
}

impl Fields {
    pub fn of(frame: &[u8]) -> Fields {
        let mut fields = Fields::default();
        // If the frame ends early, the fields read so far remain.
        let _ = fields.read(&mut Cursor(frame));
        fields
    }

    fn read(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        if cursor.0.len() < 14 {
            return None;
        }
        let destination = cursor.take::<6>()?;
        self.macs = Some((cursor.take::<6>()?, destination));
        let mut ethertype = u16::from_be_bytes(cursor.take()?);
        for _ in 0..4 {
            if ![0x8100, 0x88a8, 0x9100].contains(&ethertype) {
                break;
            }
            self.tags.push(u16::from_be_bytes(cursor.take()?));
            ethertype = u16::from_be_bytes(cursor.take()?);
        }
        self.ethertype = Some(ethertype);
        match ethertype {
            0x0800 => self.read_v4(cursor),
            0x86dd => self.read_v6(cursor),
            _ => None,
        }
    }

    fn read_v4(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let header: [u8; 20] = cursor.take()?;
        if header[0] >> 4 != 4 {
            return None;
        }
        let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&header[at..at + 4]).unwrap());
        self.addresses = Some((address(12), address(16)));
        self.dscp = Some(header[1] >> 2);
        self.protocol = Some(header[9]);
        let words = usize::from(header[0] & 15);
        cursor.skip(words.saturating_sub(5) * 4)?;
        let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        if offset == 0 {
            self.read_ports(cursor);
        }
        Some(())
    }

    fn read_v6(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let header: [u8; 40] = cursor.take()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let address = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&header[at..at + 16]).unwrap());
        self.addresses = Some((address(8), address(24)));
        let class = u16::from_be_bytes([header[0], header[1]]) >> 4;
        self.dscp = Some(class as u8 >> 2);
        let mut next = header[6];
        for _ in 0..9 {
            if ![0, 43, 44, 51, 60].contains(&next) {
                self.protocol = Some(next);
                self.read_ports(cursor);
                return Some(());
            }
            let start = cursor.0;
            let needed = if next == 44 || next == 43 { 4 } else { 2 };
            if start.len() < needed {
                return None;
            }
            let len = match next {
                44 => 8,
                51 => (usize::from(start[1]) + 2) * 4,
                _ => (usize::from(start[1]) + 1) * 8,
            };
            let later = next == 44 && u16::from_be_bytes([start[2], start[3]]) >> 3 != 0;
            next = start[0];
            if later {
                self.protocol = Some(next);
                return Some(());
            }
            cursor.skip(len)?;
        }
        None
    }

    fn read_ports(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        if ![6, 17, 33, 132, 136].contains(&self.protocol?) {
            return None;
        }
        let [a, b, c, d] = cursor.take()?;
        self.ports = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        Some(())
    }
}

pub fn in_prefix(prefix: Prefix, address: IpAddr) -> bool {
    let bits = |address: IpAddr| -> String {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        octets.iter().map(|octet| format!("{octet:08b}")).collect()
    };
    let first = &bits(prefix.address())[..prefix.bits().into()];
    prefix.address().is_ipv4() == address.is_ipv4() && bits(address).starts_with(first)
}

pub fn asks<T, V>(wanted: Option<T>, there: Option<V>, fits: impl FnOnce(T, V) -> bool) -> bool {
    wanted.is_none_or(|wanted| there.is_some_and(|there| fits(wanted, there)))
}

/// Whether a frame satisfies a matcher.
pub fn matches(matcher: &Matcher, port: PortIndex, frame: &[u8], wire_len: u32) -> bool {
    let fields = Fields::of(frame);
    let tag = |nth: usize| fields.tags.get(nth).copied();
    let within = |range: PortRange, port| range.low() <= port && port <= range.high();
    let (source, destination) = fields.addresses.unzip();
    let (source_port, destination_port) = fields.ports.unzip();
    let (source_mac, destination_mac) = fields.macs.unzip();
    asks(matcher.source, source, in_prefix)
        && asks(matcher.destination, destination, in_prefix)
        && asks(matcher.source_ports, source_port, within)
        && asks(matcher.destination_ports, destination_port, within)
        && asks(matcher.protocol, fields.protocol, |a, b| a == b)
        && asks(matcher.dscp, fields.dscp, |a, b| a == b)
        && match matcher.vlan {
            None => true,
            Some(VlanMatch::Untagged) => tag(0).is_none(),
            Some(VlanMatch::Id(id)) => tag(0).is_some_and(|tag| tag & 0xfff == id),
        }
        && asks(matcher.vlan_priority, tag(0), |a, b| {
            u16::from(a) == b >> 13
        })
        && asks(matcher.inner_vlan, tag(1), |a, b| a == b & 0xfff)
        && asks(matcher.source_mac, source_mac, |a, b| a == b)
        && asks(matcher.destination_mac, destination_mac, |a, b| a == b)
        && asks(matcher.ethertype, fields.ethertype, |a, b| a == b)
        && matcher.arrival_port.is_none_or(|wanted| wanted == port)
        && matcher.filter.as_ref().is_none_or(|written| {
            let filter = Filter::parse(written.text()).unwrap();
            filter.matches(frame, wire_len)
        })
}
