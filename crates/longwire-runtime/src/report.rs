//! Run reports.

use std::collections::BTreeMap;

use longwire_engine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::counters::{
    Artifact, CoreCounts, Counter, Effects, Handovers, LinkTotals, Memory, NamedCounts,
    QueueLengths, Spread, Traffic,
};
use crate::deciding::{PortReport, SwitchReport};

/// Report on a run: of a pair of ports, of a network, or of a replay.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "Report",
    description = "The report of the run so far, without its links."
)]
pub struct RunReport {
    /// Seed of all random streams.
    pub seed: u64,
    // The time at which the links were created, from which schedules and traces count. In virtual
    // time, it is on the scale of the capture's timestamps; 0 if no frame arrived.
    /// Start of the run, as Unix time in nanoseconds.
    pub epoch_ns: u64,
    /// Duration so far, in seconds.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub duration_s: f64,
    /// One entry per direction of each link. The API returns them through separate routes.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    pub links: Vec<LinkReport>,
    /// One entry per feed; empty in other runs.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub inputs: Vec<InputReport>,
    /// Ports of the run.
    pub ports: Vec<PortReport>,
    /// State of the switch; for a running network, as of the last query.
    pub switch: SwitchReport,
    /// Counts over all links.
    #[serde(flatten)]
    pub counts: CoreCounts,
    /// Frames in flight.
    pub in_flight: u64,
    /// CPU time of the run's threads, in seconds; only at the end.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub cpu_s: f64,
    /// Machine pauses.
    pub pauses: Pauses,
    /// Process stops.
    pub stops: Pauses,
    /// Time that the run's threads waited for busy cores, in seconds.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub core_wait_s: f64,
    /// Maximum wake margin that any thread learnt, in microseconds.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    pub wake_margin_us: f64,
    /// Error that ended the run, if any.
    pub error: Option<String>,
    /// Notes on the run, as sentences.
    pub notes: Vec<String>,
    /// Exchange with other hosts, if the network spans several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsReport>,
    /// Notes made at the end, for the text report. Other notes were printed at the start.
    #[serde(skip)]
    pub closing_notes: Vec<String>,
    /// Lateness above which a handover is an artifact.
    #[serde(skip)]
    pub tolerance: Nanos,
    /// Whether the run was in virtual time, in which no frame can be late.
    #[serde(skip)]
    pub virtual_time: bool,
    /// Whether a replay was stopped before the end of its input.
    #[serde(skip)]
    pub stopped_early: bool,
}

impl RunReport {
    /// Returns the share of a replay that has been sent, from 0 to 1: the share of the inputs that
    /// was read, less the frames still queued. `None` for other runs and for inputs of unknown
    /// length.
    pub fn progress(&self) -> Option<f64> {
        let read = self.inputs.iter().map(|input| input.fraction);
        let read: Option<Vec<f64>> = read.collect();
        let read = read.filter(|read| !read.is_empty())?;
        let read = read.into_iter().fold(1.0, f64::min);
        let arrived: u64 = self.links.iter().map(|link| link.traffic.packets_in).sum();
        let waiting: u64 = self.links.iter().map(|link| link.in_flight).sum();
        let gone = arrived.saturating_sub(waiting) as f64;
        Some(read * gone / arrived.max(1) as f64)
    }

    /// Returns the number of frames that entered the ports or, for a replay, the links.
    pub fn frames_in(&self) -> u64 {
        let ports = self.ports.iter().map(|port| port.traffic.packets_in);
        let links = self.links.iter().map(|link| link.traffic.packets_in);
        match ports.sum() {
            0 => links.sum(),
            frames => frames,
        }
    }

    /// Adds notes made at the end.
    pub fn add_closing_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            self.notes.push(note.clone());
            self.closing_notes.push(note);
        }
    }
}

