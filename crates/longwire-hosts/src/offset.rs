//! Estimates another host's clock offset.
//!
//! An exchange of four timestamps determines the offset to within half its round trip (RFC 5905,
//! section 8). Queueing only lengthens round trips, so only the shortest exchange of each second is
//! used. A line fitted to these exchanges yields offset and skew.

use std::collections::VecDeque;

use longwire_engine::Nanos;

/// Interval in nanoseconds from which only the best exchange is kept.
const SPAN: u64 = 1_000_000_000;

/// Number of intervals kept.
const KEPT: usize = 16;

/// Minimum time span in nanoseconds for a skew estimate.
const SKEW_SPAN_MIN: u64 = 4_000_000_000;

/// Maximum skew, the kernel's limit (adjtimex): 500 ppm.
const SKEW_MAX: f64 = 500e-6;

/// Minimum number of exchanges for an estimate.
const EXCHANGES_MIN: u64 = 8;

/// Minimum deviation from the prediction that counts as a clock step, in nanoseconds, in addition
/// to the uncertainties of the exchange and of the prediction.
const STEP_MIN: i64 = 1_000_000;

/// Number of consecutive exchanges that confirm a step.
const STEP_EXCHANGES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct ClockExchange {
    at: u64,
    offset: i64,
    round_trip: u64,
}

/// Estimates the offset of another host's monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct OffsetEstimator {
    spans: VecDeque<(u64, ClockExchange)>,
    exchanges: u64,
    /// Number of consecutive exchanges that contradict the estimate.
    contradicting: u32,
    /// The fitted line: an exchange through which it passes, and its slope, the skew.
    base: Option<(ClockExchange, f64)>,
}

impl OffsetEstimator {
    /// Processes an exchange of four timestamps, each on the clock of its host: sent by this host,
    /// received by the other, sent by the other, received by this host. Returns the other clock's
    /// step if this exchange confirms one.
    pub fn exchange(&mut self, [t1, t2, t3, t4]: [Nanos; 4]) -> Option<i64> {
        let [t1, t2, t3, t4] = [t1, t2, t3, t4].map(Nanos::as_nanos);
        let there = t3.checked_sub(t2)?;
        let round_trip = t4.checked_sub(t1)?.checked_sub(there)?;
        let (forth, back) = (t1.wrapping_sub(t2) as i64, t4.wrapping_sub(t3) as i64);
        let offset = forth.wrapping_add(back.wrapping_sub(forth) / 2);
        let best = ClockExchange {
            at: t4,
            offset,
            round_trip,
        };
        let mut step = None;
        if let Some(predicted) = self.at(Nanos::from_nanos(t4)) {
            let apart = offset.wrapping_sub(predicted);
            let allowed = (round_trip / 2 + self.uncertainty_ns() + STEP_MIN as u64) as i64;
            if apart.abs() > allowed {
                self.contradicting += 1;
                if self.contradicting < STEP_EXCHANGES {
                    return None;
                }
                *self = OffsetEstimator {
                    exchanges: self.exchanges,
                    ..OffsetEstimator::default()
                };
                step = Some(-apart);
            }
        }
        self.contradicting = 0;
        self.exchanges += 1;
        let span = t4 / SPAN;
        match self.spans.back_mut() {
            Some((last, kept)) if *last == span => {
                if round_trip < kept.round_trip {
                    *kept = best;
                }
            }
            _ => self.spans.push_back((span, best)),
        }
        if self.spans.len() > KEPT {
            self.spans.pop_front();
        }
        self.fit();
        step
    }

    /// Returns this host's clock minus the other's at a time on this host's clock; `None` before
    /// enough exchanges.
    pub fn at(&self, now: Nanos) -> Option<i64> {
        if self.exchanges < EXCHANGES_MIN {
            return None;
        }
        let (base, skew) = self.base?;
        let since = now.as_nanos().wrapping_sub(base.at) as i64;
        Some(base.offset.wrapping_add((since as f64 * skew) as i64))
    }

    /// Returns the minimum round trip in nanoseconds.
    pub fn round_trip_ns(&self) -> u64 {
        let round_trips = self.spans.iter().map(|(_, best)| best.round_trip);
        round_trips.min().unwrap_or(0)
    }

    /// Returns the offset's uncertainty in nanoseconds: half of the minimum round trip, because
    /// paths may be asymmetric.
    pub fn uncertainty_ns(&self) -> u64 {
        self.base.map_or(0, |(base, _)| base.round_trip.div_ceil(2))
    }

    /// Returns how much faster this host's clock runs than the other's, in ppm.
    pub fn skew_ppm(&self) -> f64 {
        self.base.map_or(0.0, |(_, skew)| skew * 1e6)
    }

