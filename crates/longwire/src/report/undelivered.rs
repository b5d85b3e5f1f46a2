//! Explains runs that delivered no frame, with remedies.

use std::collections::BTreeMap;

use longwire_engine::DropReason;
use longwire_runtime::RunReport;

use super::words::{count, count_of};
use crate::table::joined;

/// Drop reasons that are usually intended: losses and outages. If other reasons drop every frame,
/// the configuration is probably wrong.
const ASKED_FOR: [DropReason; 5] = [
    DropReason::EntryLoss,
    DropReason::Loss,
    DropReason::BitError,
    DropReason::Outage,
    DropReason::Content,
];

/// Remedies for unintended drops of every frame.
const REMEDIES: [(DropReason, &str); 3] = [
    (
        DropReason::Mtu,
        "frames exceed --mtu (only IPv4 without DF can be fragmented); raise --mtu",
    ),
    (
        DropReason::QueueFull,
        "no frame fits into the queue; raise --queue",
    ),
    (
        DropReason::Ttl,
        "--router or --rewrite reduces every time to live to 0; remove it, or raise the senders' \
         time to live",
    ),
];

/// Frames of a run that received frames but delivered none.
pub(super) struct UndeliveredFrames {
    frames: u64,
    in_flight: u64,
    drops: BTreeMap<String, u64>,
}

impl UndeliveredFrames {
    /// Returns the undelivered frames; `None` if a frame was delivered, or none arrived.
    pub fn of(report: &RunReport) -> Option<UndeliveredFrames> {
        let frames = report.frames_in();
        // A router's ICMP errors leave through a port without crossing a link.
        let mut links = report.links.iter().map(|link| link.traffic);
        let mut ports = report.ports.iter().map(|port| port.traffic);
        let delivered = if report.links.is_empty() {
            ports.any(|traffic| traffic.packets_out > 0)
        } else {
            links.any(|traffic| traffic.packets_out > 0) || report.counts.passed > 0
        };
        if frames == 0 || delivered {
            return None;
        }
        let mut drops = BTreeMap::new();
        for (reason, dropped) in report.links.iter().flat_map(|link| link.drops.nonzero()) {
            *drops.entry(reason.to_owned()).or_insert(0) += dropped;
        }
        Some(UndeliveredFrames {
            frames,
            in_flight: report.in_flight,
            drops,
        })
    }

    /// Returns whether all drops are usually intended, or frames are still in flight.
    pub fn asked_for(&self) -> bool {
        let is_configured = |reason: &str| ASKED_FOR.iter().any(|meant| meant.name() == reason);
        self.in_flight > 0 || self.drops.keys().all(|reason| is_configured(reason))
    }

    /// Returns the reasons as a line: `none of 5 frames delivered: 5 dropped by loss`.
    pub fn line(&self) -> String {
        let drops = self.drops.iter();
        let drops = drops.map(|(reason, drops)| format!("{} dropped by {reason}", count(*drops)));
        let waiting = (self.in_flight > 0).then(|| format!("{} in flight", count(self.in_flight)));
        let frames = format!("none of {} delivered", count_of(self.frames, "frame"));
        match joined(drops.chain(waiting), ", ").as_str() {
            "" => frames,
            reasons => format!("{frames}: {reasons}"),
        }
    }

    /// Returns remedies, unless the configuration explains the loss.
    pub fn hints(&self) -> Vec<String> {
        let remedies = REMEDIES.iter();
        remedies
            .filter(|(reason, _)| !self.asked_for() && self.drops.contains_key(reason.name()))
            .map(|(reason, remedy)| format!("{}: {remedy}", reason.name()))
            .collect()
    }
}