/// Report on one direction of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkReport {
    /// `link.up`, `link.down`, or the name of a replay's output.
    pub name: String,
    /// Whether the link was removed while the network ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The link's options, as a user would write them.
    pub config: Map<String, Value>,
    /// Frames and bytes.
    #[serde(flatten, serialize_with = "frames_first")]
    pub traffic: Traffic,
    /// Emulated drops by reason. Every reason is listed.
    pub drops: NamedCounts,
    /// Late handovers of the link's frames. The ports count them as artifacts.
    #[serde(flatten)]
    pub handovers: Handovers,
    /// Accuracy of the gaps between departures, for replays only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureReport>,
    /// Actual departures of some frames, for replays whose port stamps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_stamps: Option<SendStampReport>,
    /// Effects of the models, other than drops.
    #[serde(flatten)]
    pub effects: Effects,
    /// Frames on the link at the time of the report.
    pub in_flight: u64,
    /// Lengths of the emulated queue. Measured only without `--control`.
    #[serde(flatten)]
    pub queue: Option<QueueLengths>,
    // Measured by the stages of a link without a network. In JSON, ports hold these values.
    /// Artifacts by kind. Every kind is listed.
    #[serde(skip)]
    pub artifacts: NamedCounts,
    /// Handover − release, in microseconds.
    #[serde(skip)]
    pub lateness_us: Spread,
    /// Lateness without witnessed machine pauses, and without frames that were late within the
    /// grace period at the start.
    #[serde(skip)]
    pub lateness_own_us: Spread,
    /// `lateness_us` as a histogram: upper bounds and counts.
    #[serde(skip)]
    pub lateness_buckets: Vec<(f64, u64)>,
    /// The delay line's memory.
    #[serde(skip)]
    pub memory: Memory,
}

impl LinkReport {
    /// Returns the counters of traffic and effects with their values.
    pub fn counted(&self) -> impl Iterator<Item = (&'static Counter, u64)> + use<> {
        self.traffic.counted().chain(self.effects.counted())
    }

    /// Returns the report on a network's link, without its options.
    pub fn of_network(name: &str, totals: &LinkTotals) -> LinkReport {
        LinkReport {
            name: name.to_owned(),
            traffic: totals.traffic,
            drops: totals.drops.iter().collect(),
            handovers: totals.handovers,
            effects: totals.effects,
            in_flight: totals.held(),
            lateness_us: Spread::UNMEASURED,
            lateness_own_us: Spread::UNMEASURED,
            ..LinkReport::default()
        }
    }
}

/// A distribution of times in a link's report, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    /// Name of its measures in `--require`.
    pub name: &'static str,
    /// Group of its rows in the text report.
    pub group: &'static str,
    /// Returns the distribution; `None` if nothing was measured.
    pub of: fn(&LinkReport) -> Option<Spread>,
}

/// All distributions in a link's report.
pub static DISTRIBUTIONS: [Distribution; 4] = [
    distribution("lateness", "lateness", |link| Some(link.lateness_us)),
    distribution("lateness-own", "own lateness", |link| {
        Some(link.lateness_own_us)
    }),
    distribution("gap", "gap error", |link| {
        Some(link.departures.as_ref()?.gap_error_us)
    }),
    distribution("sent", "sent late", |link| {
        let lateness = link.send_stamps.as_ref()?.lateness_us;
        Some(lateness).filter(|lateness| lateness.count > 0)
    }),
];

const fn distribution(
    name: &'static str,
    group: &'static str,
    of: fn(&LinkReport) -> Option<Spread>,
) -> Distribution {
    Distribution { name, group, of }
}

/// Serializes seconds with microsecond precision.
fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e6).round() / 1e6)
}

/// Serializes the frame counters before the byte counters.
fn frames_first<S: Serializer>(traffic: &Traffic, serializer: S) -> Result<S::Ok, S::Error> {
    let mut counted: Vec<_> = traffic.counted().collect();
    counted.sort_by_key(|(counter, _)| counter.unit);
    serializer.collect_map(counted.iter().map(|(counter, count)| (counter.name, count)))
}

/// Report on a feed: a trace or a generator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InputReport {
    /// File name, or a summary of the generated traffic.
    pub name: String,
    /// The share that was read, from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// The feed's counts, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Maximum time in microseconds by which a frame was read after it was due. Such frames are the
    /// artifact `behind`.
    pub behind_max_us: f64,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}

/// Accuracy of an output's departures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DepartureReport {
    /// |gap between two departures − gap in the schedule|, in microseconds.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub gap_error_us: Spread,
    /// Slowdown of the departures relative to the schedule, in parts per million, by least squares;
    /// `None` if all frames were due at once.
    pub drift_ppm: Option<f64>,
}

