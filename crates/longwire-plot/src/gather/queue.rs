//! Queue length over time.
//!
//! A log row contains the queue length just after a frame's arrival. Between arrivals, the queue
//! drains as frames depart; departures are also in the log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longwire_capture::log::Row;

use super::service::Services;
use crate::runs::InOrder;

/// Maximum number of rows kept until the first known departure, from which the departures of lost
/// frames are estimated.
const EARLY_MAX: usize = 1 << 14;

/// Queue length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLength {
    /// In packets.
    pub packets: u64,
    /// In bytes.
    pub bytes: u64,
}

/// A constant queue length during a time interval with an exclusive end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStep {
    /// Start, in nanoseconds.
    pub from: i64,
    /// End, in nanoseconds.
    pub until: i64,
    /// Queue length during the interval.
    pub length: QueueLength,
}

/// A frame's arrival and departure.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    arrival: i64,
    departure: Option<i64>,
    bytes: u64,
    left_behind: Option<QueueLength>,
}

/// Derives the steps of a queue from its link's rows.
#[derive(Clone, Debug, Default)]
pub struct QueueSteps {
    order: InOrder<Stay>,
    queue: QueueState,
    /// Estimates departures of lost frames, which the log lacks.
    services: Services,
    /// Rows since the first lost frame, kept until a departure is known.
    early: Vec<Row>,
}

/// Current length, and the frames that have not departed.
#[derive(Clone, Debug, Default)]
struct QueueState {
    departures: BinaryHeap<Reverse<(i64, u64)>>,
    length: Option<(i64, QueueLength)>,
}

impl QueueSteps {
    /// Adds a row and reports the steps it determines.
    pub fn add(&mut self, row: &Row, mut step: impl FnMut(QueueStep)) {
        if row.copy > 0 {
            return;
        }
        let is_early = !self.early.is_empty() || Services::is_lost(row);
        if self.services.has_pace() || !is_early {
            self.add_next(row, &mut step);
            return;
        }
        self.early.push(row.clone());
        self.services.learn(&self.early);
        if self.services.has_pace() || self.early.len() >= EARLY_MAX {
            self.add_early(&mut step);
        }
    }

    fn add_early(&mut self, step: &mut impl FnMut(QueueStep)) {
        if !self.early.is_empty() {
            self.services.assume_instant();
        }
        for row in std::mem::take(&mut self.early) {
            self.add_next(&row, step);
        }
    }

    fn add_next(&mut self, row: &Row, step: &mut impl FnMut(QueueStep)) {
        self.services.of(row);
        let lost = || self.services.departure_of_lost(row);
        // Ignore the queue in rows of frames that exceed the MTU: a network reports it as empty.
        let known = row.reason.as_deref() != Some("mtu");
        let stay = Stay {
            arrival: row.arrival_ns,
            departure: row.departure_ns.or_else(lost),
            bytes: row.length.into(),
            left_behind: known.then_some(QueueLength {
                packets: row.queue_packets.into(),
                bytes: row.queue_bytes,
            }),
        };
        let queue = &mut self.queue;
        self.order
            .add(row.frame, stay, |stay, _| queue.arrive(stay, step));
    }

    /// Reports the remaining steps, up to the last departure.
    pub fn finish(&mut self, mut step: impl FnMut(QueueStep)) {
        self.add_early(&mut step);
        let queue = &mut self.queue;
        self.order.finish(|stay, _| queue.arrive(stay, &mut step));
        self.queue.drain(i64::MAX, &mut step);
    }
}

impl QueueState {
    fn arrive(&mut self, stay: Stay, step: &mut impl FnMut(QueueStep)) {
        self.drain(stay.arrival, step);
        if let Some(length) = stay.left_behind {
            self.set(stay.arrival, length, step);
        }
        if let Some(departure) = stay.departure {
            self.departures.push(Reverse((departure, stay.bytes)));
        }
    }

