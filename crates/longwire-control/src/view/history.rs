//! History of directions, encoded as columns: ten minutes at ten samples per second.
//!
//! With `--view`, networks of at most [`KEPT`] directions are recorded from the start of the run.
//! Otherwise, a direction is recorded while clients read it, and replaces the least recently read
//! one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::{BitRate, LinkId, LinkSpec, Nanos};
use longwire_network::{Controller, NumberedLink, options_in_json};
use longwire_runtime::counters::{DelayCounts, DelayQuantiles};
use longwire_runtime::deciding::LinkTotals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::PERIOD;

/// Maximum number of recorded directions; each needs 0.8 MB after ten minutes.
pub const KEPT: usize = 32;

/// Idle time after which recording of a direction ends, without `--view`.
const DROP_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of samples per direction.
pub const SAMPLES: usize = 6_000;

/// Counters of a direction in one period.
#[derive(Clone, Debug)]
pub struct HistorySample {
    /// End of the period, counted from the start of the run.
    pub at: Nanos,
    /// Length of the period.
    pub period: Nanos,
    /// Frames and bytes offered and delivered.
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// Drops by reason index; zeros are omitted.
    pub drops: Box<[(u8, u32)]>,
    /// Frames marked CE, and late frames.
    pub marks: u32,
    pub late: u32,
    /// Frames queued at the end of the period.
    pub queued: u64,
    /// Delays of delivered frames.
    pub delays: Option<DelayQuantiles>,
    /// The configured rate if it is fixed, otherwise the service rate.
    pub rate: Option<u64>,
}

/// A recorded direction.
#[derive(Debug)]
pub struct Recorded {
    direction: NumberedLink,
    rate: Option<u64>,
    totals: LinkTotals,
    delays: DelayCounts,
    read_delays: DelayCounts,
    at: Nanos,
    samples: VecDeque<HistorySample>,
    /// Sequence number and time of the last read.
    read: u64,
    read_at: Instant,
}

/// All recorded directions.
#[derive(Debug, Default)]
pub struct History {
    recorded: Vec<Recorded>,
    requests: u64,
}

impl History {
    /// Returns whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.recorded.is_empty()
    }

    /// Follows added and removed links. Drops idle directions, unless `all` is set.
    pub fn refresh(&mut self, all: bool, controller: &Controller) {
        let before = self.ids();
        self.recorded.retain_mut(|recorded| {
            let now = controller.direction_of(recorded.direction.id);
            let read = all || recorded.read_at.elapsed() < DROP_AFTER;
            let there = now.is_some() && read;
            if let Some(now) = now {
                recorded.update(now);
            }
            there
        });
        if all && controller.direction_count() <= KEPT {
            for direction in controller.directions() {
                if !before.contains(&direction.id) {
                    let recorded = Recorded::new(direction, controller.elapsed());
                    self.recorded.push(recorded);
                }
            }
        }
        self.watch(&before, controller);
    }

    /// Returns the samples of a direction if it exists, and starts recording it.
    pub fn read(
        &mut self,
        name: &str,
        controller: &Controller,
    ) -> Option<&VecDeque<HistorySample>> {
        self.requests += 1;
        let named = |recorded: &Recorded| recorded.direction.name == name;
        let place = match self.recorded.iter().position(named) {
            Some(place) => place,
            None => self.place_of(controller.direction(name)?, controller),
        };
        let recorded = &mut self.recorded[place];
        recorded.read = self.requests;
        recorded.read_at = Instant::now();
        Some(&recorded.samples)
    }

    /// Returns the index of a direction in `recorded`; starts recording it if necessary.
    fn place_of(&mut self, direction: NumberedLink, controller: &Controller) -> usize {
        // A shared direction has two names, such as `out` and `out.up`.
        let known = |recorded: &Recorded| recorded.direction.id == direction.id;
        if let Some(place) = self.recorded.iter().position(known) {
            return place;
        }
        let before = self.ids();
        if self.recorded.len() >= KEPT {
            let oldest = (0..self.recorded.len()).min_by_key(|at| self.recorded[*at].read);
            self.recorded.swap_remove(oldest.unwrap_or(0));
        }
        let recorded = Recorded::new(direction, controller.elapsed());
        self.recorded.push(recorded);
        self.watch(&before, controller);
        self.recorded.len() - 1
    }

    fn ids(&self) -> Vec<LinkId> {
        self.recorded
            .iter()
            .map(|recorded| recorded.direction.id)
            .collect()
    }

    fn watch(&self, before: &[LinkId], controller: &Controller) {
        let now = self.ids();
        if now != before {
            controller.watch_delays(now);
        }
    }

    /// Samples all recorded directions.
    pub fn sample(&mut self, controller: &Controller) {
        let ids = self.ids();
        let options = controller.options_of(&ids);
        let queues = controller.occupancies(ids);
        let now = controller.elapsed();
        for (index, recorded) in self.recorded.iter_mut().enumerate() {
            if let Some(options) = options.get(index).cloned().flatten() {
                recorded.set_options(options);
            }
            let occupancy = queues.get(index).copied().flatten();
            let occupancy = occupancy.map(|occupancy| occupancy.packets);
            let clock = controller.clock_time(now);
            // A network may lag; its queue may have drained since.
            let current = !controller.takes_changes() || recorded.is_busy(clock);
            recorded.sample(now, occupancy.filter(|_| current));
        }
    }
}

