//! Fast path for links with a fixed rate, tail drop and a constant delay.

use longwire_packet::frame::FrameMeta;
use longwire_units::{Bytes, Nanos, Packets};

use super::{Link, LinkConfig, LinkId, LinkQueue};
use crate::models::framing::Framing;
use crate::models::queue::{Queue, QueueLengths, QueueLimit};
use crate::models::rate::{Backlog, FastRate, Rate};
use crate::sent::SentFrames;
use crate::verdict::{Delivery, DropReason, Edits, Verdict};

/// The working state of a [`Link`] with a fixed rate, tail drop and a constant delay, in two cache
/// lines. Verdicts equal those of [`Link::offer`].
///
/// The state is loaded from an idle link, and stored before the link is polled, changed or offered a
/// frame that [`EarlyLink::offer`] does not decide.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct EarlyLink {
    backlog: Backlog,
    /// `None` if not loaded.
    rate: Option<FastRate>,
    framing: Framing,
    delay: Nanos,
    sent: SentFrames,
    arrival: Nanos,
    packets_max: u32,
    /// Number of frames decided since the state was loaded.
    frames: u32,
    bytes_max: u64,
    packets_limit: u32,
    bytes_limit: u64,
}

const _: () = assert!(size_of::<EarlyLink>() == 128);

impl EarlyLink {
    /// Not loaded.
    pub const NONE: EarlyLink = EarlyLink {
        backlog: Backlog::IDLE,
        rate: None,
        framing: Framing::NONE,
        delay: Nanos::ZERO,
        sent: SentFrames::NONE,
        arrival: Nanos::ZERO,
        packets_max: 0,
        frames: 0,
        bytes_max: 0,
        packets_limit: 0,
        bytes_limit: 0,
    };

    /// Takes the state of an idle link that has no other models; otherwise a no-op.
    pub fn load(&mut self, link: &mut Link) {
        let LinkQueue::Managed(server) = &mut link.queue else {
            return;
        };
        let backlog = link.transmitter.exact().backlog();
        let Some(rate) = link.transmitter.fixed_rate().filter(|_| link.plain) else {
            return;
        };
        let Some(delay) = link.medium.only_delays(backlog.free_at) else {
            return;
        };
        let Some((limit, sent)) = server.load_early() else {
            return;
        };
        *self = EarlyLink {
            backlog,
            rate: Some(FastRate::new(rate)),
            framing: link.transmitter.exact().framing(),
            delay,
            sent,
            arrival: link.last_arrival,
            packets_limit: limit.packets.map_or(u32::MAX, saturated),
            bytes_limit: limit.bytes.map_or(u64::MAX, |limit| limit.0),
            ..EarlyLink::NONE
        };
    }

    /// Stores the state in the link, and returns the number of frames decided.
    pub fn store(&mut self, link: &mut Link) -> u32 {
        if self.rate.is_none() {
            return 0;
        }
        let early = core::mem::replace(self, EarlyLink::NONE);
        if early.frames > 0 {
            link.last_arrival = early.arrival;
            link.transmitter.exact_mut().set_backlog(early.backlog);
            let release = early.sent.last_departure().saturating_add(early.delay);
            link.medium.note_release(release);
        }
        if let LinkQueue::Managed(server) = &mut link.queue {
            let occupancy_max = (early.packets_max.into(), early.bytes_max);
            server.store_early(early.sent, early.frames, early.arrival, occupancy_max);
        }
        early.frames
    }

    /// Whether the state is loaded.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.rate.is_some()
    }

    /// Decides a frame like [`Link::offer`], or returns `None` without effect. Undecided are departures at
    /// or after `steady_until` (the next change), frames over the limit of an idle link, and
    /// serialisation times below 1 ns.
    #[inline(always)]
    pub fn offer(&mut self, frame: FrameMeta, steady_until: Nanos) -> Option<Verdict> {
        let rate = self.rate?;
        let arrival = frame.arrival.max(self.arrival);
        let len = u64::from(frame.len);
        let mut backlog = self.backlog;
        let (mut packets, mut bytes) = (1, len);
        let is_busy = backlog.free_at > arrival;
        if is_busy {
            let ahead = self.sent.counted(arrival);
            (packets, bytes) = (packets + ahead.0, bytes + ahead.1);
        }
        let departure = backlog.add_bits(arrival, self.framing.wire_bits(frame.len), rate)?;
        let is_full = packets > u64::from(self.packets_limit) || bytes > self.bytes_limit;
        let is_decided = if is_full {
            is_busy
        } else {
            departure < steady_until
        };
        if !is_decided || self.frames == u32::MAX {
            return None;
        }
        self.frames += 1;
        self.arrival = arrival;
        if is_full {
            return Some(Verdict::Drop(DropReason::QueueFull));
        }
        self.backlog = backlog;
        self.packets_max = self.packets_max.max(packets as u32);
        self.bytes_max = self.bytes_max.max(bytes);
        self.sent.add(arrival, departure, frame.len);
        Some(Verdict::Deliver(Delivery {
            departure,
            release: departure.saturating_add(self.delay),
            raised: false,
            edits: Edits::NONE,
            more: false,
        }))
    }

    /// Returns the departure of the last frame.
    #[inline]
    pub fn last_departure(&self) -> Nanos {
        self.sent.last_departure()
    }

    /// Returns the frames and bytes in the queue at `now`, their peaks since the state was loaded,
    /// and their limits; `None` if not loaded.
    pub fn occupancy(&self, now: Nanos) -> Option<QueueLengths> {
        let (packets, bytes) = self.sent.counted(now.max(self.arrival));
        self.rate.map(|_| QueueLengths {
            now: (Packets(packets), Bytes(bytes)),
            max: (Packets(self.packets_max.into()), Bytes(self.bytes_max)),
            limit: self.limit(),
        })
    }

    fn limit(&self) -> QueueLimit {
        let packets = Some(self.packets_limit).filter(|limit| *limit < u32::MAX);
        let bytes = Some(self.bytes_limit).filter(|limit| *limit < u64::MAX);
        QueueLimit {
            packets: packets.map(|limit| Packets(limit.into())),
            bytes: bytes.map(Bytes),
        }
    }

    /// Returns seed and epoch of a new link, and whether its queue limit is derived, if these and the
    /// loaded state [determine](EarlyLink::config) the link.
    pub fn origin_of(&self, link: &Link, id: LinkId) -> Option<((u64, Nanos), bool)> {
        let (origin, is_derived) = link.new_origin()?;
        let is_same = origin.link == id.0 && link.queue_limit() == self.limit();
        (self.is_active() && is_same).then_some(((origin.seed, origin.epoch), is_derived))
    }

    /// Returns the configuration of the link whose state is loaded.
    pub fn config(&self, is_derived: bool, epoch: Nanos) -> Option<LinkConfig> {
        Some(LinkConfig {
            rate: Rate::Fixed(self.rate?.rate()),
            framing: self.framing,
            queue: (!is_derived).then(|| Queue::TailDrop(self.limit())),
            delay: self.delay.into(),
            epoch,
            ..LinkConfig::default()
        })
    }
}

fn saturated(packets: Packets) -> u32 {
    u32::try_from(packets.0).unwrap_or(u32::MAX)
}
