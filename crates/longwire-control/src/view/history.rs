//! History of directions: ten minutes, with ten samples per second.
//!
//! With `--view`, networks of at most [`KEPT`] directions are recorded from the start of the run.
//! Otherwise a direction is recorded while clients read it, and replaces the least recently read
//! one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::{BitRate, LinkId, LinkSpec, Nanos};
use longwire_fabric::{Controller, NumberedLink, options_in_json};
use longwire_runtime::fabric::LinkTotals;
use longwire_runtime::ledger::{DelayCounts, DelayQuantiles};

/// Maximum recorded directions, of 0.8 MB each after ten minutes.
pub const KEPT: usize = 32;

/// Idle time after which a direction is no longer recorded, without `--view`.
const DROP_AFTER: Duration = Duration::from_secs(60);

/// Maximum samples of a direction.
pub const SAMPLES: usize = 6_000;

/// Counters of a direction in one period.
#[derive(Clone, Debug)]
pub struct HistorySample {
    /// End of the period, since the start of the run.
    pub at: Nanos,
    /// Length of the period.
    pub period: Nanos,
    /// Frames and bytes, offered and delivered.
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// Drops by index of the reason; zeros are omitted.
    pub drops: Box<[(u8, u32)]>,
    /// Frames marked with congestion experienced, and late frames.
    pub marks: u32,
    pub late: u32,
    /// Queued frames at the end of the period.
    pub queued: u64,
    /// Delays of delivered frames.
    pub delays: Option<DelayQuantiles>,
    /// Rate: the configured one if it is fixed, else that of service.
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
    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.recorded.is_empty()
    }

    /// Follows added and removed links. Unless `all` are kept, drops idle directions.
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
                if !self
                    .recorded
                    .iter()
                    .any(|recorded| recorded.direction.id == direction.id)
                {
                    self.recorded
                        .push(Recorded::new(direction, controller.elapsed()));
                }
            }
        }
        self.watch(&before, controller);
    }

    /// Returns the samples of a direction, if it exists, and records it from now on.
    pub fn read(
        &mut self,
        name: &str,
        controller: &Controller,
    ) -> Option<&VecDeque<HistorySample>> {
        self.requests += 1;
        let mut place = self.place(name);
        let unnamed = match place {
            Some(_) => None,
            None => Some(controller.direction(name)?),
        };
        if let Some(direction) = &unnamed {
            // A shared direction has two names: `out` and `out.up`.
            let known = |recorded: &Recorded| recorded.direction.id == direction.id;
            place = self.recorded.iter().position(known);
        }
        if let Some(direction) = unnamed.filter(|_| place.is_none()) {
            let before = self.ids();
            if self.recorded.len() >= KEPT {
                let oldest = (0..self.recorded.len()).min_by_key(|at| self.recorded[*at].read)?;
                self.recorded.swap_remove(oldest);
            }
            self.recorded
                .push(Recorded::new(direction, controller.elapsed()));
            self.watch(&before, controller);
            place = Some(self.recorded.len() - 1);
        }
        let recorded = &mut self.recorded[place?];
        recorded.read = self.requests;
        recorded.read_at = Instant::now();
        Some(&recorded.samples)
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut recorded = self.recorded.iter();
        recorded.position(|recorded| recorded.direction.name == name)
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
            // The queue of a network is as of the last arrival, and may have drained since.
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

    /// Whether frames are queued or in service at `now` on the clock of departures.
    fn is_busy(&self, now: Nanos) -> bool {
        self.direction.cells.watch_delays().backlog(now) > Nanos::ZERO
    }

    /// Adds a sample; `queued` are the queued frames, if known.
    fn sample(&mut self, now: Nanos, queued: Option<u64>) {
        let cells = &self.direction.cells;
        let (before, totals) = (&self.totals, cells.totals());
        let delays = cells.watch_delays();
        delays.read(&mut self.read_delays);
        let drops = totals.drops.iter().zip(before.drops.iter()).enumerate();
        let drops = drops.filter_map(|(reason, ((_, now), (_, before)))| {
            let grown = now.saturating_sub(before);
            (grown > 0).then_some((reason as u8, grown.min(u32::MAX.into()) as u32))
        });
        let grown = |now: u64, before: u64| now.saturating_sub(before);
        let (traffic, earlier) = (&totals.traffic, &before.traffic);
        let sample = HistorySample {
            at: now,
            period: now.saturating_sub(self.at),
            packets_in: grown(traffic.packets_in, earlier.packets_in),
            bytes_in: grown(traffic.bytes_in, earlier.bytes_in),
            packets_out: grown(traffic.packets_out, earlier.packets_out),
            bytes_out: grown(traffic.bytes_out, earlier.bytes_out),
            drops: drops.collect(),
            marks: grown(totals.effects.ecn_marked, before.effects.ecn_marked) as u32,
            late: grown(
                totals.handovers.late + totals.handovers.overload,
                before.handovers.late + before.handovers.overload,
            ) as u32,
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

/// Returns the rate of a link in bit/s, if it is fixed.
fn fixed_rate(options: &LinkSpec) -> Option<u64> {
    let options = options_in_json(options);
    let rate: BitRate = options.get("rate")?.as_str()?.parse().ok()?;
    Some(rate.bits_per_sec())
}
