//! The report of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::fabric::{PortReport, SwitchReport};
use crate::ledger::{
    CoreCounts, Counter, Effects, Memory, NamedCounts, QueueLengths, Spread, Traffic, histogram,
};

/// The report of a run.
///
/// `L` is the report of a link: a caller that knows more about each link than the
/// runtime wraps [`LinkReport`] ([`RunReport::map_links`]).
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunReport<L = LinkReport> {
    /// The seed of every random stream.
    pub seed: u64,
    /// The creation of the links, in nanoseconds since the Unix epoch:
    /// schedules and traces count from then. In virtual time, on the scale of
    /// the capture's stamps; 0 if no frame arrived.
    pub epoch_ns: u64,
    /// The duration of the run, in seconds.
    #[serde(serialize_with = "seconds")]
    pub duration_s: f64,
    /// One entry for each direction.
    pub links: Vec<L>,
    /// One entry for each feed; empty in other runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputReport>,
    /// One entry for each port of a network that can be changed. Its document is
    /// a [`NetworkDocument`]; others have no ports, and no switch.
    #[serde(skip)]
    pub ports: Vec<PortReport>,
    /// The switch; of a running network, as of the last query.
    #[serde(skip)]
    pub switch: SwitchReport,
    /// Counts of all links together.
    #[serde(skip)]
    pub counts: CoreCounts,
    /// Frames inside the network.
    #[serde(skip)]
    pub in_flight: u64,
    /// Pauses of the machine itself, by the kernel's accounts.
    pub pauses: Pauses,
    /// Stops of the process: by a signal such as SIGSTOP, a debugger or a
    /// freezer.
    pub stops: Pauses,
    /// CPU time of the emulator's threads, in seconds; known at the end.
    #[serde(serialize_with = "seconds")]
    pub cpu_s: f64,
    /// How long the emulator's threads waited for a core that was in use by
    /// other programs, in seconds; known at the end.
    #[serde(serialize_with = "seconds")]
    pub core_wait_s: f64,
    /// The wake margin that threads learnt, in microseconds: the maximum of all
    /// threads.
    pub wake_margin_us: f64,
    /// Notes of the start, as sentences.
    pub notes: Vec<String>,
    /// The notes made at the end, for the text report: the others were printed
    /// at the start.
    #[serde(skip)]
    pub closing_notes: Vec<String>,
    /// The run was in virtual time: no frame could be late.
    #[serde(skip)]
    pub virtual_time: bool,
    /// A replay was stopped before the end of its input.
    #[serde(skip)]
    pub stopped_early: bool,
    /// Why the run ended early, if it did.
    pub error: Option<String>,
}

impl RunReport {
    /// Returns the share of a replay that has been sent, from 0 to 1: of the inputs that was
    /// read, less the frames still waiting. `None` of other runs, and of inputs whose length
    /// is not known.
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
}

impl<L> RunReport<L> {
    /// Adds notes made at the end.
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
            ports: self.ports,
            switch: self.switch,
            counts: self.counts,
            in_flight: self.in_flight,
            pauses: self.pauses,
            stops: self.stops,
            cpu_s: self.cpu_s,
            core_wait_s: self.core_wait_s,
            wake_margin_us: self.wake_margin_us,
            notes: self.notes,
            closing_notes: self.closing_notes,
            virtual_time: self.virtual_time,
            stopped_early: self.stopped_early,
            error: self.error,
        }
    }
}

/// The report of a fabric, without its links.
//
// The layout of a `RunReport` in the JSON document of a network that can be
// changed. The line above is the description in the API's schema.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Report")]
#[serde(remote = "RunReport")]
pub struct NetworkDocument {
    /// The seed of every random stream.
    seed: u64,
    /// When it started, in nanoseconds since 1970.
    epoch_ns: u64,
    /// How long it has run, in seconds.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    duration_s: f64,
    /// Its ports.
    ports: Vec<PortReport>,
    /// The switch; of a running fabric, as of the last query.
    switch: SwitchReport,
    /// Counts of all links together.
    #[serde(flatten)]
    counts: CoreCounts,
    /// Frames inside.
    in_flight: u64,
    /// CPU time of its threads, in seconds; at the end only.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    cpu_s: f64,
    /// Pauses of the machine itself.
    pauses: Pauses,
    /// Stops of the process.
    stops: Pauses,
    /// How long its threads waited for a core that was in use, in seconds.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    core_wait_s: f64,
    /// The error that ended it, if one did.
    error: Option<String>,
    /// Notes of the run, as sentences.
    notes: Vec<String>,
    #[serde(skip)]
    links: Vec<LinkReport>,
    #[serde(skip)]
    inputs: Vec<InputReport>,
    #[serde(skip)]
    wake_margin_us: f64,
    #[serde(skip)]
    closing_notes: Vec<String>,
    #[serde(skip)]
    virtual_time: bool,
    #[serde(skip)]
    stopped_early: bool,
}

