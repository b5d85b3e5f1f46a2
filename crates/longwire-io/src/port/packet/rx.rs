//! Reception: the ring for wire-size frames, the socket's queue for longer ones.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use longwire_engine::Nanos;

use super::super::carrier::CarrierState;
use super::super::closing::SlowSocket;
use super::super::offload::{Splitter, strip_jumbo};
use super::super::settings::Settings;
use super::super::socket::{AliveChecks, failure, get_option, pending_error};
use super::super::{PortError, PortLosses, ReceiveResult, Received, RxFrame, RxPort, vnet};
use super::ring::{ReceiveRing, SlotHeader};
use super::stamp::StampScale;
use super::{OVERSIZED_MAX, SUPER_MAX};
use vnet::Decoded;

/// Length of the two MAC addresses before a VLAN tag.
const MACS: usize = 12;
/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// A super-packet with undelivered pieces.
struct Pieces {
    splitter: Splitter,
    /// The super-packet's bytes in [`PacketRx::long`].
    range: Range<usize>,
    arrival: Nanos,
}

/// The receiving half of `packet:IF`.
pub struct PacketRx {
    // Must be unmapped before the socket is closed.
    ring: ReceiveRing,
    socket: SlowSocket,
    port: String,
    scale: StampScale,
    /// Buffer for frames that exceed a slot: a virtio-net header and a frame. Most of it is never
    /// touched and takes no memory.
    long: Box<[u8]>,
    /// A super-packet in `long` that is being delivered in pieces. Boxed because it is large.
    pieces: Box<Option<Pieces>>,
    /// Buffer for the current piece.
    piece: Vec<u8>,
    losses: PortLosses,
    checks: AliveChecks,
    /// Carrier state, if the port takes its interface down itself.
    pub(in crate::port) carrier: Option<Arc<CarrierState>>,
    /// Restores the interface's settings when both halves are closed.
    _settings: Arc<Settings>,
}

impl PacketRx {
    pub(super) fn new(
        socket: SlowSocket,
        ring: ReceiveRing,
        port: String,
        settings: Arc<Settings>,
    ) -> PacketRx {
        PacketRx {
            ring,
            socket,
            port,
            scale: StampScale::new(),
            long: vec![0; vnet::LEN + OVERSIZED_MAX].into(),
            pieces: Box::new(None),
            piece: Vec::new(),
            losses: PortLosses::default(),
            checks: AliveChecks::default(),
            carrier: None,
            _settings: settings,
        }
    }

    /// Returns the number of detected steps of the wall clock, the source of kernel stamps. Steps
    /// do not affect arrivals.
    pub fn clock_steps(&self) -> u64 {
        self.scale.steps()
    }

