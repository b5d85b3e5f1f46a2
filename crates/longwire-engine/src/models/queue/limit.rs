//! Queue limits in packets, bytes or both, and tail drop, which has no other parameters.

use super::Queue;
use crate::models::prelude::*;

/// Registry entry of `tail-drop`.
pub const ENTRY: Entry<Queue> = Entry::new(
    "tail-drop",
    "FIFO that drops arrivals above a limit; the frame in service counts, framing does not",
    &[
        Param::new("packets", Unit::Packets).help("maximum frames in the queue"),
        Param::new("bytes", Unit::Size).help("maximum bytes in the queue"),
    ],
    |arguments| QueueLimit::read(arguments).map(Queue::TailDrop),
);

/// Registry entry of `unlimited`.
pub const UNLIMITED_ENTRY: Entry<Queue> = Entry::new(
    "unlimited",
    "FIFO without a limit; memory grows with the queue",
    &[],
    |_| Ok(Queue::TailDrop(QueueLimit::UNLIMITED)),
);

/// Maximum standard Ethernet frame, without FCS.
pub(crate) const FULL_FRAME: Bytes = Bytes(1514);

/// Minimum Ethernet frame, without FCS.
const SHORTEST_FRAME: Bytes = Bytes(60);

/// Minimum default queue, in full frames; absorbs bursts on slow links.
const DEFAULT_FRAMES_MIN: u64 = 16;

/// Minimum default queue, as time at the link rate.
const DEFAULT_TIME_MIN: Nanos = Nanos::from_millis(100);

/// Minimum for one flow, in full frames: one in service while the next arrives.
const NEEDED_FRAMES_MIN: u64 = 2;

/// Maximum backlog; `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// In frames.
    pub packets: Option<Packets>,
    /// In frame bytes, excluding framing.
    pub bytes: Option<Bytes>,
}

/// Occupancy of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLengths {
    /// Frames and bytes in the queue.
    pub now: (Packets, Bytes),
    /// Their peaks so far.
    pub max: (Packets, Bytes),
    /// Their limits.
    pub limit: QueueLimit,
}

impl QueueLengths {
    /// Of an empty queue without a limit.
    pub(crate) const NONE: QueueLengths = QueueLengths {
        now: (Packets(0), Bytes(0)),
        max: (Packets(0), Bytes(0)),
        limit: QueueLimit::UNLIMITED,
    };
}

impl QueueLimit {
    /// No limit.
    pub const UNLIMITED: QueueLimit = QueueLimit {
        packets: None,
        bytes: None,
    };

    /// Whether this backlog exceeds the limit.
    #[inline]
    pub(crate) fn is_exceeded_by(&self, packets: u64, bytes: u64) -> bool {
        self.packets.is_some_and(|most| packets > most.0)
            || self.bytes.is_some_and(|most| bytes > most.0)
    }

    /// Reads the parameters `packets` and `bytes`, of which at least one is required.
    ///
    /// # Errors
    /// [`SpecError::Value`] if a value does not parse; [`SpecError::Unfit`] if neither is given,
    /// one is 0, or `bytes` is too small for any frame.
    pub fn read(arguments: &Arguments) -> Result<QueueLimit, SpecError> {
        let limit = QueueLimit {
            packets: arguments.optional("packets")?,
            bytes: arguments.optional("bytes")?,
        };
        if limit == QueueLimit::UNLIMITED {
            return Err(arguments
                .invalid("no limit; give packets, bytes or both; for example: 100p or 64kb"));
        }
        if limit.packets == Some(Packets(0)) || limit.bytes == Some(Bytes(0)) {
            return Err(arguments.invalid("a queue of 0 passes no frames; the minimum is 1p"));
        }
        limit.refuse_no_frame(arguments)?;
        Ok(limit)
    }

    /// Rejects a limit smaller than any frame.
    pub(super) fn refuse_no_frame(&self, arguments: &Arguments) -> Result<(), SpecError> {
        match self.bytes.filter(|bytes| *bytes < SHORTEST_FRAME) {
            None => Ok(()),
            Some(bytes) => Err(arguments.invalid(format!(
                "a queue of {bytes} holds no frame; Ethernet frames are {SHORTEST_FRAME} to \
                 {FULL_FRAME} long"
            ))),
        }
    }

    /// Returns the default limit: the bytes that the link sends in two one-way delays or in 100 ms,
    /// whichever is longer, clamped to between 16 full frames of 1514 bytes and 1 TiB. `delay` is
    /// the delay model's mean. At an infinite rate, frames are never queued and there is no limit.
    pub fn derived(rate: Option<BitRate>, delay: Nanos) -> QueueLimit {
        let Some(rate) = rate else {
            return QueueLimit::UNLIMITED;
        };
        let time = delay.saturating_mul(2).max(DEFAULT_TIME_MIN);
        let floor = Bytes(FULL_FRAME.0 * DEFAULT_FRAMES_MIN);
        QueueLimit {
            packets: None,
            bytes: Some(rate.bytes_in(time).clamp(floor, Bytes::SETTING_MAX)),
        }
    }

    /// Returns the smallest limit at which one loss-based TCP flow saturates the link: the
    /// bandwidth-delay product (Villamizar and Song 1994), with twice the one-way delay as
    /// round-trip time, clamped to between two full frames of 1514 bytes and 1 TiB. The limit in
    /// packets assumes full frames; smaller frames need more. Returns `None` at an infinite rate,
    /// where frames are never queued.
    pub fn needed(rate: Option<BitRate>, delay: Nanos) -> Option<(Packets, Bytes)> {
        let floor = Bytes(FULL_FRAME.0 * NEEDED_FRAMES_MIN);
        let bytes = rate?.bytes_in(delay.saturating_mul(2));
        let bytes = bytes.clamp(floor, Bytes::SETTING_MAX);
        Some((Packets(bytes.0.div_ceil(FULL_FRAME.0)), bytes))
    }

    /// Returns the smallest sufficient limit, in the same units, if this one is below
    /// [`QueueLimit::needed`]. A value that is already sufficient is kept.
    pub fn undersized(&self, rate: Option<BitRate>, delay: Nanos) -> Option<QueueLimit> {
        let (packets, bytes) = QueueLimit::needed(rate, delay)?;
        let enough = QueueLimit {
            packets: self.packets.map(|limit| limit.max(packets)),
            bytes: self.bytes.map(|limit| limit.max(bytes)),
        };
        (enough != *self).then_some(enough)
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.packets, self.bytes) {
            (Some(packets), Some(bytes)) => write!(f, "tail-drop:packets={packets},bytes={bytes}"),
            (Some(packets), None) => packets.fmt(f),
            (None, Some(bytes)) => bytes.fmt(f),
            (None, None) => f.write_str("unlimited"),
        }
    }
}
