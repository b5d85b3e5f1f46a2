//! Receiver reports.

use std::collections::BTreeMap;

use longwire_runtime::{Pauses, Spread};
use serde::Serialize;

use crate::rounded;

/// A receiver's report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReceiveReport {
    /// Port name, or path of the capture.
    pub port: String,
    /// Time from the first arrival to the last, in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub duration_s: f64,
    /// Number of frames that arrived.
    pub packets: u64,
    /// Bytes from the destination MAC address to the end of the payload.
    pub bytes: u64,
    /// Mean rate in frames/s, from the first arrival to the last.
    pub packets_per_s: f64,
    /// Mean rate in bit/s, from the first arrival to the last, counting the same bytes.
    pub bits_per_s: f64,
    /// Frames excluded by the filter; no other field counts them.
    pub left_out: u64,
    /// Frames that arrived but could not be examined; losses include them.
    pub unseen: Unseen,
    /// Rates over time.
    pub rates: Rates,
    /// Gaps between frames, in microseconds.
    pub gap_us: Spread,
    /// Timing relative to the expected gap.
    pub expected_gap: Option<Timing>,
    /// Comparison with a trace.
    pub trace: Option<TraceReport>,
    /// Delay, if the sender is in the same process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayReport>,
    /// Probe streams by number.
    pub streams: Vec<StreamReport>,
    /// Probes in streams beyond the maximum number of streams.
    pub stray_probes: u64,
    /// Machine pauses, if a witness thread ran.
    pub witness: Option<WitnessReport>,
    /// Steal time of all cores in seconds; `None` if unknown.
    #[serde(serialize_with = "rounded::some_seconds")]
    pub stolen_s: Option<f64>,
    /// CPU time of the receiving thread in seconds; set at the end.
    #[serde(serialize_with = "rounded::seconds")]
    pub cpu_s: f64,
    /// Notes to the user.
    pub notes: Vec<String>,
    /// Reason why the receiver ended early, if so.
    pub error: Option<String>,
}

/// Receiver reports by link name.
pub type ReceivedByLink = BTreeMap<String, ReceiveReport>;

/// Frames that arrived but could not be examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// Kernel receive ring overflow.
    pub ring_full: u64,
    /// Frames longer than a ring slot.
    pub too_long: u64,
    /// Frames with inconsistent metadata.
    pub unusable: u64,
}

impl Unseen {
    /// Returns the sum.
    pub fn total(self) -> u64 {
        self.ring_full + self.too_long + self.unusable
    }
}

/// Rates in intervals of equal length, from the first arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Interval length in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub interval_s: f64,
    /// Frames per interval.
    pub packets: Vec<u64>,
    /// Bytes per interval.
    pub bytes: Vec<u64>,
}

/// Timing of arrivals relative to a schedule.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timing {
    /// |gap − scheduled gap| between adjacent frames, in microseconds.
    pub gap_error_us: Spread,
    /// Offset from the schedule, relative to the first frame, in microseconds; negative if early.
    pub offset_us: Spread,
    /// Drift relative to the schedule.
    pub drift: Option<Drift>,
}

/// Slope of arrivals relative to a schedule.
///
/// The run is divided into at most 256 intervals, each represented by its earliest frame relative
/// to the schedule, because disturbances (pauses, queues) only delay frames (Moon, Skelly, Towsley:
/// Estimation and removal of clock skew from network delay measurements, 1999). The slope is the
/// median over all pairs of intervals (Theil 1950, Sen 1968), with a breakdown point above 25 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Parts per million; positive if arrivals fall behind.
    pub ppm: f64,
    /// Lower end of the 95 % confidence interval (Sen 1968).
    pub low_ppm: f64,
    /// Upper end of the 95 % confidence interval.
    pub high_ppm: f64,
    /// Number of intervals.
    pub stretches: usize,
}

/// Report on a probe stream.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StreamReport {
    /// Stream number.
    pub stream: u32,
    /// Probes that arrived, including duplicates.
    pub packets: u64,
    /// Losses, duplicates and reordering.
    pub sequence: SequenceReport,
    /// Arrival minus send time, in microseconds; negative if the clocks differ by more than the
    /// delay.
    pub delay_us: Spread,
    /// Delay difference between consecutive probes that arrived in order (RFC 3393), in
    /// microseconds.
    pub delay_variation_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end, in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
    /// Maximum jitter in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_max_us: f64,
    /// Timing of arrivals relative to send times.
    pub timing: Timing,
}

/// Delay from the handover at the egress port to the receive timestamp.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DelayReport {
    /// Arrival minus handover, in microseconds. For frames handed over early to a device that holds
    /// them, arrival minus release. Frames of a batch share the handover of the first.
    pub one_way_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end, in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
    /// Maximum jitter in microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_max_us: f64,
}

/// Loss, duplication and reordering of numbered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SequenceReport {
    /// Lowest number received.
    pub first: u64,
    /// Highest number received.
    pub last: u64,
    /// Distinct numbers received.
    pub received: u64,
    /// Missing numbers between the lowest and the highest. Losses outside that range are known only
    /// to the sender.
    pub lost: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Packets below an earlier number (RFC 4737, section 3: type-P-reordered), excluding
    /// duplicates.
    pub reordered: u64,
    /// Share of received packets that were reordered (RFC 4737, section 4.1).
    pub reordered_ratio: f64,
    /// Reordering extent in packets (RFC 4737, section 4.2).
    pub extent: Spread,
    /// Late time offset in microseconds (RFC 4737, section 4.3).
    pub late_us: Spread,
    /// Packets too far below the highest number to be classified; not included in other counters.
    pub beyond_window: u64,
}

/// Comparison of arrivals with a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceReport {
    /// File name of the trace.
    pub trace: String,
    /// Trace frames up to the last arrival.
    pub frames: u64,
    /// Frames that arrived unchanged.
    pub matched: u64,
    /// Missing frames before the last arrival.
    pub lost: u64,
    /// Frames after the last arrival, as far as the trace was read; either lost or not sent.
    pub behind_last: u64,
    /// Whether the trace continues, so that `behind_last` is incomplete.
    pub goes_on: bool,
    /// Duplicates.
    pub duplicates: u64,
    /// Frames that arrived after a later frame in the trace.
    pub reordered: u64,
    /// Unmatched frames with the length of a missing frame, which they replace.
    pub changed: u64,
    /// Frames that are not in the trace.
    pub foreign: u64,
    /// Frames truncated in the trace, compared as if padded with zeros.
    pub cut: u64,
    /// Timing relative to the trace.
    pub timing: Timing,
}

/// Machine pauses detected by a thread that reads the clock. The thread is in the idle scheduling
/// class, so it runs only while its core is otherwise idle.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WitnessReport {
    /// Times when neither the witness nor another thread ran on the core.
    pub pauses: Pauses,
    /// Observation time in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub watched_s: f64,
}