impl Recorded {
    fn new(direction: NumberedLink, now: Nanos) -> Recorded {
        let mut delays = DelayCounts::default();
        direction.cells.watch_delays().read(&mut delays);
        Recorded {
            rate: fixed_rate(&direction.options),
            totals: direction.cells.totals(),
            delays,
            read_delays: DelayCounts::default(),
            at: now,
            samples: VecDeque::new(),
            read: 0,
            read_at: Instant::now(),
            direction,
        }
    }

    fn update(&mut self, now: NumberedLink) {
        self.set_options(Arc::clone(&now.options));
        self.direction = now;
    }

    fn set_options(&mut self, options: Arc<LinkSpec>) {
        if !Arc::ptr_eq(&options, &self.direction.options) {
            self.rate = fixed_rate(&options);
            self.direction.options = options;
        }
    }

    /// Returns whether frames are queued or in service at `now` on the departure clock.
    fn is_busy(&self, now: Nanos) -> bool {
        self.direction.cells.watch_delays().backlog(now) > Nanos::ZERO
    }

    /// Adds a sample; `queued` is the number of queued frames, if known.
    fn sample(&mut self, now: Nanos, queued: Option<u64>) {
        // After a late sample, the next one may follow at once. Counters lag by milliseconds, so a
        // rate over such a period would be meaningless.
        let period = now.saturating_sub(self.at);
        if Duration::from_nanos(period.as_nanos()) < PERIOD / 2 {
            return;
        }
        let cells = &self.direction.cells;
        let (before, totals) = (&self.totals, cells.totals());
        cells.watch_delays().read(&mut self.read_delays);
        let drops = totals.drops.iter().zip(before.drops.iter()).enumerate();
        let drops = drops.filter_map(|(reason, ((_, now), (_, before)))| {
            let grown = now.saturating_sub(before);
            (grown > 0).then_some((reason as u8, grown.min(u32::MAX.into()) as u32))
        });
        let grown = |now: u64, before: u64| now.saturating_sub(before);
        let late = |totals: &LinkTotals| totals.handovers.late + totals.handovers.overload;
        let (traffic, earlier) = (&totals.traffic, &before.traffic);
        let sample = HistorySample {
            at: now,
            period,
            packets_in: grown(traffic.packets_in, earlier.packets_in),
            bytes_in: grown(traffic.bytes_in, earlier.bytes_in),
            packets_out: grown(traffic.packets_out, earlier.packets_out),
            bytes_out: grown(traffic.bytes_out, earlier.bytes_out),
            drops: drops.collect(),
            marks: grown(totals.effects.ecn_marked, before.effects.ecn_marked) as u32,
            late: grown(late(&totals), late(before)) as u32,
            queued: queued.unwrap_or_else(|| totals.queued()),
            delays: self.read_delays.since(&self.delays),
            rate: self.rate.or_else(|| {
                let served = self.read_delays.rate_since(&self.delays);
                served.map(|rate| rate as u64)
            }),
        };
        self.totals = totals;
        std::mem::swap(&mut self.delays, &mut self.read_delays);
        self.at = now;
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

/// Returns a link's rate in bit/s if it is fixed.
fn fixed_rate(options: &LinkSpec) -> Option<u64> {
    let options = options_in_json(options);
    let rate: BitRate = options.get("rate")?.as_str()?.parse().ok()?;
    Some(rate.bits_per_sec())
}

/// Samples of a direction: columns of equal length, with a value per period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// Nominal length of a period, in seconds.
    pub period_s: f64,
    /// Ends of the periods, in seconds since the start of the run.
    pub elapsed_s: Vec<f64>,
    /// Offered bit/s.
    pub bits_in_per_s: Vec<f64>,
    /// Delivered bit/s.
    pub bits_out_per_s: Vec<f64>,
    /// Offered frames/s.
    pub packets_in_per_s: Vec<f64>,
    /// Delivered frames/s.
    pub packets_out_per_s: Vec<f64>,
    /// Rate in bit/s: the configured rate if it is fixed, otherwise the mean service rate without
    /// framing; null if there is no rate, or no frame was served.
    pub rate_bits_per_s: Vec<Option<u64>>,
    /// Frames queued at the end of the period.
    pub queued_frames: Vec<u64>,
    /// Median delay from arrival to release, in microseconds; null if no frame was delivered.
    pub delay_p50_us: Vec<Option<f64>>,
    /// 99th percentile of the delay from arrival to release, in microseconds.
    pub delay_p99_us: Vec<Option<f64>>,
    /// Median delay from arrival to departure (queueing and serialisation), in microseconds.
    pub queueing_p50_us: Vec<Option<f64>>,
    /// 99th percentile of the delay from arrival to departure, in microseconds.
    pub queueing_p99_us: Vec<Option<f64>>,
    /// Frames/s marked CE (congestion experienced).
    pub marks_per_s: Vec<f64>,
    /// Late frames.
    pub late: Vec<u32>,
    /// Dropped frames/s by reason, without reasons that did not occur.
    pub drops_per_s: BTreeMap<String, Vec<f64>>,
}

/// New samples, by direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HistoryEvent(pub BTreeMap<String, Columns>);

impl Columns {
    /// Converts samples.
    pub fn of<'a>(samples: impl Iterator<Item = &'a HistorySample> + Clone) -> Columns {
        let mut columns = Columns {
            period_s: PERIOD.as_secs_f64(),
            ..Columns::default()
        };
        for (row, sample) in samples.enumerate() {
            columns.push(row, sample);
        }
        let rows = columns.elapsed_s.len();
        for drops in columns.drops_per_s.values_mut() {
            drops.resize(rows, 0.0);
        }
        columns
    }

