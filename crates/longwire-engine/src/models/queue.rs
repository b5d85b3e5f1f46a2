//! The queue in front of the rate: tail drop in packets, bytes or both.

use alloc::collections::VecDeque;
use core::fmt;

use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::{BitRate, Bytes, Nanos, Packets};

/// The registry line.
pub const ENTRY: Entry<QueueLimit> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "tail-drop",
    summary: "first in, first out; a frame that would exceed a limit is dropped. The frame being \
              sent counts; framing does not",
    params: &[
        Param {
            name: "packets",
            unit: Unit::Packets,
            default: None,
            help: "the most frames held",
        },
        Param {
            name: "bytes",
            unit: Unit::Size,
            default: None,
            help: "the most bytes held",
        },
    ],
};

fn build(arguments: &Arguments) -> Result<QueueLimit, SpecError> {
    let limit = QueueLimit {
        packets: arguments.optional("packets")?,
        bytes: arguments.optional("bytes")?,
    };
    if limit == QueueLimit::UNLIMITED {
        return Err(arguments.unfit("give packets=…, bytes=… or both, for example 100p or 64kb"));
    }
    if limit.packets == Some(Packets(0)) || limit.bytes == Some(Bytes(0)) {
        return Err(arguments.unfit("a queue of 0 passes nothing; the least is 1p"));
    }
    Ok(limit)
}

/// The largest frame of an ordinary Ethernet, without FCS.
const FULL_FRAME: Bytes = Bytes(1514);

/// A default queue holds at least so many full frames: bursts of slow links.
const DEFAULT_FRAMES_MIN: u64 = 16;

/// A default queue holds at least what the link sends in this time.
const DEFAULT_TIME_MIN: Nanos = Nanos::from_millis(100);

/// The most that may wait for the rate; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// In frames.
    pub packets: Option<Packets>,
    /// In bytes of frames, framing excluded.
    pub bytes: Option<Bytes>,
}

impl QueueLimit {
    /// No limit.
    pub const UNLIMITED: QueueLimit = QueueLimit {
        packets: None,
        bytes: None,
    };

    /// The default: what the link sends in two one-way delays or 100 ms,
    /// whichever is longer, and never less than 16 full frames. At an
    /// infinite rate nothing ever waits, and there is no limit.
    pub fn derived(rate: Option<BitRate>, delay: Nanos) -> QueueLimit {
        let Some(rate) = rate else {
            return QueueLimit::UNLIMITED;
        };
        let time = delay.saturating_mul(2).max(DEFAULT_TIME_MIN);
        let floor = Bytes(FULL_FRAME.0 * DEFAULT_FRAMES_MIN);
        QueueLimit {
            packets: None,
            bytes: Some(rate.bytes_in(time).max(floor)),
        }
    }

    /// If the limit is below what one TCP flow needs to fill the link (its
    /// rate × two one-way delays, and two full frames): the limit that would
    /// do, in the unit the user chose.
    pub fn undersized(&self, rate: Option<BitRate>, delay: Nanos) -> Option<QueueLimit> {
        let needed = rate?
            .bytes_in(delay.saturating_mul(2))
            .max(Bytes(FULL_FRAME.0 * 2));
        let needed_packets = Packets(needed.0.div_ceil(FULL_FRAME.0));
        let packets = self.packets.filter(|limit| *limit < needed_packets);
        let bytes = self.bytes.filter(|limit| *limit < needed);
        if packets.is_none() && bytes.is_none() {
            return None;
        }
        Some(QueueLimit {
            packets: packets.map(|_| needed_packets),
            bytes: bytes.map(|_| needed),
        })
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

/// A tail-drop queue, known from its departures alone (TLEM's way): a frame
/// is in the queue until it departs, so the frames at hand at an arrival are
/// those whose departure lies after it.
#[derive(Clone, Debug)]
pub struct TailDrop {
    limit: QueueLimit,
    held: VecDeque<Held>,
    bytes: u64,
    bytes_max: u64,
    packets_max: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    departure: Nanos,
    len: u32,
}

impl TailDrop {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> TailDrop {
        TailDrop {
            limit,
            held: VecDeque::new(),
            bytes: 0,
            bytes_max: 0,
            packets_max: 0,
        }
    }

    /// Lets go of what has departed by `now`, and says whether a frame of
    /// `len` bytes fits.
    #[inline]
    pub fn admits(&mut self, now: Nanos, len: u32) -> bool {
        while let Some(first) = self.held.front() {
            if first.departure > now {
                break;
            }
            self.bytes -= u64::from(first.len);
            self.held.pop_front();
        }
        let packets = self.held.len() as u64 + 1;
        let bytes = self.bytes + u64::from(len);
        self.limit.packets.is_none_or(|max| packets <= max.0)
            && self.limit.bytes.is_none_or(|max| bytes <= max.0)
    }

    /// Takes a frame in until `departure`.
    #[inline]
    pub fn hold(&mut self, departure: Nanos, len: u32) {
        self.held.push_back(Held { departure, len });
        self.bytes += u64::from(len);
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.packets_max = self.packets_max.max(self.held.len() as u64);
    }

    /// Frames and bytes held as of the last arrival.
    pub fn occupancy(&self) -> (Packets, Bytes) {
        (Packets(self.held.len() as u64), Bytes(self.bytes))
    }

    /// The most frames and bytes ever held.
    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        (Packets(self.packets_max), Bytes(self.bytes_max))
    }
}
