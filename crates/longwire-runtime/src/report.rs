//! What a run has to say of itself.

use std::collections::BTreeMap;

use serde::Serialize;

/// The report of a run.
///
/// `L` is the report of a link: a caller that knows more about each link than the
/// runtime wraps [`LinkReport`] ([`RunReport::map_links`]).
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunReport<L = LinkReport> {
    /// The seed of every random stream.
    pub seed: u64,
    /// When the links came to be, in nanoseconds since the Unix epoch:
    /// schedules and traces count from then. In virtual time, on the scale of
    /// the capture's stamps; 0 if no frame came.
    pub epoch_ns: u64,
    /// How long the run took, in seconds.
    pub duration_s: f64,
    /// One entry a direction.
    pub links: Vec<L>,
    /// What was read or generated, an entry a feed; empty of other runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputReport>,
    /// When the machine itself stood still, by the kernel's accounts.
    pub pauses: Pauses,
    /// When the process was stopped: by a signal such as SIGSTOP, a debugger
    /// or a freezer.
    pub stops: Pauses,
    /// CPU time of the emulator's threads, in seconds; known at the end.
    pub cpu_s: f64,
    /// How long the emulator's threads waited for a core that other programs
    /// had, in seconds; known at the end.
    pub core_wait_s: f64,
    /// How long before a release threads learnt to wake, in microseconds: the
    /// greatest of any thread.
    pub wake_margin_us: f64,
    /// What was decided or found at start, in sentences.
    pub notes: Vec<String>,
    /// Those of the notes that were found at the end, for the report in words:
    /// the others were printed at start.
    #[serde(skip)]
    pub closing_notes: Vec<String>,
    /// Why the run ended early, if it did.
    pub error: Option<String>,
}

impl<L> RunReport<L> {
    /// Adds notes that were found at the end.
    pub fn add_closing_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            self.notes.push(note.clone());
            self.closing_notes.push(note);
        }
    }

    /// Replaces the report of each link.
    pub fn map_links<M>(self, map: impl FnMut(L) -> M) -> RunReport<M> {
        RunReport {
            seed: self.seed,
            epoch_ns: self.epoch_ns,
            duration_s: self.duration_s,
            links: self.links.into_iter().map(map).collect(),
            inputs: self.inputs,
            pauses: self.pauses,
            stops: self.stops,
            cpu_s: self.cpu_s,
            core_wait_s: self.core_wait_s,
            wake_margin_us: self.wake_margin_us,
            notes: self.notes,
            closing_notes: self.closing_notes,
            error: self.error,
        }
    }
}

/// The report of one direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkReport {
    /// `up`, `down`, `ab` or `ba`.
    pub name: String,
    /// The link as its user would write it.
    pub config: BTreeMap<&'static str, String>,
    /// Frames that arrived.
    pub packets_in: u64,
    /// Frames handed to the output port.
    pub packets_out: u64,
    /// Bytes that arrived, without framing.
    pub bytes_in: u64,
    /// Bytes handed to the output port.
    pub bytes_out: u64,
    /// Emulated drops by reason; every reason is listed.
    pub drops: BTreeMap<&'static str, u64>,
    /// What the emulator did that the model did not ask for, by kind; every
    /// kind is listed.
    pub artifacts: BTreeMap<&'static str, u64>,
    /// Handover − release, in microseconds.
    pub lateness_us: Lateness,
    /// The same without what witnessed pauses of the machine took, and without
    /// frames that were late within the grace at the start.
    pub lateness_own_us: Lateness,
    /// How true the distances between departures were; of replays only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureReport>,
    /// When some of its frames really left; of replays whose port tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_stamps: Option<SendStampReport>,
    /// Releases raised to keep the order.
    pub raised: u64,
    /// Frames that a queue marked: congestion experienced.
    pub ecn_marked: u64,
    /// Delivered frames with bits spoilt by the medium.
    pub corrupted: u64,
    /// Copies that the medium made, beside the frames themselves; they are in
    /// `packets_out`.
    pub duplicated: u64,
    /// Frames in the delay line when the report was made.
    pub in_flight: u64,
    /// The most packets the emulated queue held.
    pub queue_packets_max: u64,
    /// The most bytes the emulated queue held.
    pub queue_bytes_max: u64,
    /// The most memory that frames and descriptors took, in bytes.
    pub memory_max: u64,
}

/// What was read of a trace, or generated.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InputReport {
    /// A file's name, or what was generated.
    pub name: String,
    /// How much of it was read, from 0 to 1, where that is known.
    pub fraction: Option<f64>,
    /// What was counted on the way, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// How long after it was due a frame was read, at the most, in
    /// microseconds; such frames are the artifact `behind`.
    pub behind_max_us: f64,
    /// What its user should know, in sentences.
    pub notes: Vec<String>,
}

/// How true the departures of an output were.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DepartureReport {
    /// |gap between two departures − gap of the schedule|, in microseconds.
    pub gap_error_us: Lateness,
    /// How much slower than the schedule frames left, in millionths, by least
    /// squares; `None` where all were due at once.
    pub drift_ppm: Option<f64>,
}

/// When frames really left, by stamps of a sample of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SendStampReport {
    /// Who stamped: `kernel`, as it hands a frame to the device, or `device`,
    /// as the frame goes onto the wire.
    pub by: &'static str,
    /// One frame in so many was to be stamped.
    pub every: u32,
    /// Stamps that came.
    pub count: u64,
    /// Stamp − release, in microseconds. The clocks are compared to about
    /// 0.1 us.
    pub lateness_us: Lateness,
    /// Stamps before their frame's release, which count as zero.
    pub early: u64,
    /// How much before, at the most, in microseconds.
    pub earliest_us: f64,
}

/// A summary of how late frames were handed over, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
}

/// Times during which a spinning thread of the emulator was not running at
/// all: the machine's own pauses, apart from the emulator's lateness.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Pauses {
    /// How many of 100 us or more were seen.
    pub count: u64,
    /// The longest, in microseconds.
    pub max_us: f64,
    /// Their sum, in microseconds.
    pub total_us: f64,
}
