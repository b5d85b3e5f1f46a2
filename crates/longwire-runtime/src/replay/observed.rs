//! Current counters of a replay's output, for clients.
//!
//! A replay reads frames ahead of time, and its links decide at that point. The deciding thread
//! logs its counts with the frames' times, and a client applies the entries that are due.
//! Departures are counted when they happen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use longwire_engine::{Delivery, FrameMeta, Nanos};

use crate::counters::LinkShared;
use crate::counters::{Artifact, Handovers, LinkCells, LinkTotals, StageTotals, Traffic};
use crate::deciding::Occupancy;
use crate::sync::locked;

/// Maximum time between the first and the last arrival in an entry.
const ENTRY_TIME: Nanos = Nanos::from_millis(2);

/// Maximum number of pending entries, enough for two minutes of a trace. Beyond it, pairs of
/// entries are merged.
const ENTRIES_MAX: usize = 1 << 16;

/// Maximum number of pending frames whose delays are kept. Further delays are dropped. The default
/// read-ahead holds fewer frames.
const DELAYS_MAX: usize = 1 << 19;

/// A replay output that has clients.
pub(crate) struct ObservedOutput {
    cells: Arc<LinkCells>,
    shared: Arc<LinkShared>,
    log: Mutex<OfferLog>,
}

/// Pending entries, and the counts of past entries.
#[derive(Default)]
struct OfferLog {
    ahead: VecDeque<Offers>,
    /// Number of delays in `ahead`.
    delays: usize,
    /// Counts up to the last due entry.
    reached: LinkTotals,
    /// Departures and lengths of the frames in the queue and in service.
    queue: VecDeque<(Nanos, u32)>,
}

/// Frames offered within a short time.
struct Offers {
    /// Arrival of the last frame.
    until: Nanos,
    /// The link's counts up to that arrival.
    totals: LinkTotals,
    delays: Vec<OfferedDelivery>,
}

/// A frame's arrival and length, and its delivery.
type OfferedDelivery = (FrameMeta, Delivery);

impl ObservedOutput {
    /// Returns an output that counts into `cells`, which no other thread may write.
    pub fn new(cells: Arc<LinkCells>, shared: Arc<LinkShared>) -> ObservedOutput {
        ObservedOutput {
            cells,
            shared,
            log: Mutex::default(),
        }
    }

    /// Updates the cells to their values at `now`.
    pub fn refresh(&self, now: Nanos) {
        let mut log = locked(&self.log);
        log.reach(now, &self.cells);
        let mut stages = StageTotals::default();
        stages.add(&self.shared.egress);
        let offered = &log.reached.traffic;
        self.cells.replace(&LinkTotals {
            traffic: Traffic {
                // Within an entry, departures may exceed the logged arrivals.
                packets_in: offered.packets_in.max(stages.traffic.packets_out),
                bytes_in: offered.bytes_in.max(stages.traffic.bytes_out),
                ..stages.traffic
            },
            handovers: self.handovers(&stages),
            ..log.reached.clone()
        });
    }

    fn handovers(&self, stages: &StageTotals) -> Handovers {
        let late = Artifact::ALL.into_iter().filter(|kind| kind.is_late());
        let late = late.map(|kind| stages.artifact(kind)).sum();
        let late_max_ns = locked(&self.shared.lateness).max();
        Handovers {
            late,
            late_max_ns: if late > 0 { late_max_ns } else { 0 },
            ..Handovers::default()
        }
    }

    /// Returns the queue's occupancy at the last refresh, without frames that the queue will drop.
    pub fn occupancy(&self) -> Occupancy {
        let log = locked(&self.log);
        let stages = &self.shared.link.stage;
        Occupancy {
            packets: log.queue.len() as u64,
            bytes: log.queue.iter().map(|(_, len)| u64::from(*len)).sum(),
            packets_max: stages.queue.queue_packets_max.get(),
            bytes_max: stages.queue.queue_bytes_max.get(),
            packets_limit: None,
            bytes_limit: None,
        }
    }
}

impl OfferLog {
    /// Applies the entries up to `now`.
    fn reach(&mut self, now: Nanos, cells: &LinkCells) {
        while self.ahead.front().is_some_and(|offers| offers.until <= now)
            && let Some(offers) = self.ahead.pop_front()
        {
            self.delays -= offers.delays.len();
            self.reached = offers.totals;
            for (frame, delivery) in offers.delays {
                if let Some(delays) = cells.delays() {
                    delays.delivered(frame.arrival, frame.len, &delivery);
                }
                if delivery.departure > now {
                    self.queue.push_back((delivery.departure, frame.len));
                }
            }
        }
        while self.queue.front().is_some_and(|(left, _)| *left <= now) {
            self.queue.pop_front();
        }
    }

    fn push(&mut self, mut offers: Offers) {
        offers.delays.truncate(DELAYS_MAX - self.delays);
        self.delays += offers.delays.len();
        if self.ahead.len() >= ENTRIES_MAX {
            self.thin();
        }
        self.ahead.push_back(offers);
    }

    /// Halves the number of entries by merging pairs.
    fn thin(&mut self) {
        let mut entries = std::mem::take(&mut self.ahead).into_iter();
        while let Some(mut first) = entries.next() {
            if let Some(second) = entries.next() {
                first.until = second.until;
                first.totals = second.totals;
                first.delays.extend(second.delays);
            }
            self.ahead.push_back(first);
        }
    }
}

