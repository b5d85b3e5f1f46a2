//! Token buckets, compared with a direct count of tokens.

use proptest::prelude::*;

use crate::rates::links::{any_frames, both_ways};

const NANOBITS: i128 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: u64,
    burst: u64,
    peak: Option<u64>,
    tick: u64,
}

impl Bucket {
    fn written(&self) -> String {
        let peak = self.peak.map(|peak| format!(",peak={peak}bit"));
        format!(
            "token-bucket:rate={}bit,burst={}b,tick={}ns{}",
            self.rate,
            self.burst,
            self.tick,
            peak.unwrap_or_default()
        )
    }

    fn burst_tokens(&self) -> i128 {
        i128::from(self.burst) * 8 * NANOBITS
    }

    /// Returns the departure of a frame that may start at `start`, in nanoseconds times the rate,
    /// on a line that becomes free at `free`, in nanoseconds times the rate and the peak. Both are
    /// exact; only the result is rounded down.
    fn line(&self, start: i128, len: u32, free: &mut i128) -> u64 {
        let rate = i128::from(self.rate);
        let Some(peak) = self.peak.map(i128::from) else {
            return (start / rate) as u64;
        };
        let begin = (start * peak).max(*free);
        *free = begin + i128::from(len) * 8 * NANOBITS * rate;
        (*free / (rate * peak)) as u64
    }

    /// Returns departures if tokens are added continuously: at r bit/s, r billionths of a bit per
    /// nanosecond.
    fn continuous(&self, frames: &[(u64, u32)]) -> Vec<u64> {
        let rate = i128::from(self.rate);
        let (mut now, mut tokens) = (0i128, self.burst_tokens());
        let (mut last, mut line_free) = (0u64, 0i128);
        let departures = frames.iter().map(|(arrival, len)| {
            let at = i128::from((*arrival).max(last)) * rate;
            if at > now {
                tokens = (tokens + at - now).min(self.burst_tokens());
                now = at;
            }
            let bits = i128::from(*len) * 8 * NANOBITS;
            let lacking = (bits.min(self.burst_tokens()) - tokens).max(0);
            now += lacking;
            tokens += lacking - bits;
            last = self.line(now, *len, &mut line_free);
            last
        });
        departures.collect()
    }

    /// Returns departures if tokens are added at ticks.
    fn ticking(&self, frames: &[(u64, u32)]) -> Vec<u64> {
        let rate = i128::from(self.rate);
        let (mut tick, mut tokens) = (0u64, self.burst_tokens());
        let (mut last, mut line_free) = (0u64, 0i128);
        let each = rate * i128::from(self.tick);
        let departures = frames.iter().map(|(arrival, len)| {
            let at = (*arrival).max(last);
            let mut start = at;
            while (tick + 1) * self.tick <= at {
                tick += 1;
                tokens = (tokens + each).min(self.burst_tokens());
            }
            let bits = i128::from(*len) * 8 * NANOBITS;
            while tokens < bits.min(self.burst_tokens()) {
                tick += 1;
                tokens = (tokens + each).min(self.burst_tokens());
                start = tick * self.tick;
            }
            tokens -= bits;
            last = self.line(i128::from(start) * rate, *len, &mut line_free);
            last
        });
        departures.collect()
    }
}

fn any_bucket(tick: impl Strategy<Value = u64>) -> impl Strategy<Value = Bucket> {
    let rate = prop_oneof![Just(10_000_000u64), 1_000_000u64..1_000_000_000];
    let burst = prop_oneof![1u64..100, 1_000u64..100_000, Just(1_514)];
    let peak = proptest::option::of(1u64..20);
    (rate, burst, peak, tick).prop_map(|(rate, burst, peak, tick)| Bucket {
        rate,
        burst,
        peak: peak.map(|times| rate * times + times),
        tick,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn tokens_that_come_all_the_time_are_counted(
        bucket in any_bucket(Just(0)),
        frames in any_frames(5_000_000),
    ) {
        let departures = both_ways(&bucket.written(), "", 0, &frames);
        prop_assert_eq!(departures, bucket.continuous(&frames));
    }

    #[test]
    fn tokens_that_come_in_ticks_are_counted(
        bucket in any_bucket(prop_oneof![Just(1_000u64), 1u64..5_000_000]),
        frames in any_frames(2_000_000),
    ) {
        let departures = both_ways(&bucket.written(), "", 0, &frames);
        prop_assert_eq!(departures, bucket.ticking(&frames));
    }
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    let rate = "token-bucket:rate=8mbit,burst=3000b";
    let frames = vec![(1_000_000u64, 1_000u32); 6];
    let departures = both_ways(rate, "", 0, &frames);
    let millis: Vec<u64> = departures.iter().map(|at| at / 1_000_000).collect();
    assert_eq!(millis, [1, 1, 1, 2, 3, 4]);
    // A line of 80 Mbit/s adds 100 us per frame.
    let peak = format!("{rate},peak=80mbit");
    let departures = both_ways(&peak, "", 0, &frames);
    let micros: Vec<u64> = departures.iter().map(|at| at / 1_000).collect();
    assert_eq!(micros, [1_100, 1_200, 1_300, 2_100, 3_100, 4_100]);
}
