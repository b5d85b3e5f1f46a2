//! The probes of one run, sent and received.

use longwire_runtime::{Artifact, RunReport, Spread};
use serde::Serialize;

use crate::receive::ReceiveReport;
use crate::rounded;

/// The report of the probes of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeReport {
    /// Frames that left for the device, or entered the emulated link.
    pub sent: u64,
    /// Different probes that arrived.
    pub received: u64,
    /// Those that did not.
    pub lost: u64,
    /// Their share.
    pub loss: f64,
    /// Probes that arrived again.
    pub duplicates: u64,
    /// Probes that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// Frames that arrived and could not be examined: they count as lost, but were
    /// not.
    pub unseen: u64,
    /// Time from when a frame was due to its arrival, in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1), in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
}

/// Artifacts by which a frame is never sent.
pub(super) const UNSENT: [Artifact; 4] = [
    Artifact::Memory,
    Artifact::Refused,
    Artifact::SendFailed,
    Artifact::PortDown,
];

/// The number of frames of a run that entered the device: all but those that were
/// never sent.
pub(super) fn sent(report: &RunReport) -> u64 {
    let links = report.links.iter();
    let sent = links.map(|link| {
        let unsent = UNSENT.iter().map(|kind| link.artifacts.of(kind.name()));
        let gone = unsent.sum::<u64>() + link.in_flight;
        link.traffic.packets_in.saturating_sub(gone)
    });
    sent.sum()
}

impl ProbeReport {
    /// Makes the report of a run's probes of this stream, from a receiver's report.
    pub fn of(report: &RunReport, receiver: &ReceiveReport, stream: u32) -> ProbeReport {
        let sent = sent(report);
        let streams = receiver.streams.iter();
        let Some(found) = streams.into_iter().find(|found| found.stream == stream) else {
            return ProbeReport {
                sent,
                lost: sent,
                loss: f64::from(u8::from(sent > 0)),
                unseen: receiver.unseen.total(),
                ..ProbeReport::default()
            };
        };
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
