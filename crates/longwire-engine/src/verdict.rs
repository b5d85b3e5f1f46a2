//! What the engine decides for a frame.

use crate::units::Nanos;

/// The decision for one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Hand the frame to the output port at `release`.
    Deliver(Delivery),
    /// The emulated link loses the frame.
    Drop(DropReason),
}

/// The times of a delivered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last bit left the emulated queue.
    pub departure: Nanos,
    /// When it must be handed to the output port.
    pub release: Nanos,
    /// The in-order policy raised `release` to that of the frame before.
    pub raised: bool,
}

/// Why the emulated link lost a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// Longer than the link's MTU.
    Mtu,
    /// Lost before the queue (`loss … at=entry`).
    EntryLoss,
    /// The queue was full.
    QueueFull,
    /// Lost on the medium as a packet.
    Loss,
    /// Lost on the medium because a bit error spoilt it.
    BitError,
}

impl DropReason {
    /// Every reason, in the order of their indices.
    pub const ALL: [DropReason; 5] = [
        DropReason::Mtu,
        DropReason::EntryLoss,
        DropReason::QueueFull,
        DropReason::Loss,
        DropReason::BitError,
    ];

    /// Position in [`DropReason::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The reason's name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Mtu => "mtu",
            DropReason::EntryLoss => "entry_loss",
            DropReason::QueueFull => "queue_full",
            DropReason::Loss => "loss",
            DropReason::BitError => "bit_error",
        }
    }
}
