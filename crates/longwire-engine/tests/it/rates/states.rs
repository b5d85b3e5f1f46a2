//! Rates with random states.

use longwire_engine::models;

use crate::rates::links::{both_ways, departures, link};

/// Frames that keep the link busy until `end`.
fn busy(end: u64, gap: u64) -> Vec<(u64, u32)> {
    (0..end / gap).map(|index| (index * gap, 1_250)).collect()
}

/// An on-off link at 10 Mbit/s, on average 30 ms on and 70 ms off, for 2,000 s or 20,000 cycles.
/// With exponential holding times, the standard deviation of the on share is close to sqrt(2 ·
/// 20,000) · 0.03 · 0.07 / 0.1 / 2,000 = 0.0021; the bound is four times that.
#[test]
fn shares_of_time_are_those_of_the_mean_times() {
    let rate = "two-state:good=10mbit,bad=0,good-time=30ms,bad-time=70ms";
    let mean = models::RATE.parse(rate).unwrap().bit_rate().unwrap();
    assert_eq!(mean.bits_per_sec(), 3_000_000);
    // 1250 bytes take 1 ms: as many frames as an always-on link could send.
    let end = 2_000_000_000_000u64;
    let departures = departures(&mut link(rate, "", 0, false), &busy(end, 1_000_000));
    let sent = departures.iter().filter(|at| **at < end).count() as f64;
    let share = sent * 1e6 / end as f64;
    assert!((share - 0.3).abs() < 0.0084, "{share}");
}

/// Computed by hand for three states: with transition weights of 2 : 1 from the first and 3 : 2
/// from the second and third, states are entered in the ratio 21 : 20 : 15. With holding times of
/// 1, 2 and 3 ms, they take 21, 40 and 45 of every 106 ms.
#[test]
fn a_chain_has_the_mean_of_its_stationary_shares() {
    let rate = "markov:rates=46mbit;23mbit;0,times=1ms;2ms;3ms,matrix=0/2/1;3/0/2;3/2/0";
    let mean = models::RATE.parse(rate).unwrap().bit_rate().unwrap();
    let expected = (46e6 * 21.0 + 23e6 * 40.0) / 106.0;
    assert!(
        (mean.bits_per_sec() as f64 - expected).abs() < 1.0,
        "{mean}"
    );
}

#[test]
fn the_seed_decides_and_both_ways_agree() {
    let rate = "markov:rates=10mbit;1mbit;0,times=5ms;2ms;100us";
    let frames = busy(5_000_000_000, 1_300_000);
    let once = both_ways(rate, "", 7, &frames);
    assert_eq!(once, both_ways(rate, "", 7, &frames));
    assert!(once.windows(2).all(|pair| pair[0] <= pair[1]));
}

/// The channel state depends on the seed but not on traffic: a lone frame departs as if at the end
/// of a busy period.
#[test]
fn the_channel_advances_without_traffic() {
    let rate = "two-state:good=100gbit,bad=0,good-time=2ms,bad-time=5ms";
    let alone: Vec<u64> = (1..400u64)
        .map(|nth| departures(&mut link(rate, "", 0, false), &[(nth * 1_234_567, 64)])[0])
        .collect();
    let frames: Vec<(u64, u32)> = (1..400u64).map(|nth| (nth * 1_234_567, 64)).collect();
    let among = departures(&mut link(rate, "", 0, false), &frames);
    for (alone, among) in alone.iter().zip(&among) {
        // Equal except for earlier backlog, which takes less than 5 us.
        assert!(among - alone < 5_000, "{alone} {among}");
    }
}

/// A frame that outlasts ten thousand states is served quickly, at the mean rate: 4 GB in states of
/// a microsecond, within 10^-4.
#[test]
fn a_frame_of_very_many_states_is_served_at_the_mean_rate() {
    let rate = "two-state:good=3mbit,bad=1mbit,good-time=1us,bad-time=1us";
    let departure = departures(&mut link(rate, "", 0, false), &[(0, u32::MAX)])[0];
    let expected = f64::from(u32::MAX) * 8.0 / 2e6 * 1e9;
    assert!(
        (departure as f64 / expected - 1.0).abs() < 1e-4,
        "{departure}, not {expected}"
    );
}
