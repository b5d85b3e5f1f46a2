//! A link with the counters and records of its verdicts, in the stage that owns
//! it.

use std::sync::Arc;

use longwire_engine::{Delivery, DropReason, FrameMeta, Link, LinkId, Verdict};

use crate::counters::{LinkCounts, LinkShared};
use crate::record::{Event, RecordHandle};

/// A link with its accounts.
pub struct Decider {
    pub(super) link: Link,
    pub(super) link_id: LinkId,
    counts: LinkCounts,
    shared: Arc<LinkShared>,
    record_handle: Option<Box<RecordHandle>>,
    /// Frames offered so far, if they are recorded.
    offered: u64,
}

impl Decider {
    pub(crate) fn new(
        link: Link,
        link_id: LinkId,
        shared: Arc<LinkShared>,
        record_handle: Option<RecordHandle>,
    ) -> Decider {
        Decider {
            link,
            link_id,
            counts: LinkCounts::default(),
            shared,
            record_handle: record_handle.map(Box::new),
            offered: 0,
        }
    }

    /// Offers one wire frame.
    #[inline(always)]
    pub(super) fn offer(&mut self, meta: FrameMeta, bytes: &[u8]) -> Verdict {
        let verdict = self.link.offer(meta, bytes);
        match verdict {
            Verdict::Deliver(delivery) => self.counts.delivered(&delivery, false),
            Verdict::Drop(reason) => self.counts.drops[reason.index()] += 1,
            Verdict::Queued => {}
        }
        if self.record_handle.is_some() {
            self.record_offer(meta.len, bytes, verdict);
        }
        verdict
    }

    /// Returns the number of the frame offered last, if that is recorded.
    pub(super) fn last_offered(&self) -> u64 {
        self.offered.saturating_sub(1)
    }

    /// Counts a further delivery of the frame offered last.
    pub(super) fn copied(&mut self, delivery: &Delivery) {
        let frame = self.last_offered();
        self.decided_later(frame, Verdict::Deliver(*delivery), true);
    }

    /// Counts a later verdict of the queue about a frame; `copy`: a further
    /// delivery of it.
    pub(super) fn decided_later(&mut self, frame: u64, verdict: Verdict, copy: bool) {
        match &verdict {
            Verdict::Deliver(delivery) => self.counts.delivered(delivery, copy),
            Verdict::Drop(reason) => self.dropped(*reason),
            Verdict::Queued => {}
        }
        if let Some(record_handle) = &mut self.record_handle {
            let link = self.link_id;
            record_handle.push(&[], |_| Event::Decided {
                link,
                frame,
                verdict,
            });
        }
    }

    fn dropped(&mut self, reason: DropReason) {
        self.counts.drops[reason.index()] += 1;
    }

    #[cold]
    fn record_offer(&mut self, len: u32, bytes: &[u8], verdict: Verdict) {
        self.offered += 1;
        let (frame, arrival) = (self.last_offered(), self.link.last_arrival());
        let queue = self.link.occupancy();
        let link = self.link_id;
        let Some(record_handle) = &mut self.record_handle else {
            return;
        };
        record_handle.push(bytes, |bytes| Event::Arrived {
            link,
            frame,
            arrival,
            len,
            queue,
            bytes,
        });
        if verdict != Verdict::Queued {
            record_handle.push(&[], |_| Event::Decided {
                link,
                frame,
                verdict,
            });
        }
    }

    /// Whether arrivals are recorded, frame by frame.
    pub(super) fn records(&self) -> bool {
        self.record_handle.is_some()
    }

    /// Ends the recording: no more frames will arrive.
    pub(super) fn finish(&mut self) {
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.finish();
        }
        self.publish();
    }

    /// Publishes the accounts.
    pub(super) fn publish(&mut self) {
        let (packets, bytes) = self.link.occupancy_max();
        self.counts.queue_packets_max = packets.0;
        self.counts.queue_bytes_max = bytes.0;
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.flush();
            self.counts.unrecorded = record_handle.lost();
        }
        self.shared.link.store(&self.counts.to_cells());
    }
}