/// Actual departures of frames, from the stamps of a sample.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SendStampReport {
    /// Source of the stamps: `kernel`, as it hands a frame to the device, or `device`, as the frame
    /// goes onto the wire.
    pub by: &'static str,
    /// Sampling interval of the stamps, in frames.
    pub every: u32,
    /// Stamps received.
    pub count: u64,
    /// Stamp − release, in microseconds. The offset between the clocks is accurate to about
    /// 0.1 us.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub lateness_us: Spread,
    /// Stamps before their frame's release, which count as zero.
    pub early: u64,
    /// The maximum time before the release, in microseconds.
    pub earliest_us: f64,
}

/// Pauses of the machine: times during which a spinning emulator thread did not run. They are not
/// part of the emulator's lateness.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Number of pauses of at least 100 us.
    pub count: u64,
    /// Longest pause, in microseconds.
    pub max_us: f64,
    /// Total length of the pauses, in microseconds.
    pub total_us: f64,
}

/// Report on the exchange with other hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hosts")]
pub struct HostsReport {
    /// Name of this host.
    pub name: String,
    /// Datagrams from unknown senders, and datagrams from known senders that match no session or
    /// handshake.
    pub foreign: u64,
    /// Buffers of one or more datagrams that the kernel dropped at this host's socket, because its
    /// receive buffer was full or, rarely, a checksum was incorrect. Their frames are resent or
    /// count as lost.
    #[serde(default)]
    pub receive_overflows: u64,
    /// The other hosts.
    pub peers: Vec<PeerReport>,
}

/// Report on the exchange with one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Peer")]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Whether the host was responding at the end.
    pub connected: bool,
    /// Sessions established, each with separate keys.
    pub sessions: u64,
    /// Number of silences of more than a second.
    pub outages: u64,
    /// Frames sent to the host.
    pub frames_sent: u64,
    /// Frames not sent because the host was not responding.
    pub frames_unsent: u64,
    /// Frames sent after the host was last heard and before it was reported silent. They are lost,
    /// unless the host resumes and counts them itself.
    #[serde(default)]
    pub frames_unconfirmed: u64,
    /// Frames received from the host.
    pub frames_received: u64,
    /// Frames lost in transit from the host, or at this host's socket (`receive_overflows`).
    pub frames_lost: u64,
    /// Frames to or from the peer that this host dropped because its buffers were full.
    #[serde(default)]
    pub frames_dropped: u64,
    /// Frames lost in transit from the host that arrived when resent.
    #[serde(default)]
    pub frames_recovered: u64,
    /// Datagrams resent to the host.
    #[serde(default)]
    pub datagrams_resent: u64,
    /// Frames received after their release.
    pub frames_late: u64,
    /// Maximum lateness of late frames, in nanoseconds.
    pub late_max_ns: u64,
    /// Minimum time between a frame's arrival and its release, in nanoseconds; negative for a late
    /// frame. Absent before the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare_min_ns: Option<i64>,
    /// Datagrams sent to the host, including those for sessions and clocks.
    pub datagrams_sent: u64,
    /// UDP payload sent to the host, in bytes.
    pub bytes_sent: u64,
    /// Datagrams from the host's address that were dropped as foreign.
    #[serde(default)]
    pub foreign: u64,
    /// Duplicate datagrams, and datagrams from earlier sessions or handshakes.
    pub replayed: u64,
    /// Minimum round trip in nanoseconds.
    pub round_trip_ns: u64,
    /// The host's wall clock minus this host's, in nanoseconds. Absent until estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// Uncertainty of offsets, in nanoseconds: half of the minimum round trip.
    pub clock_uncertainty_ns: u64,
    /// Skew in ppm: how much faster this host's clock runs than the other's.
    pub clock_skew_ppm: f64,
    /// Last error when sending to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_error: Option<String>,
}

impl PeerReport {
    /// Returns the exchange's artifacts, by kind.
    pub fn artifacts(&self) -> NamedCounts {
        let lost = self.frames_lost + self.frames_unconfirmed;
        let kinds = [
            (Artifact::UnderlayLost, lost),
            (Artifact::Memory, self.frames_dropped),
        ];
        kinds.map(|(kind, count)| (kind.name(), count)).into()
    }
}