    /// Removes the frames that depart up to a time.
    fn drain(&mut self, until: i64, step: &mut impl FnMut(QueueStep)) {
        while let Some(Reverse((at, bytes))) = self.departures.peek().copied()
            && at <= until
        {
            self.departures.pop();
            if let Some((_, length)) = self.length {
                let length = QueueLength {
                    packets: length.packets.saturating_sub(1),
                    bytes: length.bytes.saturating_sub(bytes),
                };
                self.set(at, length, step);
            }
        }
    }

    fn set(&mut self, at: i64, length: QueueLength, step: &mut impl FnMut(QueueStep)) {
        if let Some((from, length)) = self.length.replace((at, length)) {
            let until = at.max(from);
            step(QueueStep {
                from,
                until,
                length,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_capture::log::{Fate, Name};

    use crate::gather::fixture;

    fn row(frame: u64, arrival: i64, departure: Option<i64>, packets: u32) -> Row {
        Row {
            length: 100,
            verdict: match departure {
                Some(_) => Fate::Deliver,
                None => Fate::Drop,
            },
            reason: departure.is_none().then(|| Name::from("aqm")),
            queue_packets: packets,
            queue_bytes: u64::from(packets) * 100,
            ..fixture::row("up", frame, arrival, departure)
        }
    }

    /// Returns the steps as `from-until: packets`.
    fn steps(rows: &[Row]) -> String {
        let (mut queue, mut found) = (QueueSteps::default(), Vec::new());
        for row in rows {
            queue.add(row, |step| found.push(step));
        }
        queue.finish(|step| found.push(step));
        let mut lengths = found.iter().map(|step| step.length);
        assert!(lengths.all(|length| length.bytes == length.packets * 100));
        let found = found.iter().filter(|step| step.until > step.from);
        let found = found.map(|step| {
            let packets = step.length.packets;
            format!("{}-{}: {packets}", step.from, step.until)
        });
        found.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn it_drains_between_arrivals_in_any_order_of_decisions() {
        let mut rows = vec![
            row(0, 0, Some(10), 1),
            row(1, 1, Some(20), 2),
            row(2, 2, Some(30), 3),
            row(3, 25, Some(40), 2),
        ];
        let expected = "0-1: 1, 1-2: 2, 2-10: 3, 10-20: 2, 20-25: 1, 25-30: 2, 30-40: 1";
        assert_eq!(steps(&rows), expected);
        rows.reverse();
        assert_eq!(steps(&rows), expected);
    }

    /// One frame per 100 ns, each served in 8 ns. The second is lost on the medium.
    #[test]
    fn a_lost_frame_leaves_the_queue_when_it_was_sent() {
        let mut lost = row(1, 100, None, 1);
        lost.reason = Some(Name::from("loss"));
        let rows = [row(0, 0, Some(8), 1), lost, row(2, 200, Some(208), 1)];
        let expected = "0-8: 1, 8-100: 0, 100-108: 1, 108-200: 0, 200-208: 1";
        assert_eq!(steps(&rows), expected);
    }

    #[test]
    fn a_frame_lost_first_leaves_at_the_pace_of_the_first_departure() {
        let mut lost = row(0, 0, None, 1);
        lost.reason = Some(Name::from("loss"));
        let rows = [lost.clone(), row(1, 100, Some(108), 1)];
        assert_eq!(steps(&rows), "0-8: 1, 8-100: 0, 100-108: 1");
        // Without any known departure, the lost frame leaves on arrival.
        let next = Row {
            frame: 1,
            arrival_ns: 100,
            ..lost.clone()
        };
        assert_eq!(steps(&[lost, next]), "0-100: 0");
    }

    #[test]
    fn a_frame_that_was_dropped_inside_leaves_by_the_next_arrival() {
        let rows = [
            row(0, 0, Some(10), 1),
            row(1, 1, None, 2),
            row(2, 12, Some(22), 1),
        ];
        assert_eq!(steps(&rows), "0-1: 1, 1-10: 2, 10-12: 1, 12-22: 1");
    }
}
