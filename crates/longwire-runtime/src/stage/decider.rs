//! A link with its verdict counters and records, in the stage that owns it.

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
    pub(super) accounts: LinkAccounts,
}

/// The counters and records of a link's verdicts.
pub(super) struct LinkAccounts {
    pub link_id: LinkId,
    shared: Arc<LinkShared>,
    record_handle: Option<Box<RecordHandle>>,
    /// Number of offers, if recorded.
    offered: u64,
    /// Logs decisions made ahead of time, for clients.
    log: Option<Box<OfferLogger>>,
    /// Returns ICMP errors to the port of arrival.
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
            accounts: LinkAccounts {
                link_id,
                shared,
                record_handle: record_handle.map(Box::new),
                offered: 0,
                log: None,
                icmp: None,
            },
        }
    }

    /// Logs all decisions, for clients of a replay.
    pub(crate) fn log_to(&mut self, log: OfferLogger) {
        self.accounts.log = Some(Box::new(log));
    }

    /// Sends the ICMP errors of the link's router from now on.
    pub(crate) fn send_icmp_by(&mut self, icmp: IcmpSender) {
        self.accounts.icmp = Some(Box::new(icmp));
    }

    /// Offers a wire frame.
    #[inline(always)]
    pub(super) fn offer(&mut self, meta: FrameMeta, bytes: &[u8]) -> Verdict {
        let accounts = &mut self.accounts;
        accounts.log_offer(meta);
        let verdict = self.link.offer(meta, bytes);
        accounts.shared.link.link.decided(&verdict, false);
        if let Verdict::Drop(_) = verdict
            && let Some(error) = self.link.icmp_error()
        {
            accounts.send_icmp_error(meta.arrival, error);
        }
        if accounts.records() {
            accounts.record_offer(&self.link, meta.len, bytes);
            accounts.record_verdict(accounts.last_offered(), verdict);
        }
        if let Verdict::Deliver(delivery) = &verdict {
            accounts.log_delivery(meta, delivery);
        }
        verdict
    }

    /// Counts another delivery of the last offered frame.
    pub(super) fn copied(&mut self, delivery: &Delivery) {
        let accounts = &mut self.accounts;
        accounts.decided(accounts.last_offered(), Verdict::Deliver(*delivery), true);
    }

    /// Whether arrivals are recorded.
    pub(super) fn records(&self) -> bool {
        self.accounts.records()
    }

    /// Ends the recording after the last arrival.
    pub(super) fn finish(&mut self) {
        self.accounts.finish(&self.link);
    }

    /// Publishes queue lengths, recorder losses and the log.
    pub(super) fn publish(&mut self) {
        self.accounts.publish(&self.link);
    }
}

impl LinkAccounts {
    /// Logs a frame before its offer.
    #[inline]
    pub fn log_offer(&mut self, meta: FrameMeta) {
        if let Some(log) = &mut self.log {
            log.offered(meta);
        }
    }

    /// Logs that the queue has decided up to `time`.
    pub fn log_time(&mut self, time: Nanos) {
        if let Some(log) = &mut self.log {
            log.reached(time);
        }
    }

    /// Logs a delivery.
    #[inline]
    pub fn log_delivery(&mut self, frame: FrameMeta, delivery: &Delivery) {
        if let Some(log) = &mut self.log {
            log.delivered(frame, delivery);
        }
    }

    /// Sends the router's ICMP error about the last offered frame; counts it even without
    /// a reverse path.
    #[cold]
    pub fn send_icmp_error(&self, at: Nanos, error: &[u8]) {
        let icmp = self.icmp.as_ref();
        if icmp.is_none_or(|icmp| icmp.send(at, error)) {
            self.shared.link.link.icmp_sent();
        }
    }

    /// Returns the recorded number of the last offered frame.
    fn last_offered(&self) -> u64 {
        self.offered.saturating_sub(1)
    }

    /// Counts a verdict; `copy` marks further deliveries of the frame.
    pub fn decided(&mut self, frame: u64, verdict: Verdict, copy: bool) {
        self.shared.link.link.decided(&verdict, copy);
        self.record_verdict(frame, verdict);
    }

    fn record_verdict(&mut self, frame: u64, verdict: Verdict) {
        let link = self.link_id;
        if let Some(record_handle) = &mut self.record_handle
            && verdict != Verdict::Queued
        {
            record_handle.push_event(Event::Decided {
                link,
                frame,
                verdict,
            });
        }
    }

    /// Whether offers are recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.record_handle.is_some()
    }

    /// Records an offer if offers are recorded; returns the frame's number.
    #[cold]
    pub fn record_offer(&mut self, link: &Link, len: u32, bytes: &[u8]) -> u64 {
        let Some(record_handle) = &mut self.record_handle else {
            return 0;
        };
        let frame = self.offered;
        self.offered += 1;
        let (link_id, arrival, queue) = (self.link_id, link.last_arrival(), link.occupancy());
        // Ports of pairs and feeds have the numbers of their links.
        let port = PortIndex(link_id.0 as u16);
        record_handle.push(bytes, |bytes| Event::Entered {
            port,
            arrival,
            wire_len: len,
            bytes,
        });
        record_handle.push_event(Event::Arrived {
            link: link_id,
            frame,
            arrival,
            len,
            queue,
        });
        frame
    }

    /// Ends the recording after the last arrival.
    pub fn finish(&mut self, link: &Link) {
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.finish();
        }
        self.publish(link);
    }

    /// Publishes queue lengths, recorder losses and the log.
    pub fn publish(&mut self, link: &Link) {
        if let Some(log) = &mut self.log {
            log.enter();
        }
        let (packets, bytes) = link.occupancy_max();
        let cells = &self.shared.link.stage;
        cells.queue.queue_packets_max.set(packets.0);
        cells.queue.queue_bytes_max.set(bytes.0);
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.flush();
            cells.artifacts[Artifact::Unrecorded].set(record_handle.lost());
        }
    }
}
