//! Addresses in ICMP and ICMPv6: quoted packets of errors, redirects, neighbour
//! discovery.

use super::mac::Mac;
use super::options::Role;
use super::packet::Rewriting;
use crate::checksum::{Change, sum_words};
use crate::edit;
use crate::header::{IpHeader, IpVersion, Transport};

/// Position of the quoted packet, after an error's first eight bytes.
const QUOTED_AT: usize = 8;

/// Maximum number of rewritten bytes after an ICMP header's first four: a quoted
/// packet's headers, or the contents of neighbour discovery.
const REGION_MAX: usize = 256;

/// IPv4's redirect (RFC 792) and errors that quote a packet: unreachable,
/// source quench, redirect, time exceeded, parameter problem.
const REDIRECT4: u8 = 5;
const ERRORS4: [u8; 5] = [3, 4, REDIRECT4, 11, 12];

/// IPv6's errors (RFC 4443): unreachable, too big, time exceeded, problem.
const ERRORS6: core::ops::RangeInclusive<u8> = 1..=4;

/// Neighbour discovery (RFC 4861).
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT6: u8 = 137;

/// Rewrites the contents of an ICMP packet, and returns their change.
pub(super) fn rewrite(
    rewriting: &mut Rewriting<'_>,
    frame: &mut [u8],
    ip: &IpHeader,
    transport: &Transport,
) -> Change {
    let (at, version) = (transport.at, ip.version);
    let mut change = Change::NONE;
    let Some(kind) = frame.get(at).copied() else {
        return change;
    };
    let tells = match version {
        IpVersion::V4 => ERRORS4.contains(&kind),
        IpVersion::V6 => {
            ERRORS6.contains(&kind) || (ROUTER_SOLICITATION..=REDIRECT6).contains(&kind)
        }
    };
    let anything =
        rewriting.addresses.anything() || rewriting.macs.anything() || !rewriting.ports.is_empty();
    let end = edit::packet_end(frame, ip).min(frame.len());
    let region = at + 4..end.min(at + 4 + REGION_MAX);
    if !tells || !anything || region.is_empty() {
        return change;
    }
    let frame = &mut frame[..region.end];
    let before = sum_words(&frame[region.clone()]);
    match version {
        IpVersion::V4 => {
            if kind == REDIRECT4 {
                rewriting.address4(frame, at + 4, Role::Destination);
            }
            quoted(rewriting, frame, at + QUOTED_AT, version);
        }
        IpVersion::V6 if ERRORS6.contains(&kind) => {
            quoted(rewriting, frame, at + QUOTED_AT, version);
        }
        IpVersion::V6 => discovery(rewriting, frame, at, kind),
    }
    change.sums(before, sum_words(&frame[region]));
    change
}

/// Rewrites the headers of a packet that an error quotes, like those of the packet
/// itself: its addresses have the same roles.
fn quoted(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize, version: IpVersion) {
    let Some(ip) = IpHeader::parse_at(frame, at, version) else {
        return;
    };
    let transport = ip.transport(frame);
    // Errors are never about errors; the contents of a quoted packet that claims to be
    // one stay as they are. So does SCTP, whose checksum covers bytes that are not
    // quoted.
    let plain = |transport: &&Transport| ![1, 58, 132].contains(&transport.protocol);
    let transport = transport.as_ref().filter(plain);
    rewriting.rewrite(frame, &ip, transport, Change::NONE);
}

/// Rewrites neighbour discovery's targets, and the Ethernet addresses in its
/// options. Announced prefixes stay.
fn discovery(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize, kind: u8) {
    let targets: &[usize] = match kind {
        NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT => &[8],
        REDIRECT6 => &[8, 24],
        _ => &[],
    };
    if rewriting.addresses.anything() {
        for target in targets {
            rewriting.address6(frame, at + target, Role::Destination);
        }
    }
    let mut option = at
        + match kind {
            ROUTER_SOLICITATION => 8,
            ROUTER_ADVERTISEMENT => 16,
            REDIRECT6 => 40,
            _ => 24,
        };
    if !rewriting.macs.anything() {
        return;
    }
    while let Some([kind, len, rest @ ..]) = frame.get_mut(option..) {
        let (kind, len) = (*kind, usize::from(*len) * 8);
        // Source and target link-layer address.
        if let (1 | 2, Some(mac)) = (kind, rest.first_chunk_mut::<6>())
            && len == 8
        {
            let name: Mac = rewriting.macs.name(*mac);
            *mac = name;
        }
        if len == 0 {
            break;
        }
        option += len;
    }
}
