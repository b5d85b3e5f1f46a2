//! Rounds of all shards: classification, and windows of events.

use std::sync::Arc;

use longwire_engine::{Link, LinkId, Nanos};

use super::batch::RoundInput;
use super::shard::{Job, Shard};
use super::{BATCH_MAX, Shards};

/// Number of frames to hand out after a batch above which the next batch shrinks.
const LEAVING_MAX: usize = 4 * BATCH_MAX;

/// Minimum number of frames for parallel rounds. With fewer, waking threads would take
/// longer than processing all shards on the calling thread.
const PARALLEL_MIN: usize = 64;

/// Minimum lookahead for windows. With a shorter one, a window's overhead would exceed its
/// work, so the calling thread processes all events in order.
const WINDOW_MIN: Nanos = Nanos::from_micros(5);

impl Shards {
    /// Returns the minimum delay before a path continues in another shard. `None` if no
    /// path does.
    fn lookahead(&mut self) -> Option<Nanos> {
        if let Some(known) = self.lookahead {
            return known;
        }
        let slack = |link: &LinkId| self.link(*link).map_or(Nanos::ZERO, Link::poll_slack);
        let least = self.cuts.keys().map(slack).min();
        self.lookahead = Some(least);
        least
    }

    /// Adapts the next batch's length to the number of frames to hand out: with many copies
    /// per frame, a long batch would take much memory.
    pub(super) fn adapt_batches(&mut self) {
        let leaving = |shard: &Shard| shard.leaving.len() - shard.handed_out;
        let leaving: usize = self.all().map(leaving).sum();
        if leaving > LEAVING_MAX {
            self.batch_max = (self.batch_max / 2).max(1);
        } else if leaving < LEAVING_MAX / 2 {
            self.batch_max = (self.batch_max * 2).min(BATCH_MAX);
        }
    }

    /// Returns the number of bytes that the memory budget leaves for further frames. Empty segments
    /// do not count, but are freed if they would exceed the budget.
    pub(super) fn memory_left(&mut self) -> u64 {
        let stores = self.all().map(|shard| &shard.state.frames.store);
        let (held, memory) = stores.fold((0, 0), |(held, memory), store| {
            (held + store.held(), memory + store.memory())
        });
        if memory >= self.memory_max.0 {
            let shards = self.all_mut();
            shards.for_each(|shard| shard.state.frames.store.trim());
        }
        self.memory_max.0.saturating_sub(held)
    }

    /// Updates and returns the maximum number of bytes in the shards for each port of arrival.
    pub(in crate::deciding) fn stored_max(&mut self) -> &[u64] {
        for port in 0..self.stored_max.len() {
            let stored = self.all().map(|shard| shard.state.frames.stored[port]);
            self.stored_max[port] = self.stored_max[port].max(stored.sum());
        }
        &self.stored_max
    }

    /// Classifies the batch. Each shard keeps the targets of its part.
    pub(super) fn classify(&mut self, shared: &Arc<RoundInput>) {
        let frames = shared.batch.len();
        let parts = if frames < PARALLEL_MIN {
            1
        } else {
            1 + self.others.len()
        };
        let part = frames.div_ceil(parts);
        for (index, shard) in self.all_mut().enumerate() {
            let from = (index * part).min(frames);
            shard.job = Job::Classify {
                shared: Arc::clone(shared),
                from,
                to: (from + part).min(frames),
            };
        }
        self.round(frames >= PARALLEL_MIN);
    }

    /// Runs each shard's job.
    fn round(&mut self, parallel: bool) {
        if parallel {
            self.times.rounds += 1;
            self.pool.round(&mut self.first, &mut self.others);
        } else {
            self.all_mut().for_each(Shard::work);
        }
    }

    /// Processes all events before `end` and offers the whole batch, whose last arrival is
    /// at most `end`.
    pub(super) fn advance(&mut self, shared: &Arc<RoundInput>, end: Nanos) {
        let held: usize = self.all().map(|shard| shard.state.frames.len()).sum();
        let parallel = shared.batch.len() >= PARALLEL_MIN || held >= BATCH_MAX;
        let Some(lookahead) = self.lookahead() else {
            return self.window(shared, end, true, parallel);
        };
        if lookahead < WINDOW_MIN {
            return self.advance_in_order(shared, end);
        }
        loop {
            let next = self.next_inside(shared);
            let stop = next.map_or(end, |at| at.saturating_add(lookahead).min(end));
            self.window(shared, stop, stop == end, parallel);
            self.exchange();
            if stop == end {
                break;
            }
        }
        self.all_mut().for_each(Shard::accept);
    }

    fn window(&mut self, shared: &Arc<RoundInput>, end: Nanos, inclusive: bool, parallel: bool) {
        for shard in self.all_mut() {
            shard.job = Job::Advance {
                shared: Arc::clone(shared),
                end,
                inclusive,
            };
        }
        self.round(parallel);
    }

    /// Returns the time of the first event, arrival or message.
    fn next_inside(&mut self, shared: &RoundInput) -> Option<Nanos> {
        let times = self.all_mut().flat_map(|shard| {
            let event = shard.network.next_place().map(|place| place.at);
            let arrival = shard.next_arrival(shared);
            let messages = shard.inboxes.iter().filter_map(|inbox| inbox.first).min();
            [event, arrival, messages]
        });
        times.flatten().min()
    }

    /// Delivers messages to their shards.
    fn exchange(&mut self) {
        let shards = 1 + self.others.len();
        for from in 0..shards {
            for to in 0..shards {
                let outbox = &mut self.at(from).outboxes[to];
                if outbox.is_empty() {
                    continue;
                }
                let messages = std::mem::take(outbox);
                let spare = std::mem::replace(&mut self.at(to).inboxes[from], messages);
                debug_assert!(spare.is_empty(), "messages that were not accepted");
                self.at(from).outboxes[to] = spare;
            }
        }
    }

    /// Like [`Shards::advance`], one event at a time. For paths that continue in another
    /// shard without delay.
    fn advance_in_order(&mut self, shared: &RoundInput, end: Nanos) {
        self.all_mut().for_each(Shard::forget_handed_out);
        loop {
            let arrival = self.all().enumerate();
            let arrival = arrival.filter_map(|(index, shard)| {
                let entry = shard.entries.get(shard.next_entry)?;
                Some((entry.frame, shard.next_arrival(shared)?, index))
            });
            let arrival = arrival.min().map(|(_, at, index)| (at, index));
            let event = self.all_mut().enumerate();
            let event = event.filter_map(|(index, shard)| {
                let place = shard.network.next_place()?;
                (place.at < end).then_some((place, index))
            });
            let event = event.min();
            let index = match (event, arrival) {
                (Some((place, index)), arrival) if arrival.is_none_or(|(at, _)| place.at < at) => {
                    let Shard { network, state, .. } = self.at(index);
                    network.process_next(place.at, state);
                    index
                }
                (_, Some((_, index))) => {
                    self.at(index).enter(shared);
                    index
                }
                (_, None) => break,
            };
            self.at(index).post();
            self.exchange();
            self.all_mut().for_each(Shard::accept);
        }
        self.all_mut().for_each(|shard| shard.close(end));
    }
}
