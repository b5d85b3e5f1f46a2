//! A chain's holding times, transitions and time shares, compared with theory.

extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;

fn state(rate: u64, time: Nanos) -> ChainState {
    ChainState { rate, time }
}

/// Returns the rate and holding time, in nanoseconds, of the next `count` states of a chain that is
/// observed at each change.
fn visits(chain: &mut Chain, stream: &mut Stream, count: usize) -> Vec<(u64, u64)> {
    let mut since = 0;
    let mut visits = Vec::with_capacity(count);
    for _ in 0..count {
        let stretch = chain.stretch(since, stream);
        visits.push((stretch.rate, stretch.end - since));
        since = stretch.end;
    }
    visits
}

/// 100,000 states, seeds 1 to 3; Kolmogorov-Smirnov test at 99.8 % confidence
/// (Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant).
#[test]
fn holding_times_are_exponential() {
    let means = [Nanos::from_millis(5), Nanos::from_micros(300)];
    for seed in 1..=3 {
        let states = vec![state(1, means[0]), state(2, means[1])];
        let mut chain = Chain::new(states, vec![vec![0.0, 1.0], vec![1.0, 0.0]]).unwrap();
        let visits = visits(&mut chain, &mut Stream::of_seed(seed), 100_000);
        for (index, mean) in means.iter().enumerate() {
            let of_state = visits.iter().filter(|(rate, _)| *rate == index as u64 + 1);
            let mut times: Vec<f64> = of_state.map(|(_, time)| *time as f64).collect();
            times.sort_by(f64::total_cmp);
            let count = times.len() as f64;
            let bound = ((2.0 / 0.002f64).ln() / (2.0 * count)).sqrt();
            let mean = mean.as_nanos() as f64;
            for (place, time) in times.iter().enumerate() {
                let expected = 1.0 - (-time / mean).exp();
                let distance = (expected - place as f64 / count).abs();
                assert!(
                    distance < bound,
                    "seed {seed}, state {index}: {distance} of {bound}"
                );
            }
        }
    }
}

/// 300,000 visits to three states: the frequency of each transition is within four standard
/// deviations of its weight.
#[test]
fn states_are_left_as_the_weights_say() {
    let time = Nanos::from_millis(1);
    let states = vec![state(1, time), state(2, time), state(3, time)];
    let weights = vec![
        vec![1.0, 2.0, 1.0],
        vec![3.0, 0.0, 2.0],
        vec![9.0, 1.0, 0.0],
    ];
    let mut chain = Chain::new(states, weights.clone()).unwrap();
    let visits = visits(&mut chain, &mut Stream::of_seed(5), 300_000);
    for (from, row) in weights.iter().enumerate() {
        let left = visits
            .windows(2)
            .filter(|pair| pair[0].0 == from as u64 + 1);
        let to: Vec<u64> = left.map(|pair| pair[1].0).collect();
        for (index, weight) in row.iter().enumerate() {
            let share = weight / row.iter().sum::<f64>();
            let count = to.iter().filter(|to| **to == index as u64 + 1).count() as f64;
            let (trials, measured) = (to.len() as f64, count / to.len() as f64);
            let deviation = (share * (1.0 - share) / trials).sqrt();
            assert!(
                (measured - share).abs() <= 4.0 * deviation,
                "{from} to {index}: {measured}"
            );
        }
    }
}

/// Compares stationary shares with power iteration.
#[test]
fn shares_are_those_of_the_limit() {
    let weights = vec![
        vec![0.5, 2.0, 1.0, 0.0],
        vec![3.0, 0.0, 2.0, 1e-6],
        vec![9.0, 1.0, 0.0, 0.0],
        vec![0.0, 0.0, 1.0, 0.0],
    ];
    let visits = stationary(&weights);
    let mut power = vec![0.25; 4];
    for _ in 0..10_000 {
        let mut next = vec![0.0; 4];
        for (from, row) in weights.iter().enumerate() {
            let total: f64 = row.iter().sum();
            for (to, weight) in row.iter().enumerate() {
                // A lazy chain, so that it does not oscillate.
                next[to] += power[from] * weight / total / 2.0;
            }
            next[from] += power[from] / 2.0;
        }
        power = next;
    }
    let total: f64 = visits.iter().sum();
    for (found, limit) in visits.iter().zip(&power) {
        assert!(
            (found / total / limit - 1.0).abs() < 1e-9,
            "{visits:?} {power:?}"
        );
    }
}

/// After an hour without frames, a chain's state is distributed according to the time shares: 2,000
/// chains, four standard deviations.
#[test]
fn after_an_age_the_state_is_drawn_by_its_share() {
    let mut good = 0;
    for seed in 0..2_000 {
        let states = vec![
            state(1, Nanos::from_micros(3)),
            state(2, Nanos::from_micros(1)),
        ];
        let mut chain = Chain::new(states, vec![vec![0.0, 1.0], vec![1.0, 0.0]]).unwrap();
        let mut stream = Stream::of_seed(seed);
        // Stepping through an hour of microseconds would be too slow.
        chain.until = 3_600_000_000_000 - 100_000_000;
        chain.begun = true;
        let stretch = chain.stretch(3_600_000_000_000, &mut stream);
        assert!(stretch.end > 3_600_000_000_000);
        good += u64::from(stretch.rate == 1);
    }
    let share = good as f64 / 2_000.0;
    assert!(
        (share - 0.75).abs() < 4.0 * (0.75f64 * 0.25 / 2_000.0).sqrt(),
        "{share}"
    );
}
