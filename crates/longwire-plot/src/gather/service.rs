//! Configured rate, inferred from departures.
//!
//! A log has no rate column, because the rate may follow a trace, a chain or manual changes.
//! However, a queue's server sends one frame at a time: the service time of a frame is its length
//! divided by the rate. Service begins at the frame's arrival, or at the previous frame's departure
//! if that is later, and ends at its departure.

use longwire_capture::log::{Fate, Row};

/// Service of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Departure of the frame.
    pub until: i64,
    /// Service time in nanoseconds.
    pub nanos: u64,
    /// Frame length in bits.
    pub bits: u64,
    /// Whether it immediately followed another service. Other services may include a wait for the
    /// medium's next slot.
    pub backlogged: bool,
}

/// Drop reasons of frames that were never served. For other drops (`loss`, `bit_error`, …), the log
/// has no departure although the medium was busy.
const UNSERVED: [&str; 5] = ["queue_full", "aqm", "mtu", "entry_loss", "ttl"];

/// Derives services from the rows of one link, in decision order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Services {
    last: Option<i64>,
    unknown: bool,
    /// The latest service, from which departures of lost frames are estimated.
    pace: Option<Service>,
}

impl Services {
    /// Returns the service of a row's frame, if it was served and the start of service is known.
    pub fn of(&mut self, row: &Row) -> Option<Service> {
        if row.copy > 0 || row.verdict == Fate::Held {
            return None;
        }
        let Some(until) = row.departure_ns else {
            let reason = row.reason.as_deref().unwrap_or_default();
            self.unknown |= !UNSERVED.contains(&reason);
            return None;
        };
        let begin = self.begin(row);
        let before = self.last.replace(until);
        let known = !std::mem::take(&mut self.unknown);
        // With two servers, such as after a link was replaced, neither service is known.
        let nanos = u64::try_from(until.saturating_sub(begin)).ok()?;
        let service = Service {
            until,
            nanos,
            bits: u64::from(row.length) * 8,
            backlogged: before.is_some_and(|at| at >= row.arrival_ns),
        };
        self.pace = known.then_some(service).or(self.pace);
        known.then_some(service)
    }

    /// Whether the row's frame was served and then lost, so that the log lacks its departure.
    pub fn is_lost(row: &Row) -> bool {
        let reason = row.reason.as_deref();
        row.verdict == Fate::Drop && reason.is_some_and(|reason| !UNSERVED.contains(&reason))
    }

    /// Whether a service is known, from which to estimate departures of lost frames.
    pub fn has_pace(&self) -> bool {
        self.pace.is_some()
    }

    /// Sets an infinite pace for frames without a known departure. They leave on arrival, so the
    /// length is correct again after the next arrival.
    pub fn assume_instant(&mut self) {
        self.pace.get_or_insert(Service {
            until: i64::MIN,
            nanos: 0,
            bits: 1,
            backlogged: false,
        });
    }

    /// Infers the pace from the first known departure, that of the last row; frames served before
    /// it were lost. A no-op if the last row has no departure.
    ///
    /// At `r` nanoseconds per bit, the departure is the maximum, over all served frames, of the
    /// frame's arrival plus `r` times the bits from this frame to the last. Solving for `r` gives
    /// the minimum of (departure − arrival) ÷ bits.
    pub fn learn(&mut self, rows: &[Row]) {
        let Some(until) = rows.last().and_then(|row| row.departure_ns) else {
            return;
        };
        let mut bits = 0u64;
        for row in rows.iter().rev() {
            if row.departure_ns.is_none() && !Services::is_lost(row) {
                continue;
            }
            bits += u64::from(row.length) * 8;
            let nanos = until.saturating_sub(row.arrival_ns).max(0).cast_unsigned();
            let is_less = self.pace.is_none_or(|pace| {
                u128::from(nanos) * u128::from(pace.bits)
                    < u128::from(pace.nanos) * u128::from(bits)
            });
            if is_less {
                self.pace = Some(Service {
                    until,
                    nanos,
                    bits,
                    backlogged: false,
                });
            }
        }
    }

