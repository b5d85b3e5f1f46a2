//! Due times of generated frames: exact, or within stated statistical bounds.

use longwire_engine::models::framing::Framing;
use longwire_engine::{BitRate, Nanos, PacketRate};
use longwire_traffic::arrivals::{EvenClock, Load, LoadRate};
use longwire_traffic::{ARRIVALS, SIZES};
use longwire_units::random::{Purpose, Stream};

fn load(rate: &str, sizes: &str) -> Load {
    let rate: LoadRate = rate.parse().expect("a rate");
    Load::new(rate, &*SIZES.parse(sizes).expect("sizes"))
}

/// Returns the first `count` due times for frames of `len` bytes.
fn times(model: &str, rate: &str, len: u32, count: usize, seed: u64) -> Vec<u64> {
    let load = load(rate, &len.to_string());
    let mut arrivals = ARRIVALS.parse(model).expect(model).begin(load);
    let mut stream = Stream::new(seed, 0, Purpose::Arrivals);
    (0..count)
        .map(|_| arrivals.due(len, &mut stream).as_nanos())
        .collect()
}

#[test]
fn an_even_packet_rate_is_exact() {
    for milli in [1_000, 999_999_937, 14_880_952_381, 1_000_000_000_000] {
        let rate = PacketRate::from_packets_per_kilosec(milli).expect("in range");
        let mut clock = EvenClock::new(LoadRate::Packets(rate));
        for number in 0..3_000_000 {
            assert_eq!(clock.due(1_514), rate.due(number), "{rate} {number}");
        }
    }
}

#[test]
fn no_error_accumulates_in_an_hour() {
    // 81,000.0006… ns per packet, which is 44,444,444.4 packets per hour.
    let rate = PacketRate::from_packets_per_kilosec(12_345_679).expect("in range");
    let mut clock = EvenClock::new(LoadRate::Packets(rate));
    let count = 44_444_445;
    let last = (0..count).map(|_| clock.due(60)).last();
    assert_eq!(last, Some(rate.due(count - 1)));
    assert!(last > Some(Nanos::from_secs(3_599)));
}

#[test]
fn an_even_bit_rate_is_exact() {
    let rate = BitRate::from_bits_per_sec(9_999_999_967).expect("in range");
    let mut clock = EvenClock::new(LoadRate::Bits(rate, Framing::ETHERNET));
    let mut bits = 0u128;
    for number in 0..2_000_000u32 {
        let len = 60 + number * 7 % 1_455;
        let due = bits * 1_000_000_000 / u128::from(rate.bits_per_sec());
        assert_eq!(u128::from(clock.due(len).as_nanos()), due, "{number}");
        bits += u128::from(len + 24) * 8;
    }
}

#[test]
fn a_load_gives_its_packet_rate() {
    // A round has 12 frames: 7 of 60 bytes, 4 of 590 and 1 of 1514.
    let imix = load("10mbit", "imix");
    let mean = (7.0 * 60.0 + 4.0 * 590.0 + 1_514.0) / 12.0;
    assert!((imix.packets_per_sec() - 10e6 / (mean * 8.0)).abs() < 1e-6);
    assert!((load("2mpps", "imix").mean_gap() - 500.0).abs() < 1e-9);
}

/// Compares gaps with the exponential distribution: the Kolmogorov distance exceeds 2.8/sqrt(n)
/// with probability 3e-7 (n = 200,000; seed 7). Rounding to nanoseconds adds at most 1e-4 at a mean
/// of 10,000.
#[test]
fn poisson_gaps_are_exponential() {
    let n = 200_000;
    let times = times("poisson", "100kpps", 60, n + 1, 7);
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let distance = gaps.iter().enumerate().map(|(index, gap)| {
        let law = 1.0 - (-(*gap as f64) / 10_000.0).exp();
        (law - (index as f64 + 0.5) / n as f64).abs()
    });
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 2.8 / (n as f64).sqrt() + 1e-4, "{distance}");
}

/// The sum of n gaps has a relative standard deviation of 1/sqrt(n); five of them are exceeded with
/// probability 6e-7 (n = 1,000,000; seed 3).
#[test]
fn poisson_keeps_its_rate_for_any_size() {
    let n = 1_000_000;
    for (rate, gap) in [("10mpps", 100.0), ("10gbit", 48.0)] {
        let last = times("poisson", rate, 60, n + 1, 3)[n] as f64;
        let error = last / (n as f64 * gap) - 1.0;
        assert!(error.abs() < 5.0 / (n as f64).sqrt(), "{rate}: {error}");
    }
}

/// With exponential periods of 10 ms, the number of frames until T has a variance of about
/// T·rate²·(2·mean/4). Over 400 s at a mean of 10,000 frames/s, the standard deviation is 14,142 of
/// 4,000,000 frames, 0.35 %. Five of them are exceeded with probability 6e-7 (seed 5).
#[test]
fn exponential_periods_keep_the_mean_rate() {
    let n = 4_000_000;
    let times = times("on-off:on=10ms,off=10ms", "10kpps", 60, n + 1, 5);
    let error = times[n] as f64 / 400e9 - 1.0;
    assert!(error.abs() < 5.0 * 0.0036, "{error}");
    // Within a period, frames are at least 50 us apart.
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let close = gaps.clone().filter(|gap| (49_999..=50_001).contains(gap));
    assert!(close.count() > n * 99 / 100);
    assert!(gaps.min() >= Some(49_999));
}