    /// Fits a line through the best exchanges.
    fn fit(&mut self) {
        let Some(best) = self
            .spans
            .iter()
            .map(|(_, best)| *best)
            .min_by_key(|best| best.round_trip)
        else {
            return;
        };
        // Exchanges delayed in queues carry little information.
        let limit = best.round_trip.saturating_mul(2).saturating_add(20_000);
        let good = self.spans.iter().map(|(_, each)| *each);
        let good: Vec<ClockExchange> = good.filter(|each| each.round_trip <= limit).collect();
        let oldest = good.first().map_or(best.at, |each| each.at);
        let newest = good.last().map_or(best.at, |each| each.at);
        let skew = if newest - oldest >= SKEW_SPAN_MIN {
            slope(&good, &best)
        } else {
            0.0
        };
        self.base = Some((best, skew.clamp(-SKEW_MAX, SKEW_MAX)));
    }
}

/// Returns the least-squares slope of the offsets.
fn slope(points: &[ClockExchange], origin: &ClockExchange) -> f64 {
    let relative = |point: &ClockExchange| {
        let at = point.at.wrapping_sub(origin.at) as i64 as f64;
        (at, point.offset.wrapping_sub(origin.offset) as f64)
    };
    let count = points.len() as f64;
    let (mut at_sum, mut offset_sum) = (0.0, 0.0);
    for (at, offset) in points.iter().map(relative) {
        at_sum += at;
        offset_sum += offset;
    }
    let (at_mean, offset_mean) = (at_sum / count, offset_sum / count);
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (at, offset) in points.iter().map(relative) {
        covariance += (at - at_mean) * (offset - offset_mean);
        variance += (at - at_mean) * (at - at_mean);
    }
    if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Draws;

    use super::*;

    /// A remote clock, and an underlay with up to `jitter` of queueing delay.
    struct World {
        draws: Draws,
        offset: i64,
        skew: f64,
        delay: u64,
        jitter: u64,
    }

    impl World {
        fn theirs(&self, ours: u64) -> Nanos {
            let skewed = ours as f64 * (1.0 + self.skew);
            Nanos::from_nanos((skewed as u64).wrapping_add_signed(self.offset))
        }

        fn exchange(&mut self, at: u64, estimator: &mut OffsetEstimator) -> Option<i64> {
            let there = at + self.delay + self.draws.below(self.jitter);
            let back = there + 5_000 + self.delay + self.draws.below(self.jitter);
            let stamps = [
                Nanos::from_nanos(at),
                self.theirs(there),
                self.theirs(there + 5_000),
                Nanos::from_nanos(back),
            ];
            estimator.exchange(stamps)
        }
    }

    const START: u64 = 1_000_000_000_000;

    #[test]
    fn offset_and_skew_are_found_through_jitter() {
        for (offset, skew) in [(0, 0.0), (100_000_000, 50e-6), (-7_200_000_000_000, -80e-6)] {
            let mut world = World {
                draws: Draws(3),
                offset: offset + START as i64 * 8,
                skew,
                delay: 500_000,
                jitter: 2_000_000,
            };
            let mut estimator = OffsetEstimator::default();
            for nth in 0..400 {
                let at = START + nth * 100_000_000;
                assert_eq!(world.exchange(at, &mut estimator), None, "{nth}");
            }
            let now = START + 400 * 100_000_000;
            let estimated = estimator.at(Nanos::from_nanos(now)).expect("an offset");
            let real = now.wrapping_sub(world.theirs(now).as_nanos()) as i64;
            let error = estimated.wrapping_sub(real);
            assert!(error.abs() < 500_000, "{error} ns with {offset}, {skew}");
            assert!(
                error.unsigned_abs() <= estimator.uncertainty_ns() + 100_000,
                "{error}"
            );
            let skew_error = estimator.skew_ppm() + skew * 1e6;
            assert!(skew_error.abs() < 40.0, "{skew_error} ppm");
        }
    }

    #[test]
    fn a_step_is_reported_once_and_followed() {
        let mut world = World {
            draws: Draws(3),
            offset: 0,
            skew: 0.0,
            delay: 500_000,
            jitter: 100_000,
        };
        let mut estimator = OffsetEstimator::default();
        let mut steps = Vec::new();
        for nth in 0..200 {
            if nth == 100 {
                world.offset = 50_000_000;
            }
            steps.extend(world.exchange(START + nth * 100_000_000, &mut estimator));
        }
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert!((steps[0] - 50_000_000).abs() < 1_000_000, "{steps:?}");
        let offset = estimator.at(Nanos::from_nanos(START + 20_000_000_000));
        let offset = offset.expect("an offset");
        assert!((offset + 50_000_000).abs() < 200_000, "{offset}");
    }
}
