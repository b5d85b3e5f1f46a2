//! Rewrites addresses in control messages: ICMP, ICMPv6 with neighbour and listener discovery,
//! IGMP, Mobile IPv6, IPCP.

use super::options::Role;
use super::rewriting::Rewriting;
use super::unaltered::Unaltered;
use crate::bytes::{array, ones};
use crate::checksum::{Change, sum_words};
use crate::edit;
use crate::header::protocol::{ICMP, ICMP6, IGMP};
use crate::header::{IpHeader, IpVersion, Piece, Transport};

const REDIRECT4: u8 = 5;
/// ICMPv4 errors that quote a packet (RFC 792): unreachable, source quench, redirect, time
/// exceeded, parameter problem.
const ERRORS4: [u8; 5] = [3, 4, REDIRECT4, 11, 12];

/// Router advertisement (RFC 1256).
const ROUTERS4: u8 = 9;

/// Redirect (RFC 4861).
const REDIRECT6: u8 = 137;

/// Rewrites a message and returns the change to its contents.
pub(super) fn rewrite(
    rewriting: &mut Rewriting<'_>,
    frame: &mut [u8],
    ip: &IpHeader,
    transport: &Transport,
) -> Change {
    let mut change = Change::NONE;
    let at = transport.at;
    let end = edit::packet_end(frame, ip).min(frame.len());
    let anything =
        rewriting.addresses.anything || rewriting.macs.anything || !rewriting.ports.is_empty();
    let Some(kind) = frame[..end].get(at).copied().filter(|_| anything) else {
        return change;
    };
    let is_echo = matches!(
        (transport.protocol, kind),
        (ICMP, 0 | 8) | (ICMP6, 128 | 129)
    );
    if is_echo {
        return change;
    }
    let before = sum_words(&frame[at..end]);
    let message = &mut Message {
        rewriting,
        frame: &mut frame[..end],
        at,
        version: ip.version,
    };
    match transport.protocol {
        ICMP => message.icmp4(kind),
        IGMP => message.igmp(kind),
        ICMP6 => message.icmp6(kind),
        _ => message.mobility(),
    }
    if transport.piece == Piece::First {
        // The other fragments contain the remaining bytes of the message.
        message.unknown();
    }
    change.sums(before, sum_words(&frame[at..end]));
    change
}

/// Rewrites addresses in IPCP options: those of both ends and of name servers (RFC 1332, RFC 1877).
pub(super) fn ipcp(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize) {
    const CONFIGURATION: core::ops::RangeInclusive<u8> = 1..=4;
    let Some([code, _, len @ ..]) = array::<4>(frame, at) else {
        return rewriting.leave(Unaltered::Truncated);
    };
    if !rewriting.addresses.anything || !CONFIGURATION.contains(&code) {
        return;
    }
    let end = frame.len().min(at + usize::from(u16::from_be_bytes(len)));
    let mut message = Message {
        rewriting,
        frame: &mut frame[..end],
        at,
        version: IpVersion::V4,
    };
    let mut option = 4;
    while let Some(kind) = message.byte(option) {
        let len = usize::from(message.byte(option + 1).unwrap_or(0)).max(2);
        match kind {
            // Both ends; one address; name servers.
            1 => message.addresses(option + 2, option + len, Role::Source),
            3 | 129..=132 => message.address(option + 2, Role::Source),
            _ => {}
        }
        option += len;
    }
}

/// A message being rewritten. Offsets are relative to its start.
struct Message<'a, 'b> {
    rewriting: &'a mut Rewriting<'b>,
    /// The frame up to the end of the message.
    frame: &'a mut [u8],
    at: usize,
    version: IpVersion,
}