/// The report of one direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkReport {
    /// `up`, `down`, `ab` or `ba`.
    pub name: String,
    /// The link's options, as a user would write them.
    pub config: BTreeMap<&'static str, String>,
    /// Frames and bytes.
    #[serde(flatten, serialize_with = "frames_first")]
    pub traffic: Traffic,
    /// Emulated drops by reason; every reason is listed.
    pub drops: NamedCounts,
    /// Artifacts by kind; every kind is listed.
    pub artifacts: NamedCounts,
    /// Handover − release, in microseconds.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub lateness_us: Spread,
    /// The same without witnessed pauses of the machine, and without frames
    /// that were late within the grace at the start.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub lateness_own_us: Spread,
    /// `lateness_us` as a histogram: upper bounds and counts.
    #[serde(
        rename = "lateness_histogram_us",
        serialize_with = "histogram::serialize"
    )]
    pub lateness_buckets: Vec<(f64, u64)>,
    /// The accuracy of the gaps between departures; of replays only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureReport>,
    /// The actual departures of some frames; of replays whose port stamps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_stamps: Option<SendStampReport>,
    /// Effects of the models other than drops.
    #[serde(flatten)]
    pub effects: Effects,
    /// Frames in the delay line when the report was made.
    pub in_flight: u64,
    /// Lengths of the emulated queue.
    #[serde(flatten)]
    pub queue: QueueLengths,
    /// Memory of the delay line.
    #[serde(flatten)]
    pub memory: Memory,
}

impl LinkReport {
    /// Returns each counter with its value; drops and artifacts apart.
    pub fn counted(&self) -> impl Iterator<Item = (&'static Counter, u64)> + use<> {
        let counted = self.traffic.counted().chain(self.effects.counted());
        counted
            .chain(self.queue.counted())
            .chain(self.memory.counted())
    }
}

/// A distribution of times in the report of a link, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    /// The name of the measures of `--require`.
    pub name: &'static str,
    /// The group of its rows in the text report.
    pub group: &'static str,
    /// Reads it; `None` if nothing was measured.
    pub of: fn(&LinkReport) -> Option<Spread>,
}

/// The distributions of a link's report.
pub static DISTRIBUTIONS: [Distribution; 4] = [
    Distribution {
        name: "lateness",
        group: "lateness",
        of: |link| Some(link.lateness_us),
    },
    Distribution {
        name: "lateness-own",
        group: "own lateness",
        of: |link| Some(link.lateness_own_us),
    },
    Distribution {
        name: "gap",
        group: "gap error",
        of: |link| link.departures.as_ref().map(|found| found.gap_error_us),
    },
    Distribution {
        name: "sent",
        group: "sent late",
        of: |link| {
            let stamps = link.send_stamps.as_ref();
            stamps
                .map(|found| found.lateness_us)
                .filter(|lateness| lateness.count > 0)
        },
    },
];

/// Serializes seconds, to the microsecond.
fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e6).round() / 1e6)
}

/// Serializes frames in both directions, then bytes: the order of this report.
fn frames_first<S: Serializer>(traffic: &Traffic, serializer: S) -> Result<S::Ok, S::Error> {
    let mut counted: Vec<_> = traffic.counted().collect();
    counted.sort_by_key(|(counter, _)| counter.unit);
    serializer.collect_map(counted.iter().map(|(counter, count)| (counter.name, count)))
}

/// The report of a feed: a trace or a generator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InputReport {
    /// The name of the file, or a description of what was generated.
    pub name: String,
    /// The part of it that was read, from 0 to 1, if that is known.
    pub fraction: Option<f64>,
    /// Counts of the feed, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// The maximum time by which a frame was read after it was due, in
    /// microseconds; such frames are the artifact `behind`.
    pub behind_max_us: f64,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}

/// The accuracy of the departures of an output.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DepartureReport {
    /// |gap between two departures − gap of the schedule|, in microseconds.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub gap_error_us: Spread,
    /// How much slower than the schedule frames left, in parts per million, by
    /// least squares; `None` if all were due at once.
    pub drift_ppm: Option<f64>,
}

/// The actual departures of frames, by stamps of a sample of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SendStampReport {
    /// The source of the stamps: `kernel`, as it hands a frame to the device,
    /// or `device`, as the frame goes onto the wire.
    pub by: &'static str,
    /// One frame out of this many was to be stamped.
    pub every: u32,
    /// Stamps received.
    pub count: u64,
    /// Stamp − release, in microseconds. The clocks are compared to about
    /// 0.1 us.
    #[serde(serialize_with = "Spread::as_lateness")]
    pub lateness_us: Spread,
    /// Stamps before their frame's release, which count as zero.
    pub early: u64,
    /// The maximum time before the release, in microseconds.
    pub earliest_us: f64,
}

/// Times during which a spinning thread of the emulator did not run: the
/// machine's own pauses, apart from the emulator's lateness.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// The number of pauses of 100 us or more.
    pub count: u64,
    /// The longest, in microseconds.
    pub max_us: f64,
    /// Their sum, in microseconds.
    pub total_us: f64,
}
