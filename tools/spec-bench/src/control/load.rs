//! Who asks: changes at a rate, and questions beside them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;

use super::Quantiles;
use super::site::LINK;
use longwire::Error;
use longwire_control::Address;
use longwire_control::client::{Client, ClientError};

/// Changes come by so many connections, so that one that is answered late does
/// not delay the next.
const CONNECTIONS: u32 = 4;

/// How often one link is asked for.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// What is asked while frames flow.
pub(super) struct Load {
    pub address: Address,
    pub changes_per_s: u32,
    pub time: Duration,
}

/// What came of it.
pub(super) struct Asked {
    /// In nanoseconds.
    times: Histogram<u64>,
    pub failed: u64,
}

impl Asked {
    fn new() -> Result<Asked, Error> {
        const DIGITS: u8 = 3;
        /// Longer than any answer is waited for, in nanoseconds.
        const TIME_MAX: u64 = 120_000_000_000;
        let times = Histogram::new_with_max(TIME_MAX, DIGITS);
        let times = times.map_err(|error| Error::Failed(error.to_string()))?;
        Ok(Asked { times, failed: 0 })
    }

    fn note<T>(&mut self, began: Instant, answer: &Result<T, ClientError>) {
        match answer {
            Ok(_) => self
                .times
                .saturating_record(began.elapsed().as_nanos() as u64),
            Err(_) => self.failed += 1,
        }
    }

    /// How often it was answered well.
    pub fn done(&self) -> u64 {
        self.times.len()
    }

    /// How long answers took.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        (!self.times.is_empty()).then(|| Quantiles {
            p50: ms(self.times.value_at_quantile(0.5)),
            p99: ms(self.times.value_at_quantile(0.99)),
            max: ms(self.times.max()),
        })
    }
}

impl Load {
    /// Changes and asks; says what came of the changes, and of the questions.
    pub fn run(&self) -> Result<(Asked, Asked), Error> {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let changers = (0..CONNECTIONS.min(self.changes_per_s))
                .map(|nth| scope.spawn(move || self.change(nth, began)))
                .collect::<Vec<_>>();
            let mut gets = Asked::new()?;
            let mut client = Client::new(self.address.clone(), None)?;
            let mut nth = 0;
            while wait(began, ASK_EVERY * nth, self.time) {
                let asked = Instant::now();
                gets.note(asked, &client.get(&format!("/v1/links/{LINK}")));
                nth += 1;
            }
            let mut changes = Asked::new()?;
            for changer in changers {
                let changed = changer
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                changes.failed += changed.failed;
                let added = changes.times.add(&changed.times);
                added.map_err(|error| Error::Failed(error.to_string()))?;
            }
            Ok((changes, gets))
        })
    }

    /// Every so many-th change, each at its time from the beginning.
    fn change(&self, first: u32, began: Instant) -> Result<Asked, Error> {
        /// Delays and rates that the link takes in turn.
        const DELAYS_MS: u64 = 5;
        const RATES: [&str; 3] = ["800mbit", "1gbit", "2gbit"];
        let mut asked = Asked::new()?;
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

    /// When the `nth` change is due, from the beginning.
    fn due(&self, nth: u64) -> Duration {
        Duration::from_nanos(nth.saturating_mul(1_000_000_000) / u64::from(self.changes_per_s))
    }
}

/// Waits until so long from the beginning, if that is before the end.
fn wait(began: Instant, due: Duration, end: Duration) -> bool {
    std::thread::sleep(due.saturating_sub(began.elapsed()));
    due < end && began.elapsed() < end
}
