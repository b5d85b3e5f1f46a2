//! Ports: sources and sinks of frames.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

mod any;
pub mod bare;
mod carrier;
mod closing;
mod error;
pub mod gap;
mod lock;
pub mod mem;
pub mod offload;
pub mod one_way;
pub mod options;
pub mod own;
pub mod packet;
pub mod pcap;
pub mod registry;
mod sampling;
mod settings;
pub(crate) mod socket;
pub mod tap;
pub mod vnet;
pub mod xdp;

pub use closing::wait_closed;
pub use error::PortError;
pub use offload::{Checksum, Offload, SegmentKind, Segments};
pub use registry::{AnyRx, AnyTx, Port};

/// An open port's halves, and its notes.
#[derive(Debug)]
pub struct OpenPort<R, T> {
    /// Receiving half.
    pub rx: R,
    /// Sending half.
    pub tx: T,
    /// Choices, changes and limitations, in sentences.
    pub notes: Vec<String>,
}

/// A received frame. Its bytes are borrowed from the port for the call.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// Bytes from the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// Arrival at the port on the run's clock: the kernel's or XDP program's stamp if available,
    /// otherwise the time of the call.
    pub arrival: Nanos,
    /// Work that the sender left to the hardware: a partial checksum, or several wire frames in one
    /// buffer.
    pub offload: Offload,
    /// Wire length in bytes, which the engine uses; exceeds the length of `bytes` if the frame is
    /// truncated.
    pub wire_len: u32,
    /// Location in memory from which an output port can send the frame (see [`RxPort::region`]).
    /// Valid until the output port has taken the frame.
    pub lent: Option<u64>,
}

impl<'a> RxFrame<'a> {
    /// Creates a complete wire frame without offloads.
    pub fn whole(bytes: &'a [u8], arrival: Nanos) -> RxFrame<'a> {
        RxFrame::with_offload(bytes, arrival, Offload::NONE)
    }

    /// Copies the frame field by field. Passing the copy by reference leaves the original in
    /// registers.
    #[inline(always)]
    #[must_use]
    pub fn by_fields(&self) -> RxFrame<'a> {
        let Offload { checksum, segments } = self.offload;
        RxFrame {
            bytes: self.bytes,
            arrival: self.arrival,
            offload: Offload { checksum, segments },
            wire_len: self.wire_len,
            lent: self.lent,
        }
    }

    /// Creates a complete frame.
    #[inline]
    pub(crate) fn with_offload(bytes: &'a [u8], arrival: Nanos, offload: Offload) -> RxFrame<'a> {
        RxFrame {
            bytes,
            arrival,
            offload,
            wire_len: bytes.len() as u32,
            lent: None,
        }
    }
}

/// A frame to send.
#[derive(Clone, Copy, Debug)]
pub struct TxFrame<'a> {
    /// Bytes from the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// Release of the frame; file ports use it as the stamp.
    pub release: Nanos,
    /// Work left to the port. Always [`Offload::NONE`] unless [`TxPort::takes_offload`].
    pub offload: Offload,
    /// Location in shared memory, if the port may send from there.
    pub lent: Option<u64>,
    /// Original wire length in bytes; exceeds the length of `bytes` if the frame is truncated.
    /// Capture files record it; other ports send `bytes`.
    pub wire_len: u32,
}

impl<'a> TxFrame<'a> {
    /// Creates a complete wire frame without offloads.
    pub fn whole(bytes: &'a [u8], release: Nanos) -> TxFrame<'a> {
        TxFrame {
            bytes,
            release,
            offload: Offload::NONE,
            lent: None,
            wire_len: bytes.len() as u32,
        }
    }

    /// Returns the number of wire frames, which exceeds 1 for a super-packet.
    pub(crate) fn wire_frames(&self) -> u64 {
        let segments = self.offload.segments;
        segments.map_or(1, |one| one.wire_frames(self.bytes.len()).len() as u64)
    }
}

/// The frames delivered by one call of [`RxPort::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveResult {
    /// Number of frames delivered.
    pub frames: usize,
    /// Whether the input has ended.
    pub end: bool,
}

/// Result of [`RxPort::receive`].
pub type Received = Result<ReceiveResult, PortError>;

/// The result of [`TxPort::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// Accepted. The frame leaves by the next flush.
    Taken,
    /// The port is full: flush, then try again.
    Full,
    /// Never acceptable; for example, too long for the device.
    Refused,
}

