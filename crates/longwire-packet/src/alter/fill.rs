//! Extends truncated frames to their original length, and fixes checksums.

use longwire_units::random::{Stream, absorb};

use super::Counts;
use super::options::{AlterOptions, Truncated};
use super::workspace::Workspace;
use crate::edit;
use crate::frame::{ETHERNET_HEADER_LEN, mac_header_len};
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// Protocols by number.
const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;

/// Protocols whose checksum can be fixed.
const KNOWN: [u8; 6] = [ICMP, IGMP, TCP, UDP, ICMP6, SCTP];

/// The bytes written in place of missing payload.
pub(super) enum Payload<'a> {
    Zeros,
    Random(Stream),
    Pattern(&'a [u8]),
}

impl Payload<'_> {
    /// For the frame of this number.
    pub fn new(options: &AlterOptions, number: u64) -> Payload<'_> {
        match &options.truncated {
            Truncated::Random => Payload::Random(Stream::of_seed(absorb(options.seed, number))),
            Truncated::Pattern(bytes) => Payload::Pattern(bytes),
            Truncated::Zeros | Truncated::Keep | Truncated::Skip => Payload::Zeros,
        }
    }

    fn write(self, bytes: &mut [u8]) {
        match self {
            Payload::Zeros => bytes.fill(0),
            Payload::Random(mut stream) => {
                for eight in bytes.chunks_mut(8) {
                    let random = stream.next_u64().to_le_bytes();
                    eight.copy_from_slice(&random[..eight.len()]);
                }
            }
            Payload::Pattern(pattern) => {
                for part in bytes.chunks_mut(pattern.len().max(1)) {
                    part.copy_from_slice(&pattern[..part.len()]);
                }
            }
        }
    }
}

/// Fixes the checksums of a whole frame.
pub(super) fn fix_checksums(frame: &mut [u8], counts: &mut Counts) {
    counts.checksums_fixed += u64::from(edit::repair_checksums(frame));
    let ip = IpHeader::parse(frame);
    let transport = ip.and_then(|ip| ip.transport(frame));
    if transport.is_some_and(|transport| !is_repaired(&transport)) {
        counts.checksums_unknown += 1;
    }
}

/// Whether repairing makes the packet's transport checksum right.
fn is_repaired(transport: &Transport) -> bool {
    let whole = transport.piece == Piece::Whole && !transport.routed;
    whole && KNOWN.contains(&transport.protocol)
}

/// Extends a frame to `len` bytes, and fixes its lengths and checksums.
///
/// Missing bytes of a header are zeros, except for values that a reader needs to accept
/// the frame; the rest is payload. After an IP packet's end there are zeros.
pub(super) fn fill(frame: &mut Workspace, len: usize, payload: Payload<'_>, counts: &mut Counts) {
    let captured = frame.len();
    frame.resize(len);
    counts.filled += 1;
    let header_len = mac_header_len(&frame[..captured]) as usize;
    let is_ip = captured >= ETHERNET_HEADER_LEN as usize
        && matches!(
            &frame[header_len - 2..header_len],
            [0x08, 0x00] | [0x86, 0xdd]
        );
    if !is_ip {
        let starts = captured.max(header_len).min(len);
        counts.cut_in_headers += u64::from(captured < header_len);
        return payload.write(&mut frame[starts..]);
    }
    let Some(ip) = IpHeader::parse(&frame[..captured]) else {
        counts.cut_in_headers += 1;
        return;
    };
    let end = set_packet_len(frame, &ip);
    // An IPv4 header's missing options are ends of options: the bytes after them are
    // known. IPv6's chain of headers ends where the capture does.
    let known = match ip.version {
        IpVersion::V4 => len,
        IpVersion::V6 => captured,
    };
    let Some(transport) = ip.transport(&frame[..known]) else {
        counts.cut_in_headers += 1;
        return;
    };
    let headers_end = complete_header(frame, captured, &transport, end).min(end);
    counts.cut_in_headers += u64::from(captured < headers_end);
    let starts = captured.max(headers_end);
    if starts < end {
        payload.write(&mut frame[starts..end]);
    }
    if transport.protocol == SCTP && transport.piece == Piece::Whole {
        complete_chunks(&mut frame[..end], captured, transport.at);
    }
    counts.checksums_unknown += u64::from(!is_repaired(&transport));
    edit::repair_checksums(frame);
}

/// Makes the packet's length fit the frame, unless it does: it may be shorter
/// than the frame. Returns the packet's end.
fn set_packet_len(frame: &mut [u8], ip: &IpHeader) -> usize {
    let (start, said) = (ip.end(frame), edit::packet_end(frame, ip));
    if (start..=frame.len()).contains(&said) && said > ip.at {
        return said;
    }
    let (field, counted) = match ip.version {
        IpVersion::V4 => (ip.at + 2, ip.at),
        IpVersion::V6 => (ip.at + 4, start),
    };
    let there = frame.len().saturating_sub(counted).min(0xffff);
    frame[field..field + 2].copy_from_slice(&(there as u16).to_be_bytes());
    (counted + there).min(frame.len())
}

/// Completes a transport header that may be cut, and returns its end.
fn complete_header(frame: &mut [u8], captured: usize, transport: &Transport, end: usize) -> usize {
    let at = transport.at;
    if transport.piece == Piece::Later {
        return at;
    }
    match transport.protocol {
        TCP => {
            const DATA_OFFSET: usize = 12;
            const PLAIN: u8 = 5;
            if let Some(offset) = frame.get_mut(at + DATA_OFFSET)
                && captured <= at + DATA_OFFSET
            {
                *offset = PLAIN << 4;
            }
            let words = frame.get(at + DATA_OFFSET).map_or(PLAIN, |byte| byte >> 4);
            at + usize::from(words.max(PLAIN)) * 4
        }
        UDP => {
            if let Some(header) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>) {
                let said = u16::from_be_bytes([header[4], header[5]]);
                let there = end.saturating_sub(at).min(0xffff) as u16;
                let fits = (8..=there).contains(&said) || transport.piece == Piece::First;
                if captured < at + 6 || !fits {
                    header[4..6].copy_from_slice(&there.to_be_bytes());
                }
                if captured < at + 8 {
                    // Zero would say that there is none.
                    header[6..8].fill(0xff);
                }
            }
            at + 8
        }
        ICMP | ICMP6 | IGMP => at + 8,
        SCTP => at + 12,
        _ => at,
    }
}

/// SCTP's padding chunk (RFC 4820): a receiver ignores it.
pub(super) const PADDING_CHUNK: u8 = 0x84;

/// Makes a padding chunk of what follows the last chunk whose header was
/// captured.
fn complete_chunks(packet: &mut [u8], captured: usize, at: usize) {
    const HEADER: usize = 12;
    const CHUNK_HEADER: usize = 4;
    // A trailer behind the packet may have been captured too.
    let known = captured.min(packet.len());
    let mut chunk = at + HEADER;
    while chunk + CHUNK_HEADER <= known {
        let len = usize::from(u16::from_be_bytes([packet[chunk + 2], packet[chunk + 3]]));
        if len < CHUNK_HEADER {
            return;
        }
        chunk += len.next_multiple_of(4);
    }
    let left = packet.len().saturating_sub(chunk);
    if left >= CHUNK_HEADER {
        let len = (left.min(0xffff) as u16).to_be_bytes();
        packet[chunk..chunk + CHUNK_HEADER].copy_from_slice(&[PADDING_CHUNK, 0, len[0], len[1]]);
    }
}
