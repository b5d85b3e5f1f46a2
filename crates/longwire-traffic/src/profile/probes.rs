//! Probes in a run.

use longwire_runtime::{Artifact, RunReport, Spread};
use serde::Serialize;

use crate::receive::ReceiveReport;
use crate::rounded;

/// Report on the probes in a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeReport {
    /// Frames that entered the device or the emulated link.
    pub sent: u64,
    /// Distinct probes that arrived.
    pub received: u64,
    /// Probes that did not arrive.
    pub lost: u64,
    /// Share of sent probes that were lost.
    pub loss: f64,
    /// Duplicates.
    pub duplicates: u64,
    /// Probes that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// Frames that arrived but could not be examined; included in `lost`.
    pub unseen: u64,
    /// Time from due time to arrival, in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1), in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
}

/// Artifacts whose frames were never sent.
pub(super) const UNSENT: [Artifact; 4] = [
    Artifact::Memory,
    Artifact::Refused,
    Artifact::SendFailed,
    Artifact::NoCarrier,
];

/// Returns the number of frames in a run that entered the device.
pub(super) fn sent(report: &RunReport) -> u64 {
    let sent = report.links.iter().map(|link| {
        let unsent = UNSENT.iter().map(|kind| link.artifacts.of(kind.name()));
        let gone = unsent.sum::<u64>() + link.in_flight;
        link.traffic.packets_in.saturating_sub(gone)
    });
    sent.sum()
}

impl ProbeReport {
    /// Creates the report on a probe stream.
    pub fn of(report: &RunReport, receiver: &ReceiveReport, stream: u32) -> ProbeReport {
        let sent = sent(report);
        let mut streams = receiver.streams.iter();
        let found = streams.find(|found| found.stream == stream);
        let found = found.copied().unwrap_or_default();
        let received = found.sequence.received;
        let lost = sent.saturating_sub(received);
        ProbeReport {
            sent,
            received,
            lost,
            loss: lost as f64 / sent.max(1) as f64,
            duplicates: found.sequence.duplicates,
            reordered: found.sequence.reordered,
            unseen: receiver.unseen.total(),
            delay_us: found.delay_us,
            jitter_us: found.jitter_us,
        }
    }
}
