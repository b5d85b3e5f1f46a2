//! The engine's decision about a frame.

use longwire_units::Nanos;

/// The decision about one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame is handed to the egress port at `release`.
    Deliver(Delivery),
    /// The emulated link drops the frame.
    Drop(DropReason),
    /// The verdict follows: [`Link::poll`](crate::Link::poll) returns it and needs the frame's
    /// bytes until then.
    Queued,
}

/// Times of a delivered frame, and edits to its bytes. Kept small, because it is returned for every
/// frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time at which its last bit departs from the emulated queue.
    pub departure: Nanos,
    /// Time at which the frame is handed to the egress port.
    pub release: Nanos,
    /// Whether the in-order policy postponed `release` to that of an earlier frame.
    pub raised: bool,
    /// Edits to be applied to its bytes by [`Link::edit`](crate::Link::edit).
    pub edits: Edits,
    /// Whether another delivery of the same frame, a duplicate, follows.
    pub more: bool,
}

/// Changes to a frame's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The queue or a loss model marks the frame Congestion Experienced.
    pub mark: bool,
    /// The medium flips bits, selected by the link.
    pub corrupt: bool,
    /// The link rewrites headers in every frame.
    pub rewrite: bool,
}

impl Edits {
    /// No changes.
    pub const NONE: Edits = Edits {
        mark: false,
        corrupt: false,
        rewrite: false,
    };

    /// Whether anything changes.
    #[inline]
    pub fn any(&self) -> bool {
        self.mark || self.rewrite || self.corrupt
    }
}

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// Exceeded the link's MTU.
    Mtu,
    /// Lost before the queue (`loss … at=entry`).
    EntryLoss,
    /// The queue was full.
    QueueFull,
    /// Lost on the medium.
    Loss,
    /// Lost to a bit error on the medium.
    BitError,
    /// Dropped by an AQM control law: RED, CoDel, PIE and similar.
    Aqm,
    /// Its TTL expired.
    Ttl,
    /// The medium had an outage, or the link was off.
    Outage,
    /// Matched by a content loss model.
    Content,
    /// Dropped while its traffic was moved to another path.
    Handover,
    /// Its egress port was lost.
    PortLost,
}

impl DropReason {
    /// All reasons, in index order.
    pub const ALL: [DropReason; 11] = [
        DropReason::Mtu,
        DropReason::EntryLoss,
        DropReason::QueueFull,
        DropReason::Loss,
        DropReason::BitError,
        DropReason::Aqm,
        DropReason::Ttl,
        DropReason::Outage,
        DropReason::Content,
        DropReason::Handover,
        DropReason::PortLost,
    ];

    /// Returns the position in [`DropReason::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the reason's name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Mtu => "mtu",
            DropReason::EntryLoss => "entry_loss",
            DropReason::QueueFull => "queue_full",
            DropReason::Loss => "loss",
            DropReason::BitError => "bit_error",
            DropReason::Aqm => "aqm",
            DropReason::Ttl => "ttl",
            DropReason::Outage => "outage",
            DropReason::Content => "content",
            DropReason::Handover => "handover",
            DropReason::PortLost => "port_lost",
        }
    }
}