/// Pareto periods: the share above twice the minimum is 2^-shape, 0.354 for shape 1.5. With about
/// 10,000 periods, its standard deviation is 0.0048; the test allows five of them (seed 11).
#[test]
fn pareto_periods_have_their_tail() {
    let model = "on-off:on=1ms,off=3ms,law=pareto,shape=1.5";
    let times = times(model, "250kpps", 60, 10_000_000, 11);
    // Frames are 1 us apart; longer gaps are off periods, which last at least 1 ms, a third of
    // their mean.
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let offs: Vec<u64> = gaps.filter(|gap| *gap > 500_000).collect();
    assert!(offs.len() > 8_000, "{}", offs.len());
    assert!(offs.iter().all(|off| *off >= 1_000_000));
    let long = offs.iter().filter(|off| **off > 2_000_500).count();
    let share = long as f64 / offs.len() as f64;
    let expected = 2f64.powf(-1.5);
    let deviation = (expected * (1.0 - expected) / offs.len() as f64).sqrt();
    assert!((share - expected).abs() < 5.0 * deviation, "{share}");
}

#[test]
fn constant_periods_and_bursts_are_exact() {
    let check = |model: &str, rate: &str, due: fn(u64) -> u64| {
        for (number, time) in (0..).zip(times(model, rate, 60, 4_000, 1)) {
            assert_eq!(time, due(number), "{model}: {number}");
        }
    };
    // The rate is 1,000 frames/s on average, and 4,000 during on periods.
    check("on-off:on=5ms,off=15ms,law=constant", "1kpps", |number| {
        number / 20 * 20_000_000 + number % 20 * 250_000
    });
    check("burst:frames=4p", "1mpps", |number| number / 4 * 4_000);
    // 84 bytes take 672 ns at 1 Gbit/s.
    check("burst:frames=4p,line=1gbit", "1mpps", |number| {
        number / 4 * 4_000 + number % 4 * 672
    });
    // A line slower than the load sets the pace.
    check("burst:frames=4p,line=100mbit", "1mpps", |number| {
        number * 6_720
    });
}

#[test]
fn a_linear_ramp_follows_its_integral() {
    // The rate rises from 0 to 1 Mpps in 1 s, so 10^6·t²/2 packets are due in t seconds, and packet
    // n is due at t² = 2n·1000² µs².
    let times = times("ramp:time=1s", "1mpps", 60, 600_001, 1);
    for number in [1u64, 2, 50, 5_000, 123_457, 500_000] {
        let exact = (2.0 * number as f64).sqrt() * 1e6;
        let error = times[number as usize] as f64 - exact;
        assert!(error.abs() <= 1.5, "{number}: {error}");
    }
    assert_eq!(times[600_000], 1_100_000_000, "then it stays");
}

#[test]
fn a_stepped_ramp_keeps_each_rate() {
    let model = "ramp:from=50%,to=100%,time=2s,steps=2";
    let times = times(model, "1kpps", 60, 3_000, 1);
    assert_eq!(times[250], 500_000_000);
    assert_eq!(times[500], 1_000_000_000);
    assert_eq!(times[1_500], 2_000_000_000);
    assert_eq!(times[2_500], 3_000_000_000);
}

#[test]
fn a_ramp_to_nothing_ends() {
    // A ramp from 1,000 frames/s to zero in 1 s has 500 frames.
    let times = times("ramp:from=100%,to=0%,time=1s", "1kpps", 60, 600, 1);
    assert!(times[499] < 1_000_000_000);
    assert_eq!(times[599], u64::MAX);
}

#[test]
fn the_seed_determines_due_times() {
    for model in ["poisson", "on-off:on=1ms,off=1ms"] {
        let draw = |seed| times(model, "1mpps", 60, 5_000, seed);
        assert_eq!(draw(1), draw(1), "{model}");
        assert_ne!(draw(1), draw(2), "{model}");
        assert!(draw(1).is_sorted(), "{model}");
    }
}

#[test]
fn contradictory_options_are_refused() {
    let models = "burst:frames=0p on-off:on=0,off=1ms on-off:on=1ms,off=1ms,shape=1 \
                  ramp:time=1s,steps=1 ramp:time=1s,from=0%,to=0% ramp:time=10ns sometimes";
    for model in models.split(' ') {
        assert!(ARRIVALS.parse(model).is_err(), "{model}");
    }
    for rate in ["10", "10mb", "0pps", "0bit", "fast", "11tbit"] {
        assert!(rate.parse::<LoadRate>().is_err(), "{rate}");
    }
    for rate in ["10mbit", "1.5mpps", "0.5pps"] {
        let parsed: LoadRate = rate.parse().expect(rate);
        assert_eq!(parsed.to_string(), rate);
    }
}
