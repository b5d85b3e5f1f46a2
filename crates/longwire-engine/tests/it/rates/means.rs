//! A rate model's `mean`, compared with the data it sends under saturation.

use longwire_engine::{Nanos, models};

use crate::common::files;
use crate::rates::links::{departures, link};

/// Model, file contents and period in nanoseconds.
const CASES: [(&str, &str, u64); 14] = [
    ("fixed:rate=7mbit", "", 1_000_000),
    ("steps:at=0s/10mbit;10ms/2mbit,period=40ms", "", 40_000_000),
    (
        "steps:at=0s/10mbit;10ms/2mbit,change=linear,period=40ms",
        "",
        40_000_000,
    ),
    ("steps:at=0s/10mbit;10ms/2mbit", "", 20_000_000),
    ("trace:t", "time,rate_mbps\n0,8\n1,4\n3,0\n", 5_000_000_000),
    ("trace:t", "1\n2\n3\n10\n", 10_000_000),
    (
        "mahimahi:file=t,opportunity=1500b,overhead=-14",
        "1\n2\n2\n10\n",
        10_000_000,
    ),
    ("trace:t", "0 1\n2 3\n3 9\n", 3_000_000_000),
    (
        "tdm:rate=10mbit,period=10ms,slot=3ms,guard=1ms",
        "",
        10_000_000,
    ),
    // 5 frames of 1,514 bytes: the fifth reaches 6,057 bytes.
    ("slots:wait=10ms,packets=9p,bytes=6057b", "", 10_000_000),
    // 5 frames take 6.056 ms.
    ("slots:wait=10ms,packets=5p,rate=10mbit", "", 16_056_000),
    ("slots:wait=10ms,rate=10mbit", "", 10_000_000),
    ("token-bucket:rate=5mbit,burst=64kb", "", 1_000_000),
    ("wifi:rate=300mbit,window=0,contention=0", "", 1_000_000),
];

#[test]
fn a_full_queue_is_served_at_the_mean_rate() {
    const LEN: u32 = 1_514;
    for (rate, file, period) in CASES {
        let model = models::RATE.parse_with(rate, &files::file(file)).unwrap();
        let mean = model.bit_rate().unwrap().bits_per_sec() as f64;
        let frames = vec![(0u64, LEN); 40_000];
        let departures = departures(&mut link(rate, file, 0, false), &frames);
        // Whole periods, well after the transient of a bucket or a single step.
        let from = 2 * period;
        let laps = (departures[departures.len() - 1] - from) / period - 1;
        let to = from + laps * period;
        assert!(laps > 15, "{rate}: {laps} laps");
        let sent = departures
            .iter()
            .filter(|at| (from..to).contains(*at))
            .count();
        let bits = sent as f64 * f64::from(LEN) * 8.0;
        let measured = bits / Nanos::from_nanos(to - from).as_secs_f64();
        // Tolerance: one frame, or one aggregate of 43 frames, at each end.
        let frames = if rate.starts_with("wifi") { 86.0 } else { 2.0 };
        let slack = frames * f64::from(LEN) * 8.0 / Nanos::from_nanos(to - from).as_secs_f64();
        // mahimahi counts 10 bytes less than the frame's length, and 14 less with overhead=-14.
        let share = match (file.contains(' '), file.contains(','), rate) {
            (false, false, "trace:t") => 1_504.0 / 1_514.0,
            (_, _, rate) if rate.starts_with("mahimahi") => 1_500.0 / 1_514.0,
            _ => 1.0,
        };
        let served = measured * share;
        assert!(
            (served - mean).abs() <= slack + 1.0,
            "{rate}: {served}, not {mean}"
        );
    }
}