/// Logs decisions made ahead of time, on the deciding thread.
pub(crate) struct OfferLogger {
    output: Arc<ObservedOutput>,
    traffic: Traffic,
    /// First and last time since the last entry.
    open: Option<(Nanos, Nanos)>,
    /// Deliveries since the last entry; `None` if the link adds no delay.
    delays: Option<Vec<OfferedDelivery>>,
}

impl OfferLogger {
    /// Returns an output's log. `delays` states whether the link adds a delay.
    pub fn new(output: Arc<ObservedOutput>, delays: bool) -> OfferLogger {
        OfferLogger {
            output,
            traffic: Traffic::default(),
            open: None,
            delays: delays.then(Vec::new),
        }
    }

    /// Counts a frame before its offer.
    pub fn offered(&mut self, frame: FrameMeta) {
        self.reached(frame.arrival);
        self.traffic.packets_in += 1;
        self.traffic.bytes_in += u64::from(frame.len);
    }

    /// Records that the link has decided up to `time`.
    pub fn reached(&mut self, time: Nanos) {
        match &mut self.open {
            Some((first, last)) if time.saturating_sub(*first) < ENTRY_TIME => {
                *last = time.max(*last);
            }
            _ => {
                self.enter();
                self.open = Some((time, time));
            }
        }
    }

    /// Records a delivery.
    pub fn delivered(&mut self, frame: FrameMeta, delivery: &Delivery) {
        if let Some(delays) = &mut self.delays {
            delays.push((frame, *delivery));
        }
    }

    /// Appends an entry with the decisions since the last one.
    pub fn enter(&mut self) {
        let Some((_, until)) = self.open.take() else {
            return;
        };
        let decided = self.output.shared.link.link.totals();
        let delays = self.delays.as_mut().map(std::mem::take);
        locked(&self.output.log).push(Offers {
            until,
            totals: LinkTotals {
                traffic: self.traffic,
                ..decided
            },
            delays: delays.unwrap_or_default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::DropReason;
    use longwire_engine::verdict::Edits;

    use super::*;

    const MILLIS: fn(u64) -> Nanos = Nanos::from_millis;

    fn delivered(arrival: Nanos, departure: Nanos, release: Nanos) -> OfferedDelivery {
        let delivery = Delivery {
            departure,
            release,
            raised: false,
            edits: Edits::NONE,
            more: false,
        };
        (FrameMeta { arrival, len: 100 }, delivery)
    }

    #[test]
    fn frames_count_when_their_time_has_come() {
        let (cells, shared) = (
            Arc::new(LinkCells::default()),
            Arc::new(LinkShared::default()),
        );
        cells.watch_delays();
        let output = ObservedOutput::new(Arc::clone(&cells), Arc::clone(&shared));
        let output = Arc::new(output);
        let mut logger = OfferLogger::new(Arc::clone(&output), true);
        // One frame per 10 ms, all read at once. Each waits 15 ms in the queue, and the second is
        // lost.
        for number in 0..4 {
            let arrival = MILLIS(10 * number);
            let departure = arrival.saturating_add(MILLIS(15));
            let release = departure.saturating_add(MILLIS(20));
            let (frame, delivery) = delivered(arrival, departure, release);
            logger.offered(frame);
            if number == 1 {
                shared.link.link.dropped(DropReason::Loss);
            } else {
                logger.delivered(frame, &delivery);
            }
        }
        logger.enter();
        let at = |millis| {
            output.refresh(MILLIS(millis));
            let totals = cells.totals();
            let queued = output.occupancy().packets;
            (totals.traffic.packets_in, totals.drops.total(), queued)
        };
        assert_eq!(at(0), (1, 0, 1));
        assert_eq!(at(9), (1, 0, 1));
        assert_eq!(at(10), (2, 1, 1));
        assert_eq!(at(15), (2, 1, 0));
        assert_eq!(at(30), (4, 1, 2));
        assert_eq!(at(60), (4, 1, 0));
        let mut counts = crate::counters::DelayCounts::default();
        cells.watch_delays().read(&mut counts);
        let found = counts.since(&crate::counters::DelayCounts::default());
        let median = found.expect("frames were counted").total[0];
        assert!(median.as_nanos().abs_diff(35_000_000) < 350_000, "{median}");
    }

    #[test]
    fn a_log_has_a_limit_and_stays_true() {
        let mut log = OfferLog::default();
        let frames = ENTRIES_MAX as u64 + 10;
        for number in 0..frames {
            let at = MILLIS(10 * number);
            let totals = LinkTotals {
                traffic: Traffic {
                    packets_in: number + 1,
                    ..Traffic::default()
                },
                ..LinkTotals::default()
            };
            let delays = vec![delivered(at, at, at); 9];
            log.push(Offers {
                until: at,
                totals,
                delays,
            });
        }
        assert_eq!(log.ahead.len(), ENTRIES_MAX / 2 + 10);
        assert_eq!(log.delays, DELAYS_MAX);
        // An entry counts two frames, of which the second may be pending.
        for half in [frames / 2, frames] {
            log.reach(MILLIS(10 * half - 1), &LinkCells::default());
            let reached = log.reached.traffic.packets_in;
            assert!(half - reached <= 2, "{reached} of {half}");
        }
        assert_eq!((log.delays, log.queue.len()), (0, 0));
    }
}
