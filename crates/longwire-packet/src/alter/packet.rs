//! Rewrites addresses and ports in IP packets, their checksums, and inner packets.

use super::announced;
use super::arp;
use super::extensions;
use super::layers::{Content, Found, LinkField};
use super::messages;
use super::options::{PortMap, Role, TtlChange};
use super::rewriting::Rewriting;
use super::tunnel;
use super::unaltered::Unaltered;
use crate::bytes::array_mut;
use crate::checksum::{Change, sum_words};
use crate::edit::{self, IpEdit};
use crate::header::protocol::{DCCP, GRE, ICMP, ICMP6, IGMP, MOBILITY, SCTP, TCP, UDP, UDP_LITE};
use crate::header::{IpHeader, IpVersion, Piece, Transport, WITH_PORTS, stays_on_link};

impl Rewriting<'_> {
    /// Rewrites the content of a frame or tunnel packet.
    pub fn content(&mut self, frame: &mut [u8], found: &Found) {
        if self.macs.anything {
            for field in found.fields() {
                if let LinkField::Addresses(at) = field {
                    self.macs.rename(frame, at);
                    self.macs.rename(frame, at + 6);
                }
            }
        }
        match found.content {
            Content::Ip(ip) => self.packet(frame, &ip, found.mac_at),
            Content::Arp(at) => arp::rewrite(self, frame, at),
            Content::Ipcp(at) => messages::ipcp(self, frame, at),
            Content::Other(reason) => self.leave(reason),
        }
    }

    /// Rewrites a packet that ends within `frame`; `mac_at` is the offset of its Ethernet header.
    #[inline]
    pub fn packet(&mut self, frame: &mut [u8], ip: &IpHeader, mac_at: Option<usize>) {
        let transport = ip.transport(frame);
        let mut renumbered = Change::NONE;
        if let (Some(renumber), Some(transport)) = (&mut self.renumber, &transport) {
            renumbered = renumber.rewrite(frame, ip, transport, self.about, self.counts);
        }
        self.headers(frame, ip, transport.as_ref(), mac_at, renumbered);
    }

    /// Rewrites a packet's headers and contents. `covered` is the change made so far to bytes
    /// covered by the transport checksum.
    #[inline]
    fn headers(
        &mut self,
        frame: &mut [u8],
        ip: &IpHeader,
        transport: Option<&Transport>,
        mac_at: Option<usize>,
        mut covered: Change,
    ) {
        let mut pseudo = Change::NONE;
        if self.addresses.anything {
            pseudo = self.ip_addresses(frame, ip, transport, mac_at);
        }
        let Some(transport) = transport else {
            // Truncated or too many extension headers.
            if self.looks_inside {
                self.leave(Unaltered::Truncated);
            }
            return;
        };
        if transport.piece == Piece::Later {
            return;
        }
        if self.looks_inside {
            covered.add(self.inside(frame, ip, transport));
        }
        match transport.protocol {
            SCTP => return self.sctp(frame, ip, transport),
            ICMP | ICMP6 | IGMP | MOBILITY => {
                covered.add(messages::rewrite(self, frame, ip, transport));
            }
            protocol => {
                if protocol == TCP && self.addresses.anything {
                    covered.add(announced::multipath_tcp(self, frame, transport.at));
                }
                if !self.ports.is_empty() {
                    covered.add(self.ports(frame, transport));
                }
            }
        }
        if ![ICMP, IGMP, GRE].contains(&transport.protocol) {
            covered.add(pseudo);
        }
        if !covered.is_none() {
            update_transport(frame, transport, covered);
        }
    }

    /// Rewrites a packet's addresses, and the Ethernet destination if it derives from an IP group.
    /// Returns the change to the pseudo-header.
    #[inline]
    fn ip_addresses(
        &mut self,
        frame: &mut [u8],
        ip: &IpHeader,
        transport: Option<&Transport>,
        mac_at: Option<usize>,
    ) -> Change {
        let (version, source_at, destination_at) =
            (ip.version, ip.source_at(), ip.destination_at());
        // Offset of the Ethernet destination if it derives from the IP group and so changes with
        // it.
        let is_own_group =
            |mac: &[u8]| mac[0] & 1 == 1 && group_mac(frame, ip).is_some_and(|own| own == mac);
        let group_at = mac_at.filter(|at| frame.get(*at..at + 6).is_some_and(is_own_group));
        let has_options = ip.has_options(frame);
        let options_before = match version {
            // Options may be unaligned, so their words are summed.
            IpVersion::V4 if has_options => frame.get(ip.at + 20..ip.end(frame)).map(sum_words),
            _ => None,
        };
        let source = self.address(frame, source_at, version, Role::Source);
        let destination = self.address(frame, destination_at, version, Role::Destination);
        let mut pseudo = source;
        pseudo.add(destination);
        let mut header = pseudo;
        if has_options {
            pseudo = extensions::rewrite(self, frame, ip, transport, [source, destination]);
        }
        if let Some(before) = options_before {
            header.sums(before, sum_words(&frame[ip.at + 20..ip.end(frame)]));
        }
        if version == IpVersion::V4 && !header.is_none() {
            update_word(frame, ip.at + 10, header);
        }
        if let (Some(at), Some(mac)) = (group_at, group_mac(frame, ip)) {
            frame[at..at + 6].copy_from_slice(&mac);
        }
        pseudo
    }

    /// Rewrites the inner packet of a tunnel packet, if requested. Returns the change to bytes
    /// covered by the tunnel's checksum.
    #[inline]
    fn inside(&mut self, frame: &mut [u8], ip: &IpHeader, transport: &Transport) -> Change {
        let mut change = Change::NONE;
        let end = edit::packet_end(frame, ip).min(frame.len());
        let packet = &mut frame[..end];
        let Some(found) = tunnel::inside(packet, transport) else {
            return change;
        };
        match found.content {
            Content::Other(reason) if !self.inner => self.leave(reason),
            _ if !self.inner => self.leave(Unaltered::Tunnel),
            _ => {
                let before = sum_words(&packet[transport.at..]);
                self.nested(packet, |rewriting, packet| {
                    rewriting.content(packet, &found)
                });
                change.sums(before, sum_words(&packet[transport.at..]));
            }
        }
        change
    }

    /// Rewrites a packet quoted in an ICMP error like a packet of the trace.
    pub fn quoted(&mut self, frame: &mut [u8], at: usize, version: IpVersion) {
        let Some(ip) = IpHeader::parse_at(frame, at, version) else {
            if at < frame.len() {
                self.leave(Unaltered::Truncated);
            }
            return;
        };
        self.nested(frame, |rewriting, frame| match ip.transport(frame) {
            // SCTP's checksum also covers bytes that are not quoted.
            Some(sctp) if sctp.protocol == SCTP => {
                _ = rewriting.ip_addresses(frame, &ip, Some(&sctp), None);
            }
            plain => rewriting.headers(frame, &ip, plain.as_ref(), None, Change::NONE),
        });
    }

    /// Rewrites source and destination port.
    #[inline]
    fn ports(&self, frame: &mut [u8], transport: &Transport) -> Change {
        let mut change = Change::NONE;
        if !WITH_PORTS.contains(&transport.protocol) {
            return change;
        }
        for at in [transport.at, transport.at + 2] {
            let Some(field) = array_mut(frame, at) else {
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

    /// Rewrites an SCTP packet, whose checksum covers the packet but not the IP addresses.
    fn sctp(&mut self, frame: &mut [u8], ip: &IpHeader, transport: &Transport) {
        let end = edit::packet_end(frame, ip);
        let mut changed = false;
        if self.addresses.anything {
            changed = announced::sctp(self, frame, transport.at, end);
        }
        if !self.ports.is_empty() {
            changed |= !self.ports(frame, transport).is_none();
        }
        if !changed {
            return;
        }
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

/// Updates a checksum field, if present.
#[inline]
pub(super) fn update_word(frame: &mut [u8], at: usize, change: Change) {
    if let Some(field) = array_mut(frame, at) {
        *field = change.update(u16::from_be_bytes(*field)).to_be_bytes();
    }
}

/// An Ethernet address derived from an IP group (RFC 1112, section 6.4; RFC 2464, section 7).
fn group_mac(frame: &[u8], ip: &IpHeader) -> Option<[u8; 6]> {
    let at = ip.destination_at();
    match (ip.version, frame.get(at..at + ip.version.address_len())?) {
        (IpVersion::V4, [first, b, c, d]) if first >> 4 == 0xe => {
            Some([1, 0, 0x5e, b & 0x7f, *c, *d])
        }
        (IpVersion::V6, [0xff, .., a, b, c, d]) => Some([0x33, 0x33, *a, *b, *c, *d]),
        _ => None,
    }
}

/// Updates a transport checksum, if present. In a first fragment, a valid checksum stays valid,
/// because all changes are within that fragment.
#[inline]
fn update_transport(frame: &mut [u8], transport: &Transport, change: Change) {
    let at = transport.at
        + match transport.protocol {
            TCP => 16,
            UDP | DCCP | UDP_LITE => 6,
            ICMP | ICMP6 | IGMP => 2,
            MOBILITY => 4,
            GRE if edit::gre_has_checksum(frame.get(transport.at..).unwrap_or(&[])) => 4,
            _ => return,
        };
    let Some(field) = array_mut(frame, at) else {
        return;
    };
    let before = u16::from_be_bytes(*field);
    let is_udp = matches!(transport.protocol, UDP | UDP_LITE);
    if before == 0 && transport.protocol == UDP {
        // The sender omitted the checksum (RFC 768, RFC 6935).
        return;
    }
    let after = match change.update(before) {
        0 if is_udp => 0xffff,
        after => after,
    };
    *field = after.to_be_bytes();
}

/// Writes DSCP and TTL.
#[inline]
pub(super) fn set_class(frame: &mut [u8], ip: &IpHeader, dscp: Option<u8>, ttl: Option<TtlChange>) {
    if dscp.is_none() && ttl.is_none() {
        return;
    }
    let changed_ttl = match ttl.filter(|_| !stays_on_link(frame, ip)) {
        Some(TtlChange::Set(ttl)) => ttl,
        Some(TtlChange::Raise(by)) => ip.ttl.saturating_add(by),
        Some(TtlChange::Lower(by)) => ip.ttl.saturating_sub(by).max(1),
        None => ip.ttl,
    };
    let wanted = IpEdit {
        dscp: dscp.unwrap_or(ip.dscp),
        ecn: ip.ecn,
        ttl: changed_ttl,
    };
    edit::set_ip(frame, ip, wanted);
}
