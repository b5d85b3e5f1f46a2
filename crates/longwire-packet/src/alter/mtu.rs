//! Frames that are too long for a link: cut into fragments, cut off, or not
//! sent.

use alloc::vec::Vec;

use super::Counts;
use super::fill::PADDING_CHUNK;
use super::options::MtuAction;
use super::workspace::Workspace;
use crate::edit;
use crate::fragment::fragment;
use crate::frame::mac_header_len;
use crate::header::{IpHeader, IpVersion, Piece};

/// Protocols by number.
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Makes frames of a frame whose payload is longer than `mtu` bytes.
pub(super) fn shorten(
    frame: &mut Workspace,
    mtu: u32,
    action: MtuAction,
    piece: &mut Vec<u8>,
    counts: &mut Counts,
    take: &mut dyn FnMut(&[u8], u32),
) {
    match action {
        MtuAction::Drop => counts.mtu_dropped += 1,
        MtuAction::Fragment => {
            let cut = fragment(frame, mtu, piece, |piece| take(piece, piece.len() as u32));
            match cut {
                Some(()) => counts.fragmented += 1,
                None => counts.mtu_dropped += 1,
            }
        }
        MtuAction::Truncate => {
            let len = mac_header_len(frame) + mtu;
            if frame.len() > len as usize {
                frame.resize(len as usize);
            }
            if let Some(ip) = IpHeader::parse(frame) {
                shorten_packet(frame, &ip, mtu);
            }
            counts.mtu_truncated += 1;
            take(frame, len);
        }
    }
}

/// Makes a packet's lengths and checksums fit its shorter payload.
fn shorten_packet(frame: &mut [u8], ip: &IpHeader, mtu: u32) {
    let end = edit::packet_end(frame, ip).min(ip.at + mtu as usize);
    let (field, counted) = match ip.version {
        IpVersion::V4 => (ip.at + 2, ip.at),
        IpVersion::V6 => (ip.at + 4, ip.end(frame)),
    };
    let len = end.saturating_sub(counted).min(0xffff) as u16;
    frame[field..field + 2].copy_from_slice(&len.to_be_bytes());
    if let Some(transport) = ip.transport(frame)
        && transport.protocol == UDP
        && transport.piece == Piece::Whole
        && let Some(header) = frame
            .get_mut(transport.at..)
            .and_then(<[u8]>::first_chunk_mut::<8>)
    {
        let there = end.saturating_sub(transport.at).min(0xffff) as u16;
        let said = u16::from_be_bytes([header[4], header[5]]);
        header[4..6].copy_from_slice(&said.min(there).to_be_bytes());
    }
    if let Some(transport) = ip.transport(frame)
        && transport.protocol == SCTP
        && transport.piece == Piece::Whole
        && let Some(packet) = frame.get_mut(transport.at..end)
    {
        shorten_chunks(packet);
    }
    // Where the frame is whole, what its checksums cover is here.
    edit::repair_checksums(frame);
}

/// Makes the chunk of an SCTP packet that was cut fit what is left of it: data
/// is shorter (RFC 9260, section 3.3.1), anything else becomes padding.
fn shorten_chunks(packet: &mut [u8]) {
    const HEADER: usize = 12;
    const CHUNK_HEADER: usize = 4;
    const DATA: u8 = 0;
    // A data chunk has at least one byte of data.
    const DATA_MIN: usize = 17;
    let mut at = HEADER;
    while at + CHUNK_HEADER <= packet.len() {
        let len = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        if len < CHUNK_HEADER {
            return;
        }
        let left = packet.len() - at;
        if len > left {
            if packet[at] != DATA || left < DATA_MIN {
                packet[at] = PADDING_CHUNK;
                packet[at + 1] = 0;
            }
            packet[at + 2..at + 4].copy_from_slice(&(left as u16).to_be_bytes());
            return;
        }
        at += len.next_multiple_of(4);
    }
}
