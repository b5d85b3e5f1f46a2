//! Super-packets above 64 KiB (BIG TCP), whose length no IP header can state.
//!
//! The kernel builds them where `gso_max_size` or `gro_max_size` of a device is above
//! 65,536. The length field of such an IPv4 packet is zero. An IPv6 packet has a length of
//! zero too, and, by the kernel, a hop-by-hop header with the jumbo payload option
//! (RFC 2675 §2), which is not meant for the wire: segmentation removes it.

use super::headers::{Headers, PACKET_MAX};
use super::{Offload, Segments, cut};

/// Bytes of an IPv6 header.
const IPV6: usize = 40;
/// Bytes of a hop-by-hop header with the jumbo payload option alone.
const JUMBO: usize = 8;
/// Position of the next header's number in an IPv6 header.
const NEXT_HEADER: usize = 6;
/// The number of a hop-by-hop header.
const HOP_BY_HOP: u8 = 0;
/// Type and length of the jumbo payload option.
const JUMBO_OPTION: [u8; 2] = [0xc2, 4];

/// Removes the hop-by-hop header that the kernel puts into a long IPv6 super-packet.
/// Returns the number of bytes by which the frame now begins later in `frame`: 0 if it has
/// no such header. What follows the header stays in its place.
pub fn strip_jumbo(frame: &mut [u8]) -> usize {
    let network_at = longwire_packet::frame::mac_header_len(frame) as usize;
    let Some(header) = frame.get(network_at..network_at + IPV6 + JUMBO) else {
        return 0;
    };
    let is_v6 = frame[network_at - 2..network_at] == [0x86, 0xdd] && header[0] >> 4 == 6;
    let without_len = header[4..6] == [0, 0] && header[NEXT_HEADER] == HOP_BY_HOP;
    let extension = &header[IPV6..];
    if !is_v6 || !without_len || extension[1] != 0 || extension[2..4] != JUMBO_OPTION {
        return 0;
    }
    frame[network_at + NEXT_HEADER] = extension[0];
    frame.copy_within(..network_at + IPV6, JUMBO);
    JUMBO
}

/// A super-packet above 64 KiB that is cut into shorter ones, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Oversized {
    segments: Segments,
    /// The next segment, and the number of all.
    next: usize,
    count: usize,
    /// Segments that an IP packet has space for.
    at_once: usize,
}

impl Oversized {
    /// Returns how to cut a super-packet; `None` if its length fits an IP header, or if
    /// its headers contradict `segments`.
    pub fn new(frame: &[u8], segments: Segments) -> Option<Oversized> {
        let headers = Headers::parse(frame)?;
        if frame.len() - headers.network_at <= PACKET_MAX {
            return None;
        }
        let space = PACKET_MAX - (headers.payload_at - headers.network_at);
        Some(Oversized {
            segments,
            next: 0,
            count: segments.wire_frames(frame.len()).len(),
            at_once: (space / usize::from(segments.payload_len).max(1)).max(1),
        })
    }

    /// Replaces the contents of `out` with the next shorter super-packet (the last one
    /// may be a wire frame); returns its unfinished work. `None` after the last.
    pub fn next(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<Offload> {
        let end = (self.next + self.at_once).min(self.count);
        let offload = cut(frame, self.segments, self.next..end, out)?;
        self.next = end;
        Some(offload)
    }

    /// Whether the last one was returned.
    pub fn is_done(&self) -> bool {
        self.next == self.count
    }
}
