//! Ports: where frames enter and leave.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

mod any;
mod auto;
pub mod bare;
mod carrier;
mod carrier_control;
mod clocks;
mod error;
pub mod gap;
mod interface;
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
mod socket;
pub mod tap;
pub mod vnet;
pub mod xdp;

pub use error::PortError;
pub use offload::{Checksum, Offload, SegmentKind, Segments};
pub use registry::{AnyRx, AnyTx, Port};

/// A frame as a port delivers it. The bytes are the port's and are borrowed for the
/// time of the call.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// From the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// When it reached the port, on the scale of CLOCK_MONOTONIC: the stamp of the
    /// kernel or of the XDP program if there is one, otherwise the time of the call.
    pub arrival: Nanos,
    /// Work that the sender left to the hardware: an unfinished checksum, several wire
    /// frames in one buffer.
    pub offload: Offload,
    /// The frame's length on the wire, in bytes: more than `bytes` holds if a capture
    /// kept only its beginning, otherwise the same. The engine is offered this length.
    pub wire_len: u32,
    /// The place of the frame in memory that an output port can send from
    /// (see [`RxPort::region`]); it stays valid until the output port has
    /// taken it.
    pub lent: Option<u64>,
}

impl<'a> RxFrame<'a> {
    /// Creates a finished wire frame with all its bytes.
    pub fn whole(bytes: &'a [u8], arrival: Nanos) -> RxFrame<'a> {
        RxFrame {
            bytes,
            arrival,
            offload: Offload::NONE,
            wire_len: bytes.len() as u32,
            lent: None,
        }
    }
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug)]
pub struct TxFrame<'a> {
    /// From the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// Its release: file ports stamp with it.
    pub release: Nanos,
    /// Work that is left to the port; always [`Offload::NONE`] for a port for which
    /// [`TxPort::takes_offload`] is false.
    pub offload: Offload,
    /// The frame's place in shared memory, if the port may send it from there.
    pub lent: Option<u64>,
    /// The frame's length on the wire when it was captured, in bytes; more than `bytes`
    /// has if only its beginning was kept. Capture files record it; other ports send
    /// `bytes`.
    pub wire_len: u32,
}

impl<'a> TxFrame<'a> {
    /// Creates a finished wire frame with all its bytes.
    pub fn whole(bytes: &'a [u8], release: Nanos) -> TxFrame<'a> {
        TxFrame {
            bytes,
            release,
            offload: Offload::NONE,
            lent: None,
            wire_len: bytes.len() as u32,
        }
    }
}

/// Result of a call of [`RxPort::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveResult {
    /// Number of frames delivered.
    pub frames: usize,
    /// No frame will follow: the end of a file.
    pub end: bool,
}

/// Result of pushing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// Accepted; it leaves no later than the next flush.
    Taken,
    /// The port is full: flush, and try again later.
    Full,
    /// The port will never accept this frame (for example, it is too long for the
    /// device).
    Refused,
}

/// Frames that were lost outside the emulator, counted by the kernel or the device
/// since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLosses {
    /// The receive ring was full.
    pub ring_full: u64,
    /// The frame was longer than a ring's slot.
    pub too_long: u64,
    /// The kernel or the device accepted the frame for sending and lost it.
    pub send_failed: u64,
    /// The device had no carrier: its peer is down, or a cable is not plugged
    /// in.
    pub no_carrier: u64,
    /// The frame contradicted its offload.
    pub unusable: u64,
}

/// The actual departure of a frame, reported by the kernel or the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// The frame's release.
    pub release: Nanos,
    /// When it left, on the scale of CLOCK_MONOTONIC.
    pub left: Nanos,
    /// Source of the stamp.
    pub by: StampedBy,
}

/// Source of send stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedBy {
    /// The kernel, at the handover to the device.
    Kernel,
    /// The device, when the frame goes onto the wire.
    Device,
}

/// A memory region that two ports may share: frames lent by one can be sent
/// by the other from where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub u64);

/// The receiving half of a port.
///
/// Implementations never block, never panic on any input, and deliver frames in the
/// order of their arrival.
pub trait RxPort {
    /// Delivers up to `max` frames that have arrived. `now` stamps frames of ports
    /// without stamps.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the port's device is down or removed;
    /// [`PortError::Failed`] for other system errors; [`PortError::Malformed`] for a
    /// capture that cannot be read on.
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError>;

    /// Becomes readable when frames wait; `None` for ports that always have some, and
    /// for those that provide no event: an idle thread polls these every millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// Whether arrivals are stamped when frames reach the port, not when they are
    /// received: frames that wait at the port do not become late by that.
    fn stamps_arrivals(&self) -> bool {
        false
    }

    /// Returns the losses before delivery, since the port was opened.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// Returns the memory of lent frames.
    fn region(&self) -> Option<RegionId> {
        None
    }

    /// Returns the length of the longest frame of this port, in bytes (super-packets
    /// included).
    fn frame_max(&self) -> usize;
}

/// The sending half of a port.
///
/// Implementations never block and never panic.
pub trait TxPort {
    /// Passes a frame to the port. It may leave at once, or with others.
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult;

    /// Sends the pushed frames. Frames that the kernel did not accept stay pushed for
    /// the next flush. Returns how many frames left the port since the last flush.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the port's device is down or removed;
    /// [`PortError::Failed`] for other system errors.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns how many frames can be pushed before a flush is needed.
    fn free_slots(&self) -> usize;

    /// Returns the number of frames that were pushed and have not left.
    fn unsent(&self) -> usize;

    /// Whether the port's wire must be kept busy: then call [`TxPort::sync_clock`]
    /// continuously before frames are pushed, and [`TxPort::fill`] and a flush after
    /// it.
    fn needs_idle_fill(&self) -> bool {
        false
    }

    /// Advances the idle-fill clock to `now`.
    fn sync_clock(&mut self, _now: Nanos) {}

    /// Keeps the wire busy for a while from `now` on.
    fn fill(&mut self, _now: Nanos) {}

    /// Requests the send stamp of one frame in `every` from now on, of none if that is
    /// zero. Returns the source of the stamps; `None` if the port has none.
    fn sample_every(&mut self, _every: u32) -> Option<StampedBy> {
        None
    }

    /// Passes the send stamps received since the last call to `take`, mostly oldest
    /// first. A stamp may follow some time after its frame has left, or be missing.
    fn sampled(&mut self, _take: &mut impl FnMut(SendStamp)) {}

    /// Returns how long before its release a frame may be pushed: the device holds it
    /// until then. `None` for ports that send at once.
    fn launch_lead(&self) -> Option<Nanos> {
        None
    }

    /// Returns notes for the final report, in sentences.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether frames may carry an [`Offload`].
    fn takes_offload(&self) -> bool {
        false
    }

    /// Returns the losses after acceptance by the kernel or the device.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// Returns the memory in which lent frames may live.
    fn region(&self) -> Option<RegionId> {
        None
    }

    /// Gives the interface at the other end its carrier, or takes it; no-op unless the
    /// port was opened with [`OpenOptions::carrier`](options::OpenOptions::carrier).
    /// Without it, frames are lost; a port whose carrier is not back yet is full.
    fn set_carrier(&mut self, _up: bool) {}
}