    /// Delivers the frame in the peeked slot and returns whether it was delivered. Keeps a
    /// super-packet that no other port accepts, for delivery in pieces.
    #[inline]
    fn hand_in(
        &mut self,
        slot: &SlotHeader,
        arrival: Nanos,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> bool {
        if slot.status & libc::TP_STATUS_COPY != 0 {
            return self.hand_in_long(slot, arrival, take);
        }
        if slot.held < slot.len {
            // The frame was too long for the slot, and the socket's queue was full.
            self.losses.too_long += 1;
            return false;
        }
        let contents = self.ring.contents(slot);
        match restore(contents, slot.vlan_tag()) {
            Some((range, Decoded::Plain(offload))) => {
                take(RxFrame::with_offload(&contents[range], arrival, offload));
                true
            }
            Some((range, Decoded::Tunnelled(segments))) => {
                let frame = &contents[range];
                let splitter = Splitter::of_tunnelled(frame, segments);
                self.long[..frame.len()].copy_from_slice(frame);
                let range = 0..frame.len();
                self.keep(splitter, range, arrival)
            }
            None => {
                self.losses.unusable += 1;
                false
            }
        }
    }

    /// Keeps a super-packet in `long` for delivery in pieces. Returns `false`.
    fn keep(&mut self, splitter: Option<Splitter>, range: Range<usize>, arrival: Nanos) -> bool {
        match splitter {
            Some(splitter) => {
                *self.pieces = Some(Pieces {
                    splitter,
                    range,
                    arrival,
                });
            }
            None => self.losses.unusable += 1,
        }
        false
    }

    /// Like [`PacketRx::hand_in`], for a frame in the socket's queue.
    fn hand_in_long(
        &mut self,
        slot: &SlotHeader,
        arrival: Nanos,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> bool {
        let Ok(contents) = receive_long(self.socket.as_fd(), &mut self.long) else {
            self.losses.too_long += 1;
            return false;
        };
        let Some((range, decoded)) = restore(contents, slot.vlan_tag()) else {
            self.losses.unusable += 1;
            return false;
        };
        let bytes = &contents[range.clone()];
        match decoded {
            Decoded::Tunnelled(segments) => {
                let splitter = Splitter::of_tunnelled(bytes, segments);
                self.keep(splitter, range, arrival)
            }
            Decoded::Plain(offload) => {
                let segments = offload.segments;
                match segments.and_then(|one| Splitter::of_oversized(bytes, one)) {
                    Some(splitter) => self.keep(Some(splitter), range, arrival),
                    None => {
                        take(RxFrame::with_offload(bytes, arrival, offload));
                        true
                    }
                }
            }
        }
    }

    /// Delivers up to `max` pieces of a super-packet and returns their number.
    fn hand_in_pieces(&mut self, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> usize {
        let Some(pieces) = self.pieces.as_mut() else {
            return 0;
        };
        let bytes = &self.long[pieces.range.clone()];
        let mut frames = 0;
        while frames < max
            && let Some(offload) = pieces.splitter.next(bytes, &mut self.piece)
        {
            take(RxFrame::with_offload(&self.piece, pieces.arrival, offload));
            frames += 1;
        }
        if pieces.splitter.is_done() {
            *self.pieces = None;
        } else if frames < max {
            // The super-packet's headers are inconsistent.
            self.losses.unusable += 1;
            *self.pieces = None;
        }
        frames
    }

    /// Checks that the interface still exists, if a check is due. Called when the ring is empty.
    #[inline]
    fn check_alive(&mut self, now: Nanos) -> Result<(), PortError> {
        self.scale.drained();
        if !self.checks.are_due(now) {
            return Ok(());
        }
        let socket = self.socket.as_fd();
        let mut error = pending_error(socket).unwrap_or_else(Some);
        if let Some(carrier) = &self.carrier {
            let interface = self.port.trim_start_matches("packet:");
            error = carrier.judge(error, socket, interface);
        }
        match error {
            None => Ok(()),
            Some(error) => Err(failure(&self.port, "receiving", error)),
        }
    }

    fn read_statistics(&mut self) {
        let socket = self.socket.as_fd();
        // Reading resets the kernel's counters.
        let fresh = get_option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok(libc::tpacket_stats { tp_drops, .. }) = fresh {
            self.losses.ring_full += u64::from(tp_drops);
        }
    }
}

impl RxPort for PacketRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        let mut frames = self.hand_in_pieces(max, take);
        let mut waiting = self.ring.peek();
        if waiting.is_none() {
            self.check_alive(now)?;
            return Ok(ReceiveResult { frames, end: false });
        }
        self.scale.check(now);
        while let Some(slot) = waiting
            && frames < max
        {
            let stamp = self.scale.arrival(slot.wall, now);
            // For the caller, a frame stamped after its clock reading has not arrived yet. The
            // first frame is delivered anyway, so that every call makes progress.
            if stamp > now && frames > 0 {
                break;
            }
            let taken = self.hand_in(&slot, stamp.min(now), take);
            self.ring.release();
            frames += usize::from(taken);
            if self.pieces.is_some() {
                frames += self.hand_in_pieces(max - frames, take);
            }
            waiting = self.ring.peek();
        }
        Ok(ReceiveResult { frames, end: false })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn stamps_arrivals(&self) -> bool {
        true
    }

    fn losses(&mut self) -> PortLosses {
        self.read_statistics();
        self.losses
    }

    fn frame_max(&self) -> usize {
        SUPER_MAX
    }
}

/// Reads one frame and its virtio-net header from the socket's queue.
fn receive_long<'a>(socket: BorrowedFd<'_>, buffer: &'a mut [u8]) -> io::Result<&'a mut [u8]> {
    // SAFETY: pointer and length describe `buffer`, which the kernel writes only during the call.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    let length = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    buffer
        .get_mut(..length)
        .ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

/// Restores a frame as on the wire: reinserts the VLAN tag, removes the kernel's jumbo header and
/// decodes the virtio-net header. Returns the frame's range in `contents` and its offload; `None`
/// if header and frame are inconsistent.
#[inline]
fn restore(contents: &mut [u8], tag: Option<[u8; TAG]>) -> Option<(Range<usize>, Decoded)> {
    let mut header = *contents.first_chunk::<{ vnet::LEN }>()?;
    let mut start = vnet::LEN;
    if let Some(tag) = tag
        && contents.len() >= start + MACS
    {
        // The addresses move over the virtio-net header, which has been copied, to make room for
        // the tag.
        contents.copy_within(start..start + MACS, start - TAG);
        start -= TAG;
        contents[start + MACS..start + MACS + TAG].copy_from_slice(&tag);
        move_checksum(&mut header, TAG as i16);
    }
    if contents.len() > SUPER_MAX {
        let removed = strip_jumbo(contents.get_mut(start..)?);
        start += removed;
        move_checksum(&mut header, -(removed as i16));
    }
    let decoded = vnet::decode(&header, contents.get_mut(start..)?)?;
    Some((start..contents.len(), decoded))
}

/// Adjusts a virtio-net header after `bytes` bytes were inserted before the checksummed range.
fn move_checksum(header: &mut [u8; vnet::LEN], bytes: i16) {
    const START: usize = 6;
    let moved = u16::from_ne_bytes([header[START], header[START + 1]]).saturating_add_signed(bytes);
    header[START..START + 2].copy_from_slice(&moved.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::offload::{Checksum, Offload, finish_checksum};

    #[test]
    fn a_tag_goes_back_and_moves_the_checksum() {
        let mut contents = vec![0u8; vnet::LEN];
        contents[0] = 1;
        contents[6..8].copy_from_slice(&34u16.to_ne_bytes());
        contents[8..10].copy_from_slice(&16u16.to_ne_bytes());
        contents.extend(0..60u8);
        let tag = Some([0x81, 0x00, 0x00, 0x07]);
        let (range, decoded) = restore(&mut contents, tag).expect("a good header");
        // This is not a TCP header, so the checksum is completed here.
        assert_eq!(decoded, Decoded::Plain(Offload::NONE));
        let mut expected: Vec<u8> = (0..12).collect();
        expected.extend([0x81, 0x00, 0x00, 0x07]);
        expected.extend(12..60u8);
        let checksum = Checksum {
            start: 38,
            offset: 16,
        };
        assert!(finish_checksum(&mut expected, checksum));
        assert_eq!(contents[range], expected[..]);
    }

    #[test]
    fn short_contents_are_refused_or_left_alone() {
        assert!(restore(&mut [0; 9], None).is_none());
        let mut tiny = [0; 13];
        let (range, _) = restore(&mut tiny, Some([0x81, 0, 0, 1])).expect("no room for a tag");
        assert_eq!(range.len(), 3);
    }
}
