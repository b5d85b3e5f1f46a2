//! Ports: where frames enter and leave.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

mod any;
mod auto;
pub mod bare;
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

/// A frame as a port hands it in. The bytes are the port's and are lent for
/// the time of the call.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// From the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// When it reached the port, on the scale of CLOCK_MONOTONIC: the
    /// kernel's or the XDP program's stamp where there is one, else the time
    /// of the call.
    pub arrival: Nanos,
    /// What the sender left to the hardware: an unfinished checksum, several
    /// wire frames in one buffer.
    pub offload: Offload,
    /// How long the frame was on the wire, in bytes: more than `bytes` holds
    /// when a capture kept only its beginning, else the same. The engine is
    /// offered this length.
    pub wire_len: u32,
    /// The place of the frame in memory that an output port can send from
    /// (see [`RxPort::region`]); it stays valid until the output port has
    /// taken it.
    pub lent: Option<u64>,
}

/// A frame on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// From the destination MAC address to the end of the payload.
    pub bytes: &'a [u8],
    /// Its release: file ports stamp with it.
    pub release: Nanos,
    /// What is left to the port; always [`Offload::NONE`] for a port that
    /// does not say [`TxPort::takes_offload`].
    pub offload: Offload,
    /// The frame's place in shared memory, if the port may send it from there.
    pub lent: Option<u64>,
    /// How long it was on the wire when it was captured, in bytes; more than
    /// `bytes` has where only its beginning was kept. Capture files note it;
    /// other ports send `bytes`.
    pub wire_len: u32,
}

impl<'a> Outgoing<'a> {
    /// A finished wire frame, all of which is here.
    pub fn whole(bytes: &'a [u8], release: Nanos) -> Outgoing<'a> {
        Outgoing {
            bytes,
            release,
            offload: Offload::NONE,
            lent: None,
            wire_len: bytes.len() as u32,
        }
    }
}

/// What a call of [`RxPort::receive`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames handed in.
    pub frames: usize,
    /// Nothing will ever come again: the end of a file.
    pub end: bool,
}

/// What became of a frame that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Taken; it leaves with the next flush at the latest.
    Taken,
    /// The port is full: flush, and try again later.
    Full,
    /// The port will never take this frame (too long for the device, say).
    Refused,
}

/// Frames that were lost where the emulator could not see them, counted by
/// the kernel or the device since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLosses {
    /// The receive ring was full.
    pub ring_full: u64,
    /// The frame was longer than a ring's slot.
    pub too_long: u64,
    /// The kernel or the device took the frame for sending and lost it.
    pub send_failed: u64,
    /// The device had no carrier: its peer is down, or a cable is not plugged
    /// in.
    pub no_carrier: u64,
    /// The frame contradicted what came with it about unfinished work.
    pub unusable: u64,
}

/// When a frame really left, told by the kernel or the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// The frame's release.
    pub release: Nanos,
    /// When it left, on the scale of CLOCK_MONOTONIC.
    pub left: Nanos,
    /// Who stamped it.
    pub by: StampedBy,
}

/// Who stamps frames as they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedBy {
    /// The kernel, when it hands the frame to the device.
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
/// Implementations never block, never panic on what arrives, and give frames
/// in the order of their arrival.
pub trait RxPort {
    /// Hands in up to `max` frames that have arrived. `now` stamps frames of
    /// ports without stamps of their own.
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(Arrived<'_>),
    ) -> Result<Received, PortError>;

    /// Becomes readable when frames wait; `None` for ports that always have
    /// some, and for those that cannot be waited for: an idle thread asks
    /// these every millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// What was lost before it came in, since the port was opened.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// The memory that lent frames live in.
    fn region(&self) -> Option<RegionId> {
        None
    }

    /// The longest frame this port hands in, in bytes (super-packets
    /// included).
    fn frame_max(&self) -> usize;
}

/// The sending half of a port.
///
/// Implementations never block and never panic.
pub trait TxPort {
    /// Gives a frame to the port. It may leave at once, or with others.
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed;

    /// Sends what was pushed. Frames that the kernel did not take stay
    /// pushed for the next flush. Returns how many frames left the port
    /// since the last flush.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// How many frames can be pushed before a flush is needed.
    fn room(&self) -> usize;

    /// Frames that were pushed and have not left.
    fn unsent(&self) -> usize;

    /// Whether the port's wire must be kept busy: then, all the time,
    /// [`TxPort::catch_up`] is to be called before frames are pushed, and
    /// [`TxPort::fill`] and a flush after it.
    fn never_rests(&self) -> bool {
        false
    }

    /// The wire is told the time.
    fn catch_up(&mut self, _now: Nanos) {}

    /// Keeps the wire busy for a while from `now` on.
    fn fill(&mut self, _now: Nanos) {}

    /// Asks for the send stamp of one frame in `every` from now on, of none
    /// if that is zero. Returns who will stamp; `None` when the port has no
    /// such stamps.
    fn sample_every(&mut self, _every: u32) -> Option<StampedBy> {
        None
    }

    /// Hands out the send stamps that have come since the last call, mostly
    /// oldest first. A stamp may come some time after its frame has left, or not at
    /// all.
    fn sampled(&mut self, _take: &mut impl FnMut(SendStamp)) {}

    /// How long before its release a frame may be pushed: the device holds it
    /// until then. `None` for ports that send at once.
    fn launch_lead(&self) -> Option<Nanos> {
        None
    }

    /// What there is to say of the port at its end, in sentences.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether frames may carry an [`Offload`].
    fn takes_offload(&self) -> bool {
        false
    }

    /// What the kernel or the device lost after taking it.
    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    /// The memory that lent frames may live in.
    fn region(&self) -> Option<RegionId> {
        None
    }
}
