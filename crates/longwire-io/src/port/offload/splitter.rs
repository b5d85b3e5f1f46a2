//! Super-packets that no port accepts: tunnelled ones, and those above 64 KiB (BIG TCP), whose
//! length exceeds the IP header's field.
//!
//! The kernel builds BIG TCP super-packets if a device's `gso_max_size` or `gro_max_size` exceeds
//! 65,536. Their IP length field is zero. For IPv6, the kernel also adds a hop-by-hop header with
//! the jumbo payload option (RFC 2675 §2), which segmentation removes.

use std::ops::Range;

use super::checksum::finish_checksum;
use super::headers::{Headers, PACKET_MAX, Transport, be16};
use super::join::finish_headers;
use super::segments::{cut, cut_piece};
use super::tunnel::{Tunnels, find_inner};
use super::{Offload, SegmentKind, Segments};

/// Cuts a super-packet into shorter super-packets or wire frames.
#[derive(Clone, Copy, Debug)]
pub struct Splitter {
    segments: Segments,
    headers: Headers,
    form: PieceForm,
    /// Index of the next segment, and total number of segments.
    next: usize,
    count: usize,
    /// Maximum number of segments per piece.
    at_once: usize,
}

/// Form of the pieces.
#[derive(Clone, Copy, Debug)]
enum PieceForm {
    /// Super-packets of the same kind.
    Same,
    /// UDP super-packets: each segment is the payload of a datagram in the outermost tunnel, with
    /// these headers.
    Datagrams(Tunnels, Headers),
    /// Wire frames.
    WireFrames(Tunnels),
}

impl Splitter {
    /// Returns a splitter for a super-packet too long for its IP header; `None` if it fits, or if
    /// the frame's headers contradict `segments`.
    pub fn of_oversized(frame: &[u8], segments: Segments) -> Option<Splitter> {
        let headers = Headers::parse(frame)?;
        if frame.len() - headers.ip.at <= PACKET_MAX {
            return None;
        }
        let space = PACKET_MAX - (headers.payload_at - headers.ip.at);
        let at_once = space / usize::from(segments.payload_len).max(1);
        Some(Splitter::new(
            frame,
            segments,
            headers,
            PieceForm::Same,
            at_once,
        ))
    }

    /// Returns a splitter for a tunnelled super-packet; `None` if the frame's headers contradict
    /// `segments`.
    ///
    /// A virtio-net header cannot describe tunnelled super-packets. If the outermost tunnel is UDP,
    /// its datagrams form a super-packet that the kernel can segment, unless they have no checksum,
    /// because segmentation would add one.
    pub fn of_tunnelled(frame: &[u8], segments: Segments) -> Option<Splitter> {
        let (headers, tunnels) = find_inner(frame, |headers| segments.fit(headers))?;
        let outermost = Headers::parse(frame).filter(|outermost| {
            outermost.transport == Transport::Udp && be16(frame, outermost.checksum_at()) != Some(0)
        });
        let Some(outermost) = outermost else {
            let form = PieceForm::WireFrames(tunnels);
            return Some(Splitter::new(frame, segments, headers, form, 1));
        };
        let space = PACKET_MAX - (outermost.payload_at - outermost.ip.at);
        let each = usize::from(segments.header_len) - outermost.payload_at
            + usize::from(segments.payload_len);
        let form = PieceForm::Datagrams(tunnels, outermost);
        Some(Splitter::new(frame, segments, headers, form, space / each))
    }

    fn new(
        frame: &[u8],
        segments: Segments,
        headers: Headers,
        form: PieceForm,
        at_once: usize,
    ) -> Splitter {
        Splitter {
            segments,
            headers,
            form,
            next: 0,
            count: segments.wire_frames(frame.len()).len(),
            at_once: at_once.max(1),
        }
    }

    /// Replaces the contents of `out` with the next piece (the last may be a wire frame) and
    /// returns its offload; `None` after the last piece.
    pub fn next(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<Offload> {
        let range = self.next..(self.next + self.at_once).min(self.count);
        let offload = match &self.form {
            PieceForm::Same => cut(frame, self.segments, range.clone(), out)?,
            PieceForm::WireFrames(tunnels) => {
                self.wire_frame(frame, tunnels, range.start, out)?;
                Offload::NONE
            }
            PieceForm::Datagrams(tunnels, outermost) => {
                self.datagrams(frame, (tunnels, outermost), range.clone(), out)?
            }
        };
        self.next = range.end;
        Some(offload)
    }

    /// Returns whether all pieces have been returned.
    pub fn is_done(&self) -> bool {
        self.next == self.count
    }

    /// Replaces the contents of `out` with a complete wire frame.
    fn wire_frame(
        &self,
        frame: &[u8],
        tunnels: &Tunnels,
        number: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let around = (&self.headers, Some(tunnels));
        let left = cut_piece(frame, self.segments, around, number..number + 1, out)?;
        if let Some(checksum) = left.checksum {
            finish_checksum(out, checksum);
        }
        Some(())
    }

    /// Replaces the contents of `out` with the datagrams for several segments.
    fn datagrams(
        &self,
        frame: &[u8],
        (tunnels, outermost): (&Tunnels, &Headers),
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Option<Offload> {
        self.wire_frame(frame, tunnels, range.start, out)?;
        if range.len() == 1 {
            return Some(Offload::NONE);
        }
        let payload_len = out.len() - outermost.payload_at;
        let mut next = Vec::with_capacity(out.len());
        for number in range.start + 1..range.end {
            self.wire_frame(frame, tunnels, number, &mut next)?;
            out.extend_from_slice(&next[outermost.payload_at..]);
        }
        let segments = Segments {
            kind: SegmentKind::Udp,
            header_len: outermost.payload_at as u16,
            payload_len: payload_len as u16,
            cwr_once: false,
        };
        Some(Offload {
            checksum: finish_headers(out, outermost, 0),
            segments: Some(segments),
        })
    }
}
