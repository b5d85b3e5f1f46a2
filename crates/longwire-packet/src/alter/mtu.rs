//! Segments, fragments, truncates or drops frames that exceed the MTU.

use super::Alterations;

use super::fill::{self, PADDING_CHUNK};
use super::layers::{self, DEPTH_MAX};
use super::options::MtuAction;
use super::tunnel;
use crate::bytes::{array_mut, put_word};
use crate::edit;
use crate::fragment::fragment_packet;
use crate::frame::mac_header_len;
use crate::header::protocol::{SCTP, UDP};
use crate::header::{IpHeader, IpVersion, Piece};

impl Alterations {
    /// Splits or truncates a frame of `wire_len` bytes, whose payload exceeds the MTU.
    pub(super) fn shorten(&mut self, mtu: u32, wire_len: u32, take: &mut dyn FnMut(&[u8], u32)) {
        match self.options.mtu_action {
            MtuAction::Drop => self.counts.mtu_dropped += 1,
            MtuAction::Fragment => {
                let is_whole = self.frame.len() >= wire_len as usize;
                if self.cut(mtu, is_whole, take).is_none() {
                    self.counts.mtu_dropped += 1;
                }
            }
            MtuAction::Truncate => {
                let frame = &mut self.frame;
                let len = mac_header_len(frame) + mtu;
                if frame.len() > len as usize {
                    frame.resize(len as usize);
                }
                let found = layers::find(frame);
                found.fit_lengths(frame, len as usize);
                if let Some(ip) = found.ip() {
                    truncate(frame, &ip, len as usize, self.options.inner, 0);
                }
                self.counts.mtu_truncated += 1;
                take(frame, len);
            }
        }
    }

    /// Segments a TCP super-packet or a TCP packet that must not be fragmented; fragments other
    /// packets. Returns `None` if neither is possible.
    fn cut(&mut self, mtu: u32, is_whole: bool, take: &mut dyn FnMut(&[u8], u32)) -> Option<()> {
        const DONT_FRAGMENT: u8 = 0x40;
        let (frame, piece) = (&mut self.frame, &mut self.piece);
        let found = layers::find(frame);
        let ip = found.ip()?;
        let is_super_packet = edit::is_super_packet(frame, &ip);
        if is_super_packet && !is_whole {
            return None;
        }
        fill::complete_lengths(frame, &ip);
        let stays_whole =
            is_super_packet || ip.version == IpVersion::V6 || frame[ip.at + 6] & DONT_FRAGMENT != 0;
        let end = edit::packet_end(frame, &ip);
        if let Some(segmenter) = self.segmenter.filter(|_| stays_whole && end <= frame.len()) {
            let mut take = |piece: &[u8]| take(piece, piece.len() as u32);
            frame.resize(end);
            if segmenter(frame, mtu as usize, piece, &mut take) {
                self.counts.mtu_segmented += 1;
                return Some(());
            }
        }
        // Headers between Ethernet and IP, such as PPPoE, count as payload.
        let before = ip.at as u32 - mac_header_len(frame);
        let room = mtu.checked_sub(before)?;
        fragment_packet(frame, &ip, room, piece, |piece| {
            found.fit_lengths(piece, piece.len());
            take(piece, piece.len() as u32);
        })?;
        self.counts.fragmented += 1;
        Some(())
    }
}

/// Adjusts a packet's lengths and checksums to a frame that ends at `end`.
fn truncate(frame: &mut [u8], ip: &IpHeader, end: usize, inner: bool, depth: u32) {
    let is_super_packet = edit::is_super_packet(frame, ip);
    let (field, from) = edit::length_field(frame, ip);
    let end = if is_super_packet {
        end
    } else {
        edit::packet_end(frame, ip).min(end)
    };
    let len = end.saturating_sub(from).min(0xffff) as u16;
    put_word(frame, field, len);
    let Some(transport) = ip.transport(frame) else {
        _ = edit::repair_packet(frame, ip);
        return;
    };
    let is_whole = transport.piece == Piece::Whole;
    let there = end.saturating_sub(transport.at).min(0xffff) as u16;
    match transport.protocol {
        UDP if is_whole => {
            if let Some(stored) = array_mut(frame, transport.at + 4) {
                let said = u16::from_be_bytes(*stored);
                let is_missing = is_super_packet && said == 0;
                let len = if is_missing { there } else { said.min(there) };
                *stored = len.to_be_bytes();
            }
        }
        SCTP if is_whole => {
            if let Some(packet) = frame.get_mut(transport.at..end) {
                shorten_chunks(packet);
            }
        }
        _ => {}
    }
    if inner && depth < DEPTH_MAX {
        let packet_end = end.min(frame.len());
        let packet = &mut frame[..packet_end];
        if let Some(found) = tunnel::inside(packet, &transport) {
            found.fit_lengths(packet, end);
            if let Some(inside) = found.ip() {
                truncate(packet, &inside, end, inner, depth + 1);
            }
        }
    }
    // In a whole frame, all bytes covered by checksums are available.
    _ = edit::repair_packet(frame, ip);
}

/// Shortens the last chunk of a truncated SCTP packet: a data chunk becomes shorter (RFC 9260,
/// section 3.3.1), any other chunk becomes padding.
fn shorten_chunks(packet: &mut [u8]) {
    const HEADER: usize = 12;
    const CHUNK_HEADER: usize = 4;
    const DATA: u8 = 0;
    // A data chunk carries at least one byte.
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
            put_word(packet, at + 2, left as u16);
            return;
        }
        at += len.next_multiple_of(4);
    }
}
