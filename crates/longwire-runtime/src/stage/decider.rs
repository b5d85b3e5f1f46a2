//! A link with the counters and records of its verdicts, in the stage that owns
//! it.

use std::sync::Arc;

use longwire_engine::{Delivery, FrameMeta, Link, LinkId, Nanos, Verdict};
use longwire_packet::bridge::PortIndex;

use super::icmp::IcmpSender;
use crate::counters::LinkShared;
use crate::ledger::Artifact;
use crate::record::{Event, RecordHandle};
use crate::replay::OfferLogger;

/// A link with its accounts.
pub struct Decider {
    pub(super) link: Link,
    pub(super) link_id: LinkId,
    shared: Arc<LinkShared>,
    record_handle: Option<Box<RecordHandle>>,
    /// Frames offered so far, if they are recorded.
    offered: u64,
    /// Logs what is decided ahead of its time, for clients.
    log: Option<Box<OfferLogger>>,
    /// The way of ICMP errors back to the port where frames arrive.
    icmp: Option<Box<IcmpSender>>,
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
            shared,
            record_handle: record_handle.map(Box::new),
            offered: 0,
            log: None,
            icmp: None,
        }
    }

    /// Logs all decisions, for a replay that clients look at.
    pub(crate) fn log_to(&mut self, log: OfferLogger) {
        self.log = Some(Box::new(log));
    }

    /// Sends ICMP errors of the link's router from now on.
    pub(crate) fn send_icmp_by(&mut self, icmp: IcmpSender) {
        self.icmp = Some(Box::new(icmp));
    }

    /// Logs that the queue has decided up to `time`.
    pub(super) fn decided_until(&mut self, time: Nanos) {
        if let Some(log) = &mut self.log {
            log.reached(time);
        }
    }

    /// Logs a delivery that the queue decided about later.
    pub(super) fn log_delivery(&mut self, frame: FrameMeta, delivery: &Delivery) {
        if let Some(log) = &mut self.log {
            log.delivered(frame, delivery);
        }
    }

    /// Offers one wire frame.
    #[inline(always)]
    pub(super) fn offer(&mut self, meta: FrameMeta, bytes: &[u8]) -> Verdict {
        if let Some(log) = &mut self.log {
            log.offered(meta);
        }
        let verdict = self.link.offer(meta, bytes);
        self.shared.link.link.decided(&verdict, false);
        if let Verdict::Drop(_) = verdict {
            self.send_icmp_error(meta.arrival);
        }
        if self.record_handle.is_some() {
            self.record_offer(meta.len, bytes, verdict);
        }
        if let (Some(log), Verdict::Deliver(delivery)) = (&mut self.log, &verdict) {
            log.delivered(meta, delivery);
        }
        verdict
    }

    /// Sends the error of the link's router about the frame offered last, if there is one.
    /// Without a way back it is counted all the same.
    #[cold]
    fn send_icmp_error(&self, at: Nanos) {
        let Some(error) = self.link.icmp_error() else {
            return;
        };
        let icmp = self.icmp.as_ref();
        if icmp.is_none_or(|icmp| icmp.send(at, error)) {
            self.shared.link.link.icmp_sent();
        }
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
        self.shared.link.link.decided(&verdict, copy);
        if let Some(record_handle) = &mut self.record_handle {
            let link = self.link_id;
            record_handle.push_event(Event::Decided {
                link,
                frame,
                verdict,
            });
        }
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
        // The ports of pairs and of feeds have the numbers of the links behind them.
        let port = PortIndex(link.0 as u16);
        record_handle.push(bytes, |bytes| Event::Entered {
            port,
            arrival,
            wire_len: len,
            bytes,
        });
        record_handle.push_event(Event::Arrived {
            link,
            frame,
            arrival,
            len,
            queue,
        });
        if verdict != Verdict::Queued {
            record_handle.push_event(Event::Decided {
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

    /// Publishes the lengths of the queue, what the recorder lost, and what was logged.
    pub(super) fn publish(&mut self) {
        if let Some(log) = &mut self.log {
            log.enter();
        }
        let (packets, bytes) = self.link.occupancy_max();
        let cells = &self.shared.link.stage;
        cells.queue.queue_packets_max.set(packets.0);
        cells.queue.queue_bytes_max.set(bytes.0);
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.flush();
            cells.artifacts[Artifact::Unrecorded].set(record_handle.lost());
        }
    }
}
