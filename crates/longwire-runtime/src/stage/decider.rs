//! A link and what is counted and recorded of its verdicts, in whichever stage
//! has it.

use std::sync::Arc;

use longwire_engine::{Delivery, DropReason, FrameMeta, Link, LinkId, Verdict};

use crate::counters::{LinkCounts, LinkShared};
use crate::record::{Event, Tap};

/// A link with its accounts.
pub struct Decider {
    pub(super) link: Link,
    pub(super) link_id: LinkId,
    counts: LinkCounts,
    shared: Arc<LinkShared>,
    tap: Option<Box<Tap>>,
    /// Frames offered so far, if they are recorded.
    offered: u64,
}

impl Decider {
    pub(crate) fn new(
        link: Link,
        link_id: LinkId,
        shared: Arc<LinkShared>,
        tap: Option<Tap>,
    ) -> Decider {
        Decider {
            link,
            link_id,
            counts: LinkCounts::default(),
            shared,
            tap: tap.map(Box::new),
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
        if self.tap.is_some() {
            self.record_offer(meta.len, bytes, verdict);
        }
        verdict
    }

    /// The number of the frame offered last, if that is recorded.
    pub(super) fn last_offered(&self) -> u64 {
        self.offered.saturating_sub(1)
    }

    /// The frame offered last is delivered once more.
    pub(super) fn copied(&mut self, delivery: &Delivery) {
        let frame = self.last_offered();
        self.decided_later(frame, Verdict::Deliver(*delivery), true);
    }

    /// The queue has decided about a frame that it took; `copy`: once more.
    pub(super) fn decided_later(&mut self, frame: u64, verdict: Verdict, copy: bool) {
        match &verdict {
            Verdict::Deliver(delivery) => self.counts.delivered(delivery, copy),
            Verdict::Drop(reason) => self.dropped(*reason),
            Verdict::Queued => {}
        }
        if let Some(tap) = &mut self.tap {
            let link = self.link_id;
            tap.push(&[], |_| Event::Decided {
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
        let Some(tap) = &mut self.tap else {
            return;
        };
        tap.push(bytes, |bytes| Event::Arrived {
            link,
            frame,
            arrival,
            len,
            queue,
            bytes,
        });
        if verdict != Verdict::Queued {
            tap.push(&[], |_| Event::Decided {
                link,
                frame,
                verdict,
            });
        }
    }

    /// Whether what comes in is recorded: frame by frame.
    pub(super) fn records(&self) -> bool {
        self.tap.is_some()
    }

    /// The run is over: nothing more will come.
    pub(super) fn finish(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.finish();
        }
        self.publish();
    }

    /// Shows the accounts to whoever reports.
    pub(super) fn publish(&mut self) {
        let (packets, bytes) = self.link.occupancy_max();
        self.counts.queue_packets_max = packets.0;
        self.counts.queue_bytes_max = bytes.0;
        if let Some(tap) = &mut self.tap {
            tap.flush();
            self.counts.unrecorded = tap.lost();
        }
        self.shared.link.store(&self.counts.to_cells());
    }
}
