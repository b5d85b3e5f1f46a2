//! What became of probes.

use std::io::{self, Write};

use longwire_runtime::RunReport;
use longwire_runtime::receive::{ReceiveReport, Spread};
use serde::Serialize;

use crate::report::text::{count_of, micros};

/// What became of the probes of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Received {
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
    /// Probes that arrived after one sent behind them (RFC 4737).
    pub reordered: u64,
    /// Frames that arrived and could not be looked at: they count as lost, but
    /// were not.
    pub unseen: u64,
    /// Time from when a frame was due to its arrival, in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1), in microseconds.
    pub jitter_us: f64,
}

/// Artifacts by which a frame is never sent.
pub(super) const UNSENT: [&str; 4] = ["memory", "refused", "send_failed", "port_down"];

/// How many frames of a run really entered the device: all but those that
/// were kept from it.
pub(super) fn sent(report: &RunReport) -> u64 {
    let links = report.links.iter();
    let sent = links.map(|link| {
        let unsent = UNSENT.iter().filter_map(|kind| link.artifacts.get(kind));
        let under_way = link.in_flight;
        link.packets_in
            .saturating_sub(unsent.sum::<u64>())
            .saturating_sub(under_way)
    });
    sent.sum()
}

impl Received {
    /// What a receiver found of a run's probes of this stream.
    pub fn of(report: &RunReport, receiver: &ReceiveReport, stream: u32) -> Received {
        let sent = sent(report);
        let streams = receiver.streams.iter();
        let Some(found) = streams.into_iter().find(|found| found.stream == stream) else {
            return Received {
                sent,
                lost: sent,
                loss: f64::from(u8::from(sent > 0)),
                unseen: receiver.unseen.total(),
                ..Received::default()
            };
        };
        let received = found.sequence.received;
        let lost = sent.saturating_sub(received);
        Received {
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

    /// Writes it for people.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Received {
            sent,
            received,
            lost,
            loss,
            duplicates,
            reordered,
            unseen,
            delay_us,
            jitter_us,
        } = self;
        writeln!(
            out,
            "probes: {received} of {sent} received, {lost} lost ({:.4} %), {duplicates} double, \
             {reordered} reordered",
            loss * 100.0
        )?;
        if *unseen > 0 {
            writeln!(
                out,
                "  {} arrived without room at the receiver: not lost",
                count_of(*unseen, "frame")
            )?;
        }
        writeln!(
            out,
            "  delay: least {}, median {}, p99 {}, greatest {}; jitter {} (RFC 3550)",
            micros(delay_us.min),
            micros(delay_us.p50),
            micros(delay_us.p99),
            micros(delay_us.max),
            micros(*jitter_us)
        )
    }
}
