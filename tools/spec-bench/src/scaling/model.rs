//! The model: batches, windows and barriers, with a cost for each step.

use longwire_engine::Nanos;
use longwire_runtime::shards::{ShardPlan, plan};
use longwire_units::random::Stream;
use serde::{Deserialize, Serialize};

use super::topologies::Topology;

/// Costs of the steps, in nanoseconds of one core. `longwire bench links --json` is to
/// print the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Costs {
    /// The calling thread, for each frame: reading, switching, distributing, merging.
    pub serial_ns: f64,
    /// Classification of a frame; divided among all threads.
    pub classify_ns: f64,
    /// An event: a frame arrives at a link.
    pub event_ns: f64,
    /// A frame that continues on another shard, in addition to its event; half for each
    /// of both shards.
    pub crossing_ns: f64,
    /// A barrier of two threads.
    pub barrier_ns: f64,
}

/// How a barrier's cost grows with the number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum BarrierGrowth {
    /// As the number of threads: all of them count on one cache line in turn.
    #[default]
    Linear,
    /// As its logarithm: a tree of pairs.
    Tree,
}

impl BarrierGrowth {
    /// Returns the cost of one barrier.
    fn of(self, costs: &Costs, threads: usize) -> f64 {
        match (threads, self) {
            (1, _) => 0.0,
            (_, BarrierGrowth::Linear) => costs.barrier_ns * threads as f64 / 2.0,
            (_, BarrierGrowth::Tree) => costs.barrier_ns * (threads as f64).log2().ceil(),
        }
    }
}

/// Barriers of each phase: one before it, one after it.
const BARRIERS: f64 = 2.0;

/// The traffic: frames at even distances, each on a path at random.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    pub frames: usize,
    /// Frames in a batch.
    pub batch: usize,
    /// Time between two frames on the emulated network.
    pub gap: Nanos,
    pub seed: u64,
}

/// A frame arrives at a link.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    link: u32,
    /// The next link of its path, or the same if it is the last.
    next: u32,
}

/// All events of a run in the order of their times.
#[derive(Clone, Debug)]
pub(super) struct EventList {
    events: Vec<Event>,
    /// For each batch, its frames, and the index after its last event.
    batches: Vec<(usize, usize)>,
    frames: usize,
}

impl EventList {
    /// Follows each frame along its path. A frame takes as long over each link as the
    /// lookahead.
    pub fn new(topology: &Topology, traffic: &Traffic) -> EventList {
        let mut stream = Stream::of_seed(traffic.seed);
        let mut events = Vec::new();
        let gap = traffic.gap.as_nanos();
        for frame in 0..traffic.frames {
            let mut at = frame as u64 * gap;
            let path = stream.up_to(topology.paths.len() as u64 - 1) as usize;
            let path = &topology.paths[path];
            for (hop, link) in path.iter().enumerate() {
                let next = *path.get(hop + 1).unwrap_or(link);
                events.push(Event {
                    at,
                    link: *link,
                    next,
                });
                at += topology.links[*link as usize].lookahead.as_nanos();
            }
        }
        events.sort_by_key(|event| (event.at, event.link));
        let size = traffic.batch.max(1);
        let starts = (0..traffic.frames).step_by(size);
        let batches = starts.map(|start| {
            let end = (start + size).min(traffic.frames);
            // A batch's events are those before the first frame of the next one.
            let last = if end == traffic.frames {
                events.len()
            } else {
                events.partition_point(|event| event.at < end as u64 * gap)
            };
            (end - start, last)
        });
        EventList {
            batches: batches.collect(),
            frames: traffic.frames,
            events,
        }
    }
}

/// The predicted throughput of a run on a number of cores, and what it loses to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Prediction {
    pub cores: usize,
    /// Shards, and threads.
    pub shards: usize,
    pub window_ns: Option<u64>,
    /// Windows in a batch, on average.
    pub windows_per_batch: f64,
    /// Frames that change their shard, each time, per frame.
    pub crossings_per_frame: f64,
    /// Frames in a second.
    pub frames_per_second: f64,
    pub speed_up: f64,
    /// Time of all cores that is lost against a speed-up of `cores`, as parts of the time
    /// of the run. Their sum is `1 - speed_up / cores`.
    pub lost: Losses,
}

/// Reasons for which a run is slower than an even division of its work among all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Losses {
    /// The calling thread works while the others wait.
    pub serial: f64,
    /// Cores without a shard: the planner found fewer parts.
    pub unused: f64,
    /// Shards with less to do than the busiest one, over a whole batch.
    pub imbalance: f64,
    /// Frames handed to another shard.
    pub crossing: f64,
    /// Barriers of one window in each batch.
    pub barrier: f64,
    /// Further windows, because the lookahead is shorter than a batch: their barriers,
    /// and that loads are even over the batch but not in each window.
    pub lookahead: f64,
}

