//! A link and what is counted of its verdicts, in whichever stage has it.

use std::sync::Arc;

use longwire_engine::{Delivery, DropReason, Link, LinkId};

use crate::counters::{LinkCounts, LinkShared};

/// A link with its accounts.
pub(super) struct Decider {
    pub link: Link,
    pub link_id: LinkId,
    counts: LinkCounts,
    shared: Arc<LinkShared>,
}

impl Decider {
    pub fn new(link: Link, link_id: LinkId, shared: Arc<LinkShared>) -> Decider {
        Decider {
            link,
            link_id,
            counts: LinkCounts::default(),
            shared,
        }
    }

    /// A frame is delivered; `copy`: it is a duplicate.
    #[inline]
    pub fn delivered(&mut self, delivery: &Delivery, copy: bool) {
        self.counts.delivered(delivery, copy);
    }

    /// A frame is lost.
    #[inline]
    pub fn dropped(&mut self, reason: DropReason) {
        self.counts.drops[reason.index()] += 1;
    }

    /// Shows the accounts to whoever reports.
    pub fn publish(&mut self) {
        let (packets, bytes) = self.link.occupancy_max();
        self.counts.queue_packets_max = packets.0;
        self.counts.queue_bytes_max = bytes.0;
        self.shared.link.store(&self.counts.to_cells());
    }
}