/// Frames lost outside the emulator since the port was opened, as the kernel or device counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLosses {
    /// The receive ring was full.
    pub ring_full: u64,
    /// The frame exceeded a ring slot.
    pub too_long: u64,
    /// Accepted for sending, then lost by the kernel or device.
    pub send_failed: u64,
    /// The device had no carrier: its peer is down or its cable unplugged.
    pub no_carrier: u64,
    /// The frame contradicted its offload.
    pub unusable: u64,
}

/// A frame's actual departure, as reported by the kernel or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// The frame's release.
    pub release: Nanos,
    /// Departure on the run's clock.
    pub left: Nanos,
    /// Source of the stamp.
    pub by: StampedBy,
}

/// Source of send stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedBy {
    /// The kernel, at handover to the device.
    Kernel,
    /// The device, as the frame goes onto the wire.
    Device,
}

/// Identifies a memory region shared by two ports: one can send in place the frames that the other
/// lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub u64);

/// A port's receiving half.
///
/// Implementations never block, never panic on any input, and deliver frames in order of arrival.
pub trait RxPort {
    /// Delivers up to `max` frames that have arrived. Ports without stamps use `now`.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the port's device is down or removed; [`PortError::Malformed`] for
    /// a capture that cannot be read further; [`PortError::Failed`] for other system errors.
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received;

    /// Returns a descriptor that becomes readable when frames are waiting. `None` for ports that
    /// always have frames and for ports without an event, which an idle thread polls every
    /// millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns whether frames are stamped when they reach the port rather than when they are
    /// received. Waiting at the port then does not make them late.
    fn stamps_arrivals(&self) -> bool {
        false
    }

    /// Returns whether a frame that arrived before the last call of [`RxPort::receive`] may still
    /// follow, although the call delivered fewer frames than allowed.
    fn is_behind(&self) -> bool {
        false
    }

    /// Returns the losses before delivery since the port was opened.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// Returns the region that holds lent frames.
    fn region(&self) -> Option<RegionId> {
        None
    }

    /// Returns the port's maximum frame length in bytes, including super-packets.
    fn frame_max(&self) -> usize;
}

/// A port's sending half.
///
/// Implementations never block and never panic.
pub trait TxPort {
    /// Passes a frame to the port, which may send it immediately or together with later frames.
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult;

    /// Sends the pushed frames. Frames that the kernel does not accept stay pushed for the next
    /// flush. Returns the number of frames that have left the port since the last flush.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the port's device is down or removed; [`PortError::Failed`] for
    /// other system errors.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns the number of frames that can be pushed before a flush.
    fn free_slots(&self) -> usize;

    /// Returns the number of pushed frames that have not left.
    fn unsent(&self) -> usize;

    /// Returns whether the port's wire must be kept busy. If so, continuously call
    /// [`TxPort::sync_clock`] before pushing frames, and [`TxPort::fill`] and a flush afterwards.
    fn needs_idle_fill(&self) -> bool {
        false
    }

    /// Advances the idle-fill clock to `now`.
    fn sync_clock(&mut self, _now: Nanos) {}

    /// Keeps the wire busy for a while from `now` on.
    fn fill(&mut self, _now: Nanos) {}

    /// Requests the send stamp of one frame in `every` from now on; zero requests none. Returns the
    /// source of the stamps; `None` if the port has none.
    fn sample_every(&mut self, _every: u32) -> Option<StampedBy> {
        None
    }

    /// Passes to `take` the send stamps received since the previous call, mostly oldest first. A
    /// stamp may arrive some time after its frame has left, or never.
    fn sampled(&mut self, _take: &mut dyn FnMut(SendStamp)) {}

    /// Returns how long before its release a frame may be pushed, for ports whose device holds it
    /// until then. `None` for ports that send immediately.
    fn launch_lead(&self) -> Option<Nanos> {
        None
    }

    /// Returns remarks for the final report, in sentences.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether frames may carry an [`Offload`].
    fn takes_offload(&self) -> bool {
        false
    }

    /// Returns the losses after acceptance by the kernel or device.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// Returns the region that may hold lent frames.
    fn region(&self) -> Option<RegionId> {
        None
    }

    /// Switches the carrier of the interface at the other end. A no-op unless the port was opened
    /// with [`OpenOptions::carrier`](options::OpenOptions::carrier). Without a carrier, frames are
    /// lost; until a requested carrier is back, the port is full.
    fn set_carrier(&mut self, _up: bool) {}
}
