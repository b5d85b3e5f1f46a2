//! Load on the control API: changes at a fixed rate, with concurrent queries.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;

use super::Quantiles;
use super::site::LINK;
use crate::program::joined;
use longwire::Error;
use longwire_client::{Client, ClientError};
use longwire_control::Address;

/// Connections that share the changes, so that a late response does not delay the next
/// change.
const CONNECTIONS: u32 = 4;

/// Interval between queries of one link.
const QUERY_INTERVAL: Duration = Duration::from_millis(10);

/// Requests sent while frames flow.
pub(super) struct ControlLoad {
    pub address: Address,
    pub changes_per_s: u32,
    pub time: Duration,
}

/// Response times of one kind of request, and the number of failures.
pub(super) struct RequestTimes {
    /// Response times, in nanoseconds.
    times: Histogram<u64>,
    pub failed: u64,
}

impl RequestTimes {
    fn new() -> Result<RequestTimes, Error> {
        const DIGITS: u8 = 3;
        /// The longest recorded time, in nanoseconds; exceeds the client's timeout.
        const TIME_MAX: u64 = 120_000_000_000;
        let times = Histogram::new_with_max(TIME_MAX, DIGITS);
        let times = times.map_err(|error| Error::Failed(error.to_string()))?;
        Ok(RequestTimes { times, failed: 0 })
    }

    fn note<T>(&mut self, began: Instant, answer: &Result<T, ClientError>) {
        match answer {
            Ok(_) => self
                .times
                .saturating_record(began.elapsed().as_nanos() as u64),
            Err(_) => self.failed += 1,
        }
    }

    /// Returns the number of successful requests.
    pub fn done(&self) -> u64 {
        self.times.len()
    }

    /// Returns quantiles of the response times.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        (!self.times.is_empty()).then(|| Quantiles {
            p50: ms(self.times.value_at_quantile(0.5)),
            p99: ms(self.times.value_at_quantile(0.99)),
            max: ms(self.times.max()),
        })
    }
}

impl ControlLoad {
    /// Sends changes and queries; returns the response times of each.
    pub fn run(&self) -> Result<(RequestTimes, RequestTimes), Error> {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let changers = (0..CONNECTIONS.min(self.changes_per_s))
                .map(|nth| scope.spawn(move || self.change(nth, began)))
                .collect::<Vec<_>>();
            let mut gets = RequestTimes::new()?;
            let mut client = Client::new(self.address.clone(), None)?;
            let mut nth = 0;
            while wait(began, QUERY_INTERVAL * nth, self.time) {
                let asked = Instant::now();
                gets.note(asked, &client.get(&format!("/v1/links/{LINK}")));
                nth += 1;
            }
            let mut changes = RequestTimes::new()?;
            for changer in changers {
                let changed = joined(changer)?;
                changes.failed += changed.failed;
                let added = changes.times.add(&changed.times);
                added.map_err(|error| Error::Failed(error.to_string()))?;
            }
            Ok((changes, gets))
        })
    }

    /// Sends every `CONNECTIONS`-th change, starting with `first`, each at its time
    /// after the start.
    fn change(&self, first: u32, began: Instant) -> Result<RequestTimes, Error> {
        /// Number of delays and rates that the link cycles through.
        const DELAYS_MS: u64 = 5;
        const RATES: [&str; 3] = ["800mbit", "1gbit", "2gbit"];
        let mut asked = RequestTimes::new()?;
        let mut client = Client::new(self.address.clone(), None)?;
        let mut nth = u64::from(first);
        while wait(began, self.due(nth), self.time) {
            let set = match nth % 2 {
                0 => json!({ "delay": format!("{}ms", 1 + nth / 2 % DELAYS_MS) }),
                _ => json!({ "rate": RATES[(nth / 2) as usize % RATES.len()] }),
            };
            let asking = Instant::now();
            let answer = client.post("/v1/changes", &json!({ "set": { LINK: set } }));
            asked.note(asking, &answer);
            nth += u64::from(CONNECTIONS.min(self.changes_per_s));
        }
        Ok(asked)
    }

    /// Returns the time of change `nth`, relative to the start.
    fn due(&self, nth: u64) -> Duration {
        Duration::from_nanos(nth.saturating_mul(1_000_000_000) / u64::from(self.changes_per_s))
    }
}

/// Sleeps until `due` after the start. Returns whether that is before the end.
fn wait(began: Instant, due: Duration, end: Duration) -> bool {
    std::thread::sleep(due.saturating_sub(began.elapsed()));
    due < end && began.elapsed() < end
}
