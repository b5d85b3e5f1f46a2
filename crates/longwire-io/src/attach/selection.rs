//! The frames that an attachment takes.

use std::net::IpAddr;

use crate::bpf::instruction::{
    Instruction, and_number, move_number, packet_half, packet_word, skip_unless_word,
};
use crate::net::address::Prefix;

use super::program::skip_over;

/// The most prefixes of one attachment: the kernel's programs have a largest length.
pub const PREFIXES_MAX: usize = 64;

const ETHERTYPE: i32 = 12;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
/// Offsets of source and destination addresses in an untagged frame.
const IPV4_SOURCE: i32 = 26;
const IPV4_DESTINATION: i32 = 30;
const IPV6_SOURCE: i32 = 22;
const IPV6_DESTINATION: i32 = 38;

/// The frames to take: all, or packets to and from some prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Prefixes of the other hosts' addresses; none for all frames. Packets inside VLAN tags
    /// that the device does not remove, and frames of other protocols such as ARP, are not
    /// selected by any.
    pub to: Vec<Prefix>,
}

impl Selection {
    /// Returns instructions that set register 0 to 1 for a selected frame and to 0 for
    /// another. None if all frames are selected. Register 6 must be the context.
    pub(super) fn instructions(&self, sending: bool) -> Vec<Instruction> {
        if self.to.is_empty() {
            return Vec::new();
        }
        // From the end: each comparison that holds skips over all after it.
        let mut rest = vec![move_number(0, 0)];
        for prefix in self.to.iter().rev() {
            let mut part = comparison(prefix, sending);
            part.push(move_number(0, 1));
            part.push(skip_over(rest.len()));
            // A comparison that fails skips to the next prefix.
            let end = part.len();
            for (at, instruction) in part.iter_mut().enumerate() {
                if instruction.offset == TO_NEXT {
                    instruction.offset = i16::try_from(end - at - 1).unwrap_or(i16::MAX);
                }
            }
            part.append(&mut rest);
            rest = part;
        }
        rest
    }
}

/// Stands for the distance to the next prefix.
const TO_NEXT: i16 = i16::MIN;

/// Instructions that go on to the next prefix unless the frame's address is in this one.
fn comparison(prefix: &Prefix, sending: bool) -> Vec<Instruction> {
    let (ethertype, first, words) = match (prefix.address, sending) {
        (IpAddr::V4(address), true) => (IPV4, IPV4_DESTINATION, vec![address.to_bits()]),
        (IpAddr::V4(address), false) => (IPV4, IPV4_SOURCE, vec![address.to_bits()]),
        (IpAddr::V6(address), true) => (IPV6, IPV6_DESTINATION, words_of(address.to_bits())),
        (IpAddr::V6(address), false) => (IPV6, IPV6_SOURCE, words_of(address.to_bits())),
    };
    let mut part = vec![
        packet_half(ETHERTYPE),
        skip_unless_word(0, ethertype, TO_NEXT),
    ];
    let mut left = u32::from(prefix.length);
    for (word, offset) in words.into_iter().zip((first..).step_by(4)) {
        let bits = left.min(32);
        left -= bits;
        if bits == 0 {
            break;
        }
        let mask = u32::MAX << (32 - bits);
        part.push(packet_word(offset));
        part.push(and_number(0, mask.cast_signed()));
        part.push(skip_unless_word(0, word & mask, TO_NEXT));
    }
    part
}

/// The four words of an address of 128 bits, the first one first.
fn words_of(address: u128) -> Vec<u32> {
    [96, 64, 32, 0]
        .map(|shift| (address >> shift) as u32)
        .to_vec()
}
