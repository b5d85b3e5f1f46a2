//! Restores truncated frames to their original length, and repairs checksums.

use longwire_units::random::{Stream, absorb};

use super::Counts;
use super::layers::{self, Content, DEPTH_MAX};
use super::options::{AlterOptions, Truncated};
use super::tunnel;
use super::unaltered::Unaltered;
use super::workspace::Workspace;
use crate::bytes::{array_mut, put_word};
use crate::edit::{self, Repair};
use crate::header::protocol::{ICMP, ICMP6, IGMP, SCTP, TCP, UDP};
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// Writes the missing payload of frame `number`.
fn write_payload(bytes: &mut [u8], options: &AlterOptions, number: u64) {
    match &options.truncated {
        Truncated::Random => {
            let mut stream = Stream::of_seed(absorb(options.seed, number));
            for eight in bytes.chunks_mut(8) {
                let random = stream.next_u64().to_le_bytes();
                eight.copy_from_slice(&random[..eight.len()]);
            }
        }
        Truncated::Pattern(pattern) => {
            for part in bytes.chunks_mut(pattern.len().max(1)) {
                part.copy_from_slice(&pattern[..part.len()]);
            }
        }
        Truncated::Zeros | Truncated::Keep | Truncated::Skip => bytes.fill(0),
    }
}

/// Repairs a whole frame's checksums and, in a super-packet, zero lengths.
pub(super) fn fix_checksums(frame: &mut [u8], inner: bool, counts: &mut Counts) {
    if let Some(ip) = layers::packet_of(frame) {
        counts.lengths_fixed += u64::from(complete_lengths(frame, &ip));
        let repair = repair(frame, &ip, inner, 0);
        counts.checksums_fixed += u64::from(repair.wrong);
        counts.checksums_unknown += u64::from(repair.unknown);
    }
}

/// Repairs a packet's checksums; with `inner`, first those of the inner packet, which the tunnel's
/// checksum covers.
fn repair(frame: &mut [u8], ip: &IpHeader, inner: bool, depth: u32) -> Repair {
    let mut repaired = Repair::default();
    if inner && depth < DEPTH_MAX {
        let end = edit::packet_end(frame, ip).min(frame.len());
        let packet = &mut frame[..end];
        let transport = ip.transport(packet);
        let found = transport.and_then(|transport| tunnel::inside(packet, &transport));
        if let Some(inside) = found.and_then(|found| found.ip()) {
            repaired = repair(packet, &inside, inner, depth + 1);
        }
    }
    let own = edit::repair_packet(frame, ip);
    Repair {
        wrong: own.wrong || repaired.wrong,
        unknown: own.unknown || repaired.unknown,
    }
}

/// Writes a super-packet's missing lengths if they fit in their fields; returns whether it wrote
/// them. The packet must end with the frame.
pub(super) fn complete_lengths(frame: &mut [u8], ip: &IpHeader) -> bool {
    let (field, from) = edit::length_field(frame, ip);
    // With a jumbo payload option, the length stays zero (RFC 2675).
    let lacks = edit::is_super_packet(frame, ip) && ip.protocol != 0;
    let Ok(len) = u16::try_from(frame.len().saturating_sub(from)) else {
        return false;
    };
    if !lacks {
        return false;
    }
    put_word(frame, field, len);
    if let Some(transport) = ip.transport(frame)
        && (transport.protocol, transport.piece) == (UDP, Piece::Whole)
        && let Some(stored @ [0, 0]) = array_mut(frame, transport.at + 4)
    {
        *stored = (len - (transport.at - from) as u16).to_be_bytes();
    }
    true
}

/// Extends a frame to `len` bytes, and repairs its lengths and checksums.
///
/// Missing header bytes are zero unless parsers require other values; the remaining bytes are
/// payload. Bytes after the IP packet are zero.
pub(super) fn fill(
    frame: &mut Workspace,
    len: usize,
    options: &AlterOptions,
    number: u64,
    counts: &mut Counts,
) {
    let captured = frame.len();
    let content = layers::find(frame).content;
    frame.resize(len);
    counts.filled += 1;
    let ip = match content {
        Content::Ip(ip) => ip,
        Content::Other(Unaltered::Truncated) => {
            counts.cut_in_headers += 1;
            return;
        }
        _ => return write_payload(&mut frame[captured..], options, number),
    };
    let end = set_packet_len(frame, &ip);
    // Missing IPv4 options are zero, which ends the option list. IPv6 extension headers are parsed
    // only as far as captured.
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
        write_payload(&mut frame[starts..end], options, number);
    }
    if transport.protocol == SCTP && transport.piece == Piece::Whole {
        complete_chunks(&mut frame[..end], captured, transport.at);
    }
    let repair = repair(frame, &ip, options.inner, 0);
    counts.checksums_unknown += u64::from(repair.unknown);
}

/// Replaces a missing or invalid packet length, or one beyond the frame's end, with the available
/// length. Returns the packet's end.
fn set_packet_len(frame: &mut [u8], ip: &IpHeader) -> usize {
    let (start, said) = (ip.end(frame), edit::packet_end(frame, ip));
    let fits = (start..=frame.len()).contains(&said) && said > ip.at;
    if fits && !edit::is_super_packet(frame, ip) {
        return said;
    }
    let (field, from) = edit::length_field(frame, ip);
    let there = frame.len().saturating_sub(from);
    let mut set = |len: u16| {
        put_word(frame, field, len);
        edit::packet_end(frame, ip)
    };
    match u16::try_from(there) {
        Ok(len) => set(len),
        // Too long for the field: zero if the packet may be a super-packet, otherwise the maximum.
        Err(_) => match set(0) {
            end if end == from + there => end,
            _ => set(u16::MAX),
        },
    }
}

/// Completes a truncated transport header and returns its end.
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
            if let Some(header) = array_mut::<8>(frame, at) {
                let said = u16::from_be_bytes([header[4], header[5]]);
                let there = end.saturating_sub(at).min(0xffff) as u16;
                let fits = (8..=there).contains(&said) || transport.piece == Piece::First;
                if captured < at + 6 || !fits {
                    header[4..6].copy_from_slice(&there.to_be_bytes());
                }
                if captured < at + 8 {
                    // Zero would mean "no checksum".
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

/// SCTP padding chunk (RFC 4820), which receivers ignore.
pub(super) const PADDING_CHUNK: u8 = 0x84;

/// Turns everything after the last captured chunk header into a padding chunk.
fn complete_chunks(packet: &mut [u8], captured: usize, at: usize) {
    const HEADER: usize = 12;
    const CHUNK_HEADER: usize = 4;
    // Captured bytes may include a trailer after the packet.
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