    fn push(&mut self, row: usize, sample: &HistorySample) {
        let seconds = sample.period.as_secs_f64().max(1e-9);
        let rate = |count: u64| rounded(count as f64 / seconds);
        let micros = |time: Nanos| rounded(time.as_nanos() as f64 / 1e3);
        // Round to milliseconds.
        self.elapsed_s
            .push((sample.at.as_secs_f64() * 1e3).round() / 1e3);
        self.bits_in_per_s.push(rate(8 * sample.bytes_in));
        self.bits_out_per_s.push(rate(8 * sample.bytes_out));
        self.packets_in_per_s.push(rate(sample.packets_in));
        self.packets_out_per_s.push(rate(sample.packets_out));
        self.rate_bits_per_s.push(sample.rate);
        self.queued_frames.push(sample.queued);
        let delays = sample.delays.as_ref();
        let total = |at: usize| delays.map(|delays| micros(delays.total[at]));
        let queueing = |at: usize| delays.map(|delays| micros(delays.queueing[at]));
        self.delay_p50_us.push(total(0));
        self.delay_p99_us.push(total(1));
        self.queueing_p50_us.push(queueing(0));
        self.queueing_p99_us.push(queueing(1));
        self.marks_per_s.push(rate(sample.marks.into()));
        self.late.push(sample.late);
        for (reason, count) in &sample.drops {
            let name = reason_name(*reason);
            let column = self.drops_per_s.entry(name.to_owned()).or_default();
            column.resize(row, 0.0);
            column.push(rate((*count).into()));
        }
    }
}

/// Rounds to a tenth, because further digits would be most of the text.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn reason_name(index: u8) -> &'static str {
    let none = LinkTotals::default();
    let name = none.drops.iter().nth(index.into()).map(|(name, _)| name);
    name.unwrap_or("other")
}