impl Message<'_, '_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.frame.get(self.at + at).copied()
    }

    fn word(&self, at: usize) -> usize {
        let bytes = [at, at + 1].map(|at| self.byte(at).unwrap_or(0));
        usize::from(u16::from_be_bytes(bytes))
    }

    /// Returns the message length.
    fn len(&self) -> usize {
        self.frame.len() - self.at
    }

    fn address(&mut self, at: usize, role: Role) {
        if self.rewriting.addresses.anything {
            let at = self.at + at;
            // The caller computes the change from sums before and after.
            _ = self.rewriting.address(self.frame, at, self.version, role);
        }
    }

    /// Rewrites consecutive addresses.
    fn addresses(&mut self, first: usize, end: usize, role: Role) {
        let end = end.min(self.len());
        for at in (first..end).step_by(self.version.address_len()) {
            self.address(at, role);
        }
    }

    /// Rewrites a prefix of `bits` bits, stored in `len` bytes, preserving the remaining bits.
    fn prefix(&mut self, at: usize, len: usize, bits: u8) {
        let at = self.at + at;
        let Some(field) = self.frame.get_mut(at..at + len.min(16)) else {
            return self.rewriting.leave(Unaltered::Truncated);
        };
        if !self.rewriting.addresses.anything {
            return;
        }
        let mut address = [0; 16];
        address[..field.len()].copy_from_slice(field);
        let before = u128::from_be_bytes(address);
        let mask = ones(bits);
        let round = self.rewriting.about.round;
        let addresses = &mut self.rewriting.addresses;
        let after = addresses.changed(IpVersion::V6, before & mask, Role::Destination, round);
        let after = after & mask | before & !mask;
        field.copy_from_slice(&after.to_be_bytes()[..field.len()]);
    }

    /// Records that the unknown contents may include addresses.
    fn unknown(&mut self) {
        if self.rewriting.addresses.anything {
            self.rewriting.leave(Unaltered::Unknown);
        }
    }

    fn quoted(&mut self, at: usize) {
        let at = self.at + at;
        self.rewriting.quoted(self.frame, at, self.version);
    }

    fn icmp4(&mut self, kind: u8) {
        match kind {
            REDIRECT4 => {
                self.address(4, Role::Destination);
                self.quoted(8);
            }
            _ if ERRORS4.contains(&kind) => self.quoted(8),
            ROUTERS4 => {
                let step = usize::from(self.byte(5).unwrap_or(0)).max(1) * 4;
                for at in (8..self.len()).step_by(step) {
                    self.address(at, Role::Destination);
                }
            }
            _ => {}
        }
    }

    /// Rewrites IGMPv1 to IGMPv3 messages (RFC 9776).
    fn igmp(&mut self, kind: u8) {
        match kind {
            0x11 => {
                self.address(4, Role::Destination);
                self.addresses(12, 12 + 4 * self.word(10), Role::Source);
            }
            0x12 | 0x16 | 0x17 => self.address(4, Role::Destination),
            0x22 => self.group_records(),
            // Multicast routing and traceroute.
            _ => self.unknown(),
        }
    }

    /// Rewrites the records in listener reports (RFC 9776, section 4.2; RFC 9777, section 5.2).
    fn group_records(&mut self) {
        let address_len = self.version.address_len();
        let mut at = 8;
        for _ in 0..self.word(6) {
            let Some(more) = self.byte(at + 1) else {
                return;
            };
            let sources = at + 4 + address_len;
            let end = sources + address_len * self.word(at + 2);
            self.address(at + 4, Role::Destination);
            self.addresses(sources, end, Role::Source);
            at = end + 4 * usize::from(more);
        }
    }

    fn icmp6(&mut self, kind: u8) {
        match kind {
            1..=4 => self.quoted(8),
            // Multicast listener discovery: query, report, done.
            130 => {
                self.address(8, Role::Destination);
                self.addresses(28, 28 + 16 * self.word(26), Role::Source);
            }
            131 | 132 => self.address(8, Role::Destination),
            143 => self.group_records(),
            // Router and neighbour solicitation and advertisement.
            133 => self.options(8),
            134 => self.options(16),
            135 | 136 => {
                self.address(8, Role::Destination);
                self.options(24);
            }
            REDIRECT6 => {
                self.addresses(8, 40, Role::Destination);
                self.options(40);
            }
            // Inverse neighbour discovery (RFC 3122); home agents and mobile prefixes (RFC
            // 6275).
            141 | 142 | 147 => self.options(8),
            145 => self.addresses(8, self.len(), Role::Destination),
            144 | 146 => {}
            _ => self.unknown(),
        }
    }

    /// Rewrites neighbour discovery options, starting at `at`.
    fn options(&mut self, mut at: usize) {
        while let Some(kind) = self.byte(at) {
            let len = usize::from(self.byte(at + 1).unwrap_or(0)) * 8;
            if len == 0 {
                break;
            }
            let end = at + len;
            match kind {
                // Source and target link-layer addresses.
                1 | 2 if len == 8 && self.rewriting.macs.anything => {
                    self.rewriting.macs.rename(self.frame, self.at + at + 2);
                }
                // Prefix; route (RFC 4191); NAT64 prefix (RFC 8781).
                3 => self.prefix(at + 16, 16, self.byte(at + 2).unwrap_or(0)),
                24 => self.prefix(at + 8, len - 8, self.byte(at + 2).unwrap_or(0)),
                38 => {
                    const PREFIX_LENGTHS: [u8; 8] = [96, 64, 56, 48, 40, 32, 96, 96];
                    let code = self.word(at + 2) & 7;
                    self.prefix(at + 4, 12, PREFIX_LENGTHS[code]);
                }
                // Redirected header.
                4 => self.quoted(at + 8),
                // Lists of addresses (RFC 3122); name servers (RFC 8106).
                9 | 10 | 25 => self.addresses(at + 8, end, Role::Destination),
                _ => {}
            }
            at = end;
        }
    }

    /// Rewrites Mobile IPv6 messages (RFC 6275, section 6.1).
    fn mobility(&mut self) {
        let mut option = match self.byte(2).unwrap_or(0) {
            0 => 8,
            // Test init; test; binding update and acknowledgement; binding error.
            1 | 2 => 16,
            3 | 4 => 24,
            5 | 6 => 12,
            7 => {
                self.address(8, Role::Source);
                24
            }
            _ => return self.unknown(),
        };
        while let Some(kind) = self.byte(option) {
            let len = usize::from(self.byte(option + 1).unwrap_or(0));
            match kind {
                0 => {
                    option += 1;
                    continue;
                }
                // Alternate care-of address; home network prefix (RFC 5213).
                3 => self.address(option + 2, Role::Source),
                22 => self.prefix(option + 4, 16, self.byte(option + 3).unwrap_or(0)),
                _ => {}
            }
            option += 2 + len;
        }
    }
}
