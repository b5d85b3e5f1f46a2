//! Histograms of a link's delays, written by the deciding thread.

use longwire_engine::{Delivery, Nanos};

use super::counter::CountCell;

/// Resolution: 2^10 ns, about 1 us.
const UNIT_BITS: u32 = 10;

/// Each power of two has 2^6 classes, so the relative width of a class is at most 1/64.
const SUB_BITS: u32 = 6;
const SUBS: usize = 1 << SUB_BITS;

/// Powers of two above the first `SUBS` units. Times from 36 minutes on belong to the last class.
const POWERS: usize = 25;

/// Number of classes.
const CLASSES: usize = SUBS * (POWERS + 1);

/// Delays of a link's delivered frames since the link was first watched. The only writer is the
/// link's deciding thread.
#[derive(Debug)]
pub struct DelayCells {
    /// Arrival to departure: queueing and serialization.
    queueing: Box<[CountCell]>,
    /// Arrival to release.
    total: Box<[CountCell]>,
    /// Latest departure in ns, on the arrivals' clock.
    departure: CountCell,
    /// Bits served, and service time in ns.
    served_bits: CountCell,
    service: CountCell,
}

/// A snapshot of both histograms.
#[derive(Clone, Debug, Default)]
pub struct DelayCounts {
    queueing: Vec<u64>,
    total: Vec<u64>,
    served_bits: u64,
    service: u64,
}

/// Quantiles of the delays between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayQuantiles {
    /// 0.5- and 0.99-quantiles from arrival to departure.
    pub queueing: [Nanos; 2],
    /// 0.5- and 0.99-quantiles from arrival to release.
    pub total: [Nanos; 2],
}

impl Default for DelayCells {
    fn default() -> DelayCells {
        let cells = || (0..CLASSES).map(|_| CountCell::default()).collect();
        DelayCells {
            queueing: cells(),
            total: cells(),
            departure: CountCell::default(),
            served_bits: CountCell::default(),
            service: CountCell::default(),
        }
    }
}

impl DelayCells {
    /// Counts the delivery of a frame with `len` bytes and this arrival.
    pub fn delivered(&self, arrival: Nanos, len: u32, delivery: &Delivery) {
        let queueing = delivery.departure.saturating_sub(arrival);
        let total = delivery.release.saturating_sub(arrival);
        self.queueing[class_of(queueing)].add(1);
        self.total[class_of(total)].add(1);
        // Service begins at the arrival or the previous departure, whichever is later. A copy
        // departs with its original, so its service takes no time.
        let begun = arrival.as_nanos().max(self.departure.get());
        let service = delivery.departure.as_nanos().saturating_sub(begun);
        if service > 0 {
            self.served_bits.add(8 * u64::from(len));
            self.service.add(service);
        }
        self.departure.raise(delivery.departure.as_nanos());
    }

    /// Returns the time from `now` until the last decided departure; zero if that has passed.
    pub fn backlog(&self, now: Nanos) -> Nanos {
        Nanos::from_nanos(self.departure.get()).saturating_sub(now)
    }

    /// Copies the counts to `counts`.
    pub fn read(&self, counts: &mut DelayCounts) {
        let read = |cells: &[CountCell], into: &mut Vec<u64>| {
            into.clear();
            into.extend(cells.iter().map(CountCell::get));
        };
        read(&self.queueing, &mut counts.queueing);
        read(&self.total, &mut counts.total);
        counts.served_bits = self.served_bits.get();
        counts.service = self.service.get();
    }
}

impl DelayCounts {
    /// Returns the service rate since `before` in bit/s without framing; `None` without
    /// service, or if the rate is infinite.
    pub fn rate_since(&self, before: &DelayCounts) -> Option<f64> {
        let service = self
            .service
            .checked_sub(before.service)
            .filter(|time| *time > 0)?;
        let bits = self.served_bits.saturating_sub(before.served_bits);
        Some(bits as f64 / service as f64 * 1e9)
    }

    /// Returns the quantiles since `before`; `None` without deliveries. A quantile is the middle of
    /// its class, with an error of at most 0.8 % or 0.5 us.
    pub fn since(&self, before: &DelayCounts) -> Option<DelayQuantiles> {
        Some(DelayQuantiles {
            queueing: quantiles(&self.queueing, &before.queueing)?,
            total: quantiles(&self.total, &before.total)?,
        })
    }
}

fn quantiles(now: &[u64], before: &[u64]) -> Option<[Nanos; 2]> {
    let grown = |class: usize| {
        let before = before.get(class).copied().unwrap_or(0);
        now[class].saturating_sub(before)
    };
    let count: u64 = (0..now.len()).map(grown).sum();
    if count == 0 {
        return None;
    }
    let at = |percent: u64| {
        // One-based rank of the smallest value not below the quantile.
        let rank = (count * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let class = (0..now.len()).find(|class| {
            passed += grown(*class);
            passed >= rank
        });
        middle_of(class.unwrap_or(now.len() - 1))
    };
    Some([at(50), at(99)])
}

/// Returns a time's class: linear up to `SUBS` units, then `SUBS` classes per power of two.
fn class_of(time: Nanos) -> usize {
    let units = time.as_nanos() >> UNIT_BITS;
    let power = (u64::BITS - units.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let class = ((power as usize) << SUB_BITS) + (units >> power) as usize;
    class.min(CLASSES - 1)
}

fn middle_of(class: usize) -> Nanos {
    let power = (class >> SUB_BITS).saturating_sub(1);
    let from = ((class - (power << SUB_BITS)) as u64) << power;
    let width = 1u64 << power;
    Nanos::from_nanos((from << UNIT_BITS) + ((width << UNIT_BITS) >> 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_class_is_near_its_times() {
        let mut time = 1u64;
        while time < 2_000_000_000_000 {
            let middle = middle_of(class_of(Nanos::from_nanos(time))).as_nanos();
            let error = middle.abs_diff(time);
            assert!(error <= (time / 127).max(512), "{time}: {middle}");
            time += time / 50 + 7;
        }
        assert_eq!(class_of(Nanos::MAX), CLASSES - 1);
    }
}
