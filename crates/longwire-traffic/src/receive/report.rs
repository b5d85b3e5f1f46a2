//! The report of a receiver.

use std::collections::BTreeMap;

use longwire_runtime::{Pauses, Spread};
use serde::Serialize;

use crate::rounded;

/// The report of a receiver: the frames that arrived at a port, and how true they were
/// to the frames expected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReceiveReport {
    /// The port, or the capture that was read.
    pub port: String,
    /// From the first arrival to the last, in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub duration_s: f64,
    /// Frames that arrived.
    pub packets: u64,
    /// Their bytes, from the destination address to the end of the payload.
    pub bytes: u64,
    /// The mean from the first arrival to the last.
    pub packets_per_s: f64,
    /// The mean from the first arrival to the last, of the same bytes.
    pub bits_per_s: f64,
    /// Frames that a filter left out; they count nowhere else.
    pub left_out: u64,
    /// Frames that arrived and could not be examined: the losses reported include
    /// them.
    pub unseen: Unseen,
    /// How fast frames came, over time.
    pub rates: Rates,
    /// Times between one frame and the next, in microseconds.
    pub gap_us: Spread,
    /// How true the frames were to the gap that was expected.
    pub expected_gap: Option<Timing>,
    /// The comparison with a trace.
    pub trace: Option<TraceReport>,
    /// How long frames took, where the sender is part of the same process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayReport>,
    /// Streams of probes, by number.
    pub streams: Vec<StreamReport>,
    /// Probes of streams beyond those that there is room for.
    pub stray_probes: u64,
    /// Pauses of the machine, if a witness watched for them.
    pub witness: Option<WitnessReport>,
    /// CPU time that the hypervisor gave to others while there was work, all
    /// cores together, in seconds; `None` where the system does not say.
    #[serde(serialize_with = "rounded::some_seconds")]
    pub stolen_s: Option<f64>,
    /// CPU time of the receiver's thread, in seconds; known at the end.
    #[serde(serialize_with = "rounded::seconds")]
    pub cpu_s: f64,
    /// Decisions and findings, in sentences.
    pub notes: Vec<String>,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}

/// The reports of receivers, by the names of the links whose frames they received.
pub type ReceivedByLink = BTreeMap<String, ReceiveReport>;

/// Frames that arrived and could not be examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The kernel's receive ring was full.
    pub ring_full: u64,
    /// They did not fit the ring's slots.
    pub too_long: u64,
    /// Their metadata contradicted their bytes.
    pub unusable: u64,
}

impl Unseen {
    /// The sum of all.
    pub fn total(self) -> u64 {
        self.ring_full + self.too_long + self.unusable
    }
}

/// How fast frames came, in intervals of equal length from the first arrival
/// on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// How long an interval is, in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub interval_s: f64,
    /// Frames in each.
    pub packets: Vec<u64>,
    /// Bytes in each.
    pub bytes: Vec<u64>,
}

/// How true arrivals were to a schedule.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timing {
    /// |gap − the schedule's gap| of frames that follow each other in both, in
    /// microseconds.
    pub gap_error_us: Spread,
    /// How much later than the first frame each came, against the schedule, in
    /// microseconds: negative for those that came earlier.
    pub offset_us: Spread,
    /// How much slower than the schedule arrivals came.
    pub drift: Option<Drift>,
}

/// The slope of arrivals against a schedule.
///
/// The run is cut into at most 256 stretches of equal length; of each the
/// frame counts that came earliest against the schedule, because any disturbance
/// (a pause of the machine, a queue) makes a frame later and never earlier
/// (Moon, Skelly, Towsley: Estimation and removal of clock skew from network
/// delay measurements, 1999). The slope is the median of the slopes between
/// all pairs of them (Theil 1950, Sen 1968), which stays where it is until
/// more than a quarter of the stretches is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Parts in a million; above zero where arrivals fell behind.
    pub ppm: f64,
    /// The lower end of its interval of 95 % confidence (Sen 1968).
    pub low_ppm: f64,
    /// The upper end.
    pub high_ppm: f64,
    /// From how many stretches.
    pub stretches: usize,
}

/// One stream of probes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StreamReport {
    /// Its number.
    pub stream: u32,
    /// Probes that arrived, duplicates and all.
    pub packets: u64,
    /// Losses, duplicates and reordering.
    pub sequence: SequenceReport,
    /// Arrival − time of sending, in microseconds. Below zero where the two
    /// machines' clocks differ by more than the delay.
    pub delay_us: Spread,
    /// The delay of one probe less that of the one sent before it (RFC 3393),
    /// where both arrived next to each other, in microseconds.
    pub delay_variation_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end, in
    /// microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
    /// The most that it was.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_max_us: f64,
    /// How true arrivals were to the times of sending.
    pub timing: Timing,
}

/// How long frames took from the handover to the port at one end to the stamp
/// of the arrival at the other.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DelayReport {
    /// Arrival − handover, in microseconds; of frames handed over early to a
    /// device that holds them, arrival − release. Frames that leave together
    /// count from the handover of the first.
    pub one_way_us: Spread,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end, in
    /// microseconds.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_us: f64,
    /// The most that it was.
    #[serde(serialize_with = "rounded::micros")]
    pub jitter_max_us: f64,
}

/// Losses, duplicates and reordering of numbered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SequenceReport {
    /// The lowest number that came.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// Different numbers that came.
    pub received: u64,
    /// Numbers between the lowest and the highest that did not come. Only the
    /// sender knows of losses before and after.
    pub lost: u64,
    /// Packets whose number had come before.
    pub duplicates: u64,
    /// Packets whose number was below one that had come before (RFC 4737,
    /// section 3: type-P-reordered); duplicates do not count.
    pub reordered: u64,
    /// Their share of what was received (RFC 4737, section 4.1).
    pub reordered_ratio: f64,
    /// How many packets came between one out of order and the first of those
    /// that it should have come before (RFC 4737, section 4.2).
    pub extent: Spread,
    /// How much later it came than that one, in microseconds (RFC 4737,
    /// section 4.3).
    pub late_us: Spread,
    /// Packets too far behind the highest number to be judged; they are in
    /// none of the other counts.
    pub beyond_window: u64,
}

/// Arrivals compared with the frames of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceReport {
    /// The trace.
    pub trace: String,
    /// Frames that it holds up to the last that came.
    pub frames: u64,
    /// Frames that arrived as the trace has them.
    pub matched: u64,
    /// Frames before the last that came which did not arrive.
    pub lost: u64,
    /// Frames after the last that came, as far as the trace was read: lost, or not
    /// sent.
    pub behind_last: u64,
    /// The trace was not read to its end, so that there are more of those.
    pub goes_on: bool,
    /// Frames that arrived once more.
    pub duplicates: u64,
    /// Frames that arrived after one that follows them in the trace.
    pub reordered: u64,
    /// Frames that arrived where one of the same length is missing, with
    /// other bytes.
    pub changed: u64,
    /// Frames that arrived and are none of the trace's.
    pub foreign: u64,
    /// Frames that the trace holds only the beginning of; they are compared as
    /// if zeros followed.
    pub cut: u64,
    /// How true arrivals were to the trace's own times.
    pub timing: Timing,
}

/// Pauses seen by a thread that did nothing but read the clock, in the idle
/// scheduling class: it runs only where no other thread wants its core.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WitnessReport {
    /// Times in which it did not run and no other thread had the core.
    pub pauses: Pauses,
    /// How much of the time it could watch, in seconds.
    #[serde(serialize_with = "rounded::seconds")]
    pub watched_s: f64,
}