impl Losses {
    /// Returns the parts with their names.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("serial", self.serial),
            ("unused cores", self.unused),
            ("imbalance", self.imbalance),
            ("crossing", self.crossing),
            ("barrier", self.barrier),
            ("lookahead", self.lookahead),
        ]
    }

    /// Returns the name of the largest part; nothing if all are below a thousandth.
    pub fn largest(&self) -> &'static str {
        let named = self.named().into_iter();
        let largest = named.max_by(|one, other| one.1.total_cmp(&other.1));
        largest
            .filter(|(_, part)| *part >= 1e-3)
            .map_or("-", |(name, _)| name)
    }
}

/// Times of a run, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    serial: f64,
    classify: f64,
    /// Sum over windows: the time of the busiest shard.
    windows: f64,
    /// Sum over batches: the time of the busiest shard, if the batch were one window.
    whole: f64,
    /// Sum over batches: the mean time of a shard.
    mean: f64,
    window_count: usize,
    crossings: usize,
}

/// Predicts a run on this many cores. Each core has a thread, and each thread a shard.
pub(super) fn predict(
    topology: &Topology,
    workload: &EventList,
    costs: &Costs,
    growth: BarrierGrowth,
    cores: usize,
) -> Prediction {
    let paths = topology.paths.iter().map(Vec::as_slice);
    let plan = plan(&topology.links, paths, cores);
    let times = simulate(workload, &plan, costs);
    let (shards, batches) = (plan.shards as f64, workload.batches.len() as f64);
    let barrier = growth.of(costs, plan.shards) * BARRIERS;
    // The classification of a batch is a separate phase.
    let one_window = barrier * 2.0 * batches;
    let more_windows = barrier * (times.window_count as f64 - batches);
    let total = times.serial + times.classify + times.windows + one_window + more_windows;

    let frames = workload.frames as f64;
    let event_work = workload.events.len() as f64 * costs.event_ns;
    let work = event_work + frames * costs.classify_ns;
    let alone = times.serial + work;
    let part = |time: f64| time / total;
    Prediction {
        cores,
        shards: plan.shards,
        window_ns: plan.lookahead.map(Nanos::as_nanos),
        windows_per_batch: times.window_count as f64 / batches,
        crossings_per_frame: times.crossings as f64 / frames,
        frames_per_second: frames / total * 1e9,
        speed_up: alone / total,
        lost: Losses {
            serial: part(times.serial * (1.0 - 1.0 / cores as f64)),
            unused: part(work / shards - work / cores as f64),
            imbalance: part(
                times.whole - times.mean + times.classify - frames * costs.classify_ns / shards,
            ),
            crossing: part(times.mean - event_work / shards),
            barrier: part(one_window),
            lookahead: part(more_windows + times.windows - times.whole),
        },
    }
}

/// Goes through all windows of all batches.
fn simulate(workload: &EventList, plan: &ShardPlan, costs: &Costs) -> Times {
    let mut times = Times::default();
    let lookahead = plan.lookahead.map_or(u64::MAX, Nanos::as_nanos);
    let shard_of = |link: u32| usize::from(plan.shard_of[link as usize]);
    let busiest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let mut begin = 0;
    for (frames, end) in &workload.batches {
        times.serial += *frames as f64 * costs.serial_ns;
        times.classify += frames.div_ceil(plan.shards) as f64 * costs.classify_ns;
        let mut in_batch = vec![0.0; plan.shards];
        let mut in_window = vec![0.0; plan.shards];
        let mut until = None;
        for event in &workload.events[begin..*end] {
            if until.is_none_or(|until| event.at >= until) {
                times.windows += busiest(&in_window);
                in_window.fill(0.0);
                times.window_count += 1;
                until = Some(event.at.saturating_add(lookahead));
            }
            let (shard, next) = (shard_of(event.link), shard_of(event.next));
            in_window[shard] += costs.event_ns;
            in_batch[shard] += costs.event_ns;
            if next != shard {
                times.crossings += 1;
                // The receiver's half falls into a later window; loads are as even there.
                for shard in [shard, next] {
                    in_window[shard] += costs.crossing_ns / 2.0;
                    in_batch[shard] += costs.crossing_ns / 2.0;
                }
            }
        }
        times.windows += busiest(&in_window);
        times.whole += busiest(&in_batch);
        times.mean += in_batch.iter().sum::<f64>() / plan.shards as f64;
        // A batch without events has one window all the same.
        times.window_count += usize::from(begin == *end);
        begin = *end;
    }
    times
}
