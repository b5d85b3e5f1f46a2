//! The counters of links in answers, and their growth.

use std::collections::BTreeMap;

use longwire_engine::{DropReason, Nanos};
use longwire_runtime::fabric::LinkTotals;
use serde::Serialize;

use super::refusal::Refusal;
use super::reply::Reply;
use super::route::Call;
use super::state::ApiState;

/// Counters, under the names that links have too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    #[serde(flatten)]
    totals: LinkTotals,
    /// Drops by reason, those that there were.
    dropped: BTreeMap<&'static str, u64>,
    /// Frames in queues and in service.
    queued: u64,
}

impl From<&LinkTotals> for Totals {
    fn from(totals: &LinkTotals) -> Totals {
        let reasons = DropReason::ALL.iter().zip(totals.drops);
        let reasons = reasons.filter(|(_, count)| *count > 0);
        Totals {
            totals: totals.clone(),
            dropped: reasons
                .map(|(reason, count)| (reason.name(), count))
                .collect(),
            queued: totals.queued(),
        }
    }
}

/// Growth of counters a second, since the last event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    packets_in_per_s: f64,
    bits_in_per_s: f64,
    packets_out_per_s: f64,
    bits_out_per_s: f64,
    drops_per_s: f64,
}

impl Rates {
    /// Returns the growth from `before` to `now`, a second. `None` if a counter became
    /// less or no time passed: then these are not the same links.
    pub fn between(before: &LinkTotals, now: &LinkTotals, passed: Nanos) -> Option<Rates> {
        let seconds = seconds(passed);
        if seconds <= 0.0 {
            return None;
        }
        let rate = |before: u64, now: u64| Some(now.checked_sub(before)? as f64 / seconds);
        Some(Rates {
            packets_in_per_s: rate(before.packets_in, now.packets_in)?,
            bits_in_per_s: 8.0 * rate(before.bytes_in, now.bytes_in)?,
            packets_out_per_s: rate(before.packets_out, now.packets_out)?,
            bits_out_per_s: 8.0 * rate(before.bytes_out, now.bytes_out)?,
            drops_per_s: rate(before.dropped(), now.dropped())?,
        })
    }
}

/// A time in seconds.
pub fn seconds(time: Nanos) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// The sums of links that fit.
#[derive(Serialize)]
struct Sums {
    elapsed_s: f64,
    links: usize,
    totals: Totals,
}

/// `/v1/stats`.
pub fn sums(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let elapsed = state.controller.elapsed();
    let pattern = call.query.text("match").unwrap_or("*");
    let (links, totals) = state.controller.totals(pattern);
    Reply::json(&Sums {
        elapsed_s: seconds(elapsed),
        links,
        totals: Totals::from(&totals),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_time_that_passed() {
        let before = LinkTotals {
            packets_in: 10,
            bytes_in: 1000,
            ..LinkTotals::default()
        };
        let mut now = LinkTotals {
            packets_in: 30,
            bytes_in: 3500,
            packets_out: 4,
            ..before.clone()
        };
        now.drops[0] = 2;
        let rates = Rates::between(&before, &now, Nanos::from_millis(500)).expect("it grew");
        assert_eq!(rates.packets_in_per_s, 40.0);
        assert_eq!(rates.bits_in_per_s, 40_000.0);
        assert_eq!(rates.packets_out_per_s, 8.0);
        assert_eq!(rates.drops_per_s, 4.0);
        // A link that was removed and made again has counted less.
        assert_eq!(Rates::between(&now, &before, Nanos::from_secs(1)), None);
        assert_eq!(Rates::between(&before, &now, Nanos::ZERO), None);
    }
}
