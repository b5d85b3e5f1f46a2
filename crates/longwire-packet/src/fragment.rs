//! Fragmentation of IPv4 packets (RFC 791, section 3.2).

use alloc::vec::Vec;

use crate::bytes::{put_word, word};
use crate::edit;
use crate::header::{IpHeader, IpVersion};

/// Flags in the fragment offset field.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Maximum length of a reassembled packet.
const PACKET_MAX: usize = 65_535;

/// Fragments a frame's IPv4 packet into frames with at most `mtu` (at least 68) bytes after the MAC
/// header, and passes each to `take`. Returns `None` if there is no complete IPv4 packet, or if it
/// must not be fragmented.
///
/// `piece` is scratch memory.
pub fn fragment(
    frame: &[u8],
    mtu: u32,
    piece: &mut Vec<u8>,
    mut take: impl FnMut(&[u8]),
) -> Option<()> {
    let ip = IpHeader::parse(frame)?;
    fragment_packet(frame, &ip, mtu, piece, |piece| take(piece))
}

/// Like [`fragment`], for a packet whose header is already parsed.
pub(crate) fn fragment_packet(
    frame: &[u8],
    ip: &IpHeader,
    mtu: u32,
    piece: &mut Vec<u8>,
    mut take: impl FnMut(&mut [u8]),
) -> Option<()> {
    if ip.version != IpVersion::V4 {
        return None;
    }
    let (start, end) = (ip.end(frame), edit::packet_end(frame, ip));
    let flags = word(frame, ip.at + 6)?;
    if flags & DONT_FRAGMENT != 0 || end > frame.len() || start > end {
        return None;
    }
    // A fragment that ends beyond the maximum packet length is invalid.
    if usize::from(flags & OFFSET) * 8 + (end - start) > PACKET_MAX {
        return None;
    }
    let header_len = start - ip.at;
    // Offsets are in units of eight bytes.
    let step = (mtu as usize).checked_sub(header_len)? / 8 * 8;
    if step == 0 {
        return None;
    }
    let mut at = start;
    let mut offset = flags & OFFSET;
    while at < end {
        let next = (at + step).min(end);
        let more = next < end || flags & MORE_FRAGMENTS != 0;
        piece.clear();
        piece.extend_from_slice(&frame[..ip.at]);
        let header = &frame[ip.at..start];
        if at == start {
            piece.extend_from_slice(header);
        } else {
            copy_header(header, piece);
        }
        let own_header = piece.len() - ip.at;
        piece.extend_from_slice(&frame[at..next]);
        let total = (own_header + next - at) as u16;
        let flags = offset | if more { MORE_FRAGMENTS } else { 0 };
        put_word(piece, ip.at + 2, total);
        put_word(piece, ip.at + 6, flags);
        edit::repair_ipv4_header(piece, ip.at);
        take(piece);
        offset += ((next - at) / 8) as u16;
        at = next;
    }
    Some(())
}

/// Flag of options that are copied to all fragments.
const COPIED: u8 = 0x80;

/// Writes a later fragment's header, with the options to be copied.
fn copy_header(header: &[u8], piece: &mut Vec<u8>) {
    const FIXED: usize = 20;
    let begin = piece.len();
    piece.extend_from_slice(&header[..FIXED]);
    let mut at = FIXED;
    while let Some(kind) = header.get(at) {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(header.get(at + 1).copied().unwrap_or(0)).max(2),
        };
        let option = &header[at..(at + len).min(header.len())];
        if kind & COPIED != 0 {
            piece.extend_from_slice(option);
        }
        at += len;
    }
    // Pads to whole words with end-of-options.
    while !(piece.len() - begin).is_multiple_of(4) {
        piece.push(0);
    }
    piece[begin] = 0x40 | ((piece.len() - begin) / 4) as u8;
}