    /// Estimates the departure of a frame that was served and then lost, at the pace of the latest
    /// service. The row must have been passed to [`Services::of`].
    pub fn departure_of_lost(&mut self, row: &Row) -> Option<i64> {
        if !Services::is_lost(row) {
            return None;
        }
        let pace = self.pace?;
        let bits = u128::from(row.length) * 8;
        let nanos = bits * u128::from(pace.nanos) / u128::from(pace.bits.max(1));
        let until = self.begin(row).saturating_add(i64::try_from(nanos).ok()?);
        self.last = Some(until);
        Some(until)
    }

    /// Returns the start of service for the frame of the next row.
    fn begin(&self, row: &Row) -> i64 {
        row.arrival_ns.max(self.last.unwrap_or(i64::MIN))
    }
}

/// Sums of services in a time span: bits and nanoseconds of back-to-back services, and of other
/// services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served([(u64, u64); 2]);

impl Served {
    /// Adds a service.
    pub fn add(&mut self, service: &Service) {
        let of = &mut self.0[usize::from(!service.backlogged)];
        of.0 += service.bits;
        of.1 += service.nanos;
    }

    /// Adds the services of another time span.
    pub fn merge(&mut self, other: Served) {
        for (of, more) in self.0.iter_mut().zip(other.0) {
            of.0 += more.0;
            of.1 += more.1;
        }
    }

    /// Returns the rate in bits per second, if frames were served at a finite rate.
    pub fn rate(&self) -> Option<f64> {
        let (bits, nanos) = self.0.iter().find(|(_, nanos)| *nanos > 0)?;
        Some(*bits as f64 * 1e9 / *nanos as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_capture::log::Name;

    use crate::gather::fixture;

    fn row(arrival: i64, departure: Option<i64>, reason: Option<&str>) -> Row {
        Row {
            verdict: match reason {
                None => Fate::Deliver,
                Some(_) => Fate::Drop,
            },
            reason: reason.map(Name::from),
            ..fixture::row("up", 0, arrival, departure)
        }
    }

    /// Compares with a server that takes 8 ms per frame.
    #[test]
    fn the_pace_is_learned_from_the_first_departure() {
        const MS: i64 = 1_000_000;
        for arrivals in [[0, 0, 0], [0, 500, 1_000], [0, 1, 100], [0, 50, 51]] {
            let [first, second, third] = arrivals.map(|at| at * MS);
            let one = first + 8 * MS;
            let two = one.max(second) + 8 * MS;
            let departure = two.max(third) + 8 * MS;
            let rows = [
                row(first, None, Some("loss")),
                row(second, None, Some("queue_full")),
                row(second, None, Some("bit_error")),
                row(third, Some(departure), None),
            ];
            let mut services = Services::default();
            services.learn(&rows);
            let departures = rows.each_ref().map(|row| {
                services.of(row);
                row.departure_ns.or_else(|| services.departure_of_lost(row))
            });
            assert_eq!(departures, [Some(one), None, Some(two), Some(departure)]);
        }
    }

    /// 1,250 bytes in 1 ms are 10 Mbit/s, with or without queueing, regardless of lost frames.
    #[test]
    fn the_rate_is_that_of_the_server() {
        const MS: i64 = 1_000_000;
        let rows = [
            row(0, Some(MS), None),
            row(0, Some(2 * MS), None),
            row(0, None, Some("queue_full")),
            row(0, Some(3 * MS), None),
            // Served until 4 ms but lost, so the start of the next service is unknown.
            row(0, None, Some("loss")),
            row(0, Some(5 * MS), None),
            row(0, Some(6 * MS), None),
            row(9 * MS, Some(10 * MS), None),
        ];
        let (mut services, mut served, mut count) = (Services::default(), Served::default(), 0);
        for row in &rows {
            if let Some(service) = services.of(row) {
                served.add(&service);
                count += 1;
            }
        }
        assert_eq!(count, 5);
        assert_eq!(served.rate(), Some(1e7));
        assert_eq!(Served::default().rate(), None);
    }
}
