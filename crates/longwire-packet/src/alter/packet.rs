//! An IP packet's addresses and ports, and the checksums over them.

use super::Counts;
use super::addresses::Addresses;
use super::icmp;
use super::mac::Renamed;
use super::options::{PortMap, Role, TtlChange};
use crate::checksum::Change;
use crate::edit::{self, IpEdit};
use crate::header::stays_on_link;
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// Protocols by number.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The changes applied to a packet.
pub(super) struct Rewriting<'a> {
    pub addresses: &'a mut Addresses,
    pub ports: &'a [PortMap],
    pub macs: &'a Renamed<'a>,
    pub counts: &'a mut Counts,
    pub round: u64,
}

impl Rewriting<'_> {
    /// Rewrites a packet. `covered` is the previous change of bytes that the transport
    /// checksum covers.
    #[inline]
    pub fn rewrite(
        &mut self,
        frame: &mut [u8],
        ip: &IpHeader,
        transport: Option<&Transport>,
        mut covered: Change,
    ) {
        let mut pseudo = Change::NONE;
        if self.addresses.anything() {
            pseudo = match ip.version {
                IpVersion::V4 => self.addresses4(frame, ip.at),
                IpVersion::V6 => self.addresses6(frame, ip.at, transport),
            };
        }
        if ip.version == IpVersion::V4 && !pseudo.is_none() {
            update_word(frame, ip.at + 10, pseudo);
        }
        let Some(transport) = transport.filter(|transport| transport.piece != Piece::Later) else {
            return;
        };
        match transport.protocol {
            SCTP => return self.sctp(frame, ip, transport),
            ICMP | ICMP6 => covered.add(icmp::rewrite(self, frame, ip, transport)),
            _ if !self.ports.is_empty() => covered.add(self.ports(frame, transport)),
            _ => {}
        }
        if transport.protocol != ICMP {
            covered.add(pseudo);
        }
        if !covered.is_none() {
            update_transport(frame, transport, covered);
        }
    }

    #[inline]
    fn addresses4(&mut self, frame: &mut [u8], at: usize) -> Change {
        let mut change = Change::NONE;
        for (at, role) in [(at + 12, Role::Source), (at + 16, Role::Destination)] {
            change.add(self.address4(frame, at, role));
        }
        change
    }

    /// Rewrites an IPv4 address at a position, if it is present.
    #[inline]
    pub fn address4(&mut self, frame: &mut [u8], at: usize, role: Role) -> Change {
        let mut change = Change::NONE;
        if let Some(field) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
            let before = u32::from_be_bytes(*field);
            let after = self.addresses.v4(before, role, self.round);
            if after != before {
                change.double(before, after);
                *field = after.to_be_bytes();
            }
        }
        change
    }

    #[inline]
    fn addresses6(&mut self, frame: &mut [u8], at: usize, transport: Option<&Transport>) -> Change {
        let mut change = self.address6(frame, at + 8, Role::Source);
        let destination = self.address6(frame, at + 24, Role::Destination);
        // The checksum of a packet with further hops is for the last destination, which
        // the routing header holds.
        if !transport.is_some_and(|transport| transport.routed) {
            change.add(destination);
        }
        change
    }

    /// Rewrites an IPv6 address at a position, if it is present.
    #[inline]
    pub fn address6(&mut self, frame: &mut [u8], at: usize, role: Role) -> Change {
        let mut change = Change::NONE;
        if let Some(field) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<16>) {
            let before = u128::from_be_bytes(*field);
            let after = self.addresses.v6(before, role, self.round);
            if after != before {
                change.long(before, after);
                *field = after.to_be_bytes();
            }
        }
        change
    }

    /// Rewrites both ports.
    #[inline]
    fn ports(&self, frame: &mut [u8], transport: &Transport) -> Change {
        let mut change = Change::NONE;
        if ![TCP, UDP, DCCP, SCTP, UDP_LITE].contains(&transport.protocol) {
            return change;
        }
        for at in [transport.at, transport.at + 2] {
            let Some(field) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else {
                break;
            };
            let before = u16::from_be_bytes(*field);
            let after = mapped_port(self.ports, transport.protocol, before);
            if after != before {
                change.word(before, after);
                *field = after.to_be_bytes();
            }
        }
        change
    }

    /// SCTP's checksum covers every byte of the packet, and no address.
    fn sctp(&mut self, frame: &mut [u8], ip: &IpHeader, transport: &Transport) {
        if self.ports.is_empty() || self.ports(frame, transport).is_none() {
            return;
        }
        let end = edit::packet_end(frame, ip);
        let packet = frame.get_mut(transport.at..end);
        match packet.filter(|_| transport.piece == Piece::Whole) {
            Some(packet) => _ = edit::repair_sctp(packet),
            None => self.counts.checksums_unknown += 1,
        }
    }
}

#[inline]
fn mapped_port(maps: &[PortMap], protocol: u8, port: u16) -> u16 {
    let meant = |map: &&PortMap| {
        (map.from.0..=map.from.1).contains(&port)
            && map.protocol.is_none_or(|wanted| wanted == protocol)
    };
    maps.iter().find(meant).map_or(port, |map| match map.to {
        (first, last) if first == last => first,
        (first, _) => first + (port - map.from.0),
    })
}

/// Updates the checksum at a place, if it is there.
#[inline]
pub(super) fn update_word(frame: &mut [u8], at: usize, change: Change) {
    if let Some(field) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) {
        *field = change.update(u16::from_be_bytes(*field)).to_be_bytes();
    }
}

/// Updates a transport checksum, if it is present. That of a first fragment is right
/// afterwards if it was before: all changes are in it.
#[inline]
fn update_transport(frame: &mut [u8], transport: &Transport, change: Change) {
    let at = transport.at
        + match transport.protocol {
            TCP => 16,
            UDP | DCCP | UDP_LITE => 6,
            ICMP | ICMP6 => 2,
            _ => return,
        };
    let Some(field) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else {
        return;
    };
    let before = u16::from_be_bytes(*field);
    let is_udp = matches!(transport.protocol, UDP | UDP_LITE);
    if before == 0 && transport.protocol == UDP {
        // The sender did without (RFC 768, RFC 6935).
        return;
    }
    let after = match change.update(before) {
        0 if is_udp => 0xffff,
        after => after,
    };
    *field = after.to_be_bytes();
}

/// Writes code point and time to live.
#[inline]
pub(super) fn set_class(frame: &mut [u8], ip: &IpHeader, dscp: Option<u8>, ttl: Option<TtlChange>) {
    if dscp.is_none() && ttl.is_none() {
        return;
    }
    let changed_ttl = match ttl {
        Some(change) if !stays_on_link(frame, ip) => match change {
            TtlChange::Set(ttl) => ttl,
            TtlChange::Raise(by) => ip.ttl.saturating_add(by),
            TtlChange::Lower(by) => ip.ttl.saturating_sub(by).max(1),
        },
        _ => ip.ttl,
    };
    let wanted = IpEdit {
        dscp: dscp.unwrap_or(ip.dscp),
        ecn: ip.ecn,
        ttl: changed_ttl,
    };
    edit::set_ip(frame, ip, wanted);
}
