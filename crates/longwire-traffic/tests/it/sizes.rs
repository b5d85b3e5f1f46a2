//! Sizes of generated frames.

use std::collections::BTreeMap;

use longwire_traffic::SIZES;
use longwire_traffic::sizes::SizeModel;
use longwire_units::random::{Purpose, Stream};

fn sizes(text: &str) -> Box<dyn SizeModel> {
    SIZES
        .parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn draw(text: &str, count: u64, seed: u64) -> Vec<u32> {
    let model = sizes(text);
    let mut stream = Stream::new(seed, 0, Purpose::Sizes);
    (0..count)
        .map(|number| model.draw(number, &mut stream))
        .collect()
}

fn counts(sizes: &[u32]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    sizes
        .iter()
        .for_each(|size| *counts.entry(*size).or_default() += 1);
    counts
}

#[test]
fn a_bare_number_is_a_size() {
    assert_eq!(draw("1514", 3, 1), [1_514; 3]);
    assert_eq!(draw("fixed:size=64,fcs=with", 3, 1), [60; 3]);
    assert_eq!(sizes("64").fixed(), Some(64));
}

#[test]
fn every_round_of_the_internet_mix_is_exact() {
    let drawn = draw("imix", 12_000, 1);
    for round in drawn.chunks(12) {
        let expected = BTreeMap::from([(60, 7), (590, 4), (1_514, 1)]);
        assert_eq!(counts(round), expected);
    }
    // Short frames are evenly spaced: any three consecutive frames include one.
    assert!(drawn.windows(3).all(|three| three.contains(&60)));
    let without = draw("imix:fcs=without", 12, 1);
    assert_eq!(without.into_iter().max(), Some(1_518));
}

#[test]
fn a_mix_has_the_given_weights() {
    let model = sizes("mix:sizes=64:7;594/4;1518,fcs=with");
    let written = "mix:sizes=64/7;594/4;1518/1,order=round,fcs=with";
    assert_eq!(model.to_string(), written);
    let mut shares = Vec::new();
    model.each(&mut |size, share| shares.push((size, share)));
    let expected = [(60, 7.0), (590, 4.0), (1_514, 1.0)].map(|(size, share)| (size, share / 12.0));
    assert_eq!(shares, expected);
    assert_eq!(model.range(), (60, 1_514));
    // Weights with a common divisor yield the same round.
    let [one, other] =
        ["100/20;200/10", "100/2;200/1"].map(|sizes| draw(&format!("mix:sizes={sizes}"), 30, 1));
    assert_eq!(one, other);
}

/// Counts over n draws are within five standard deviations; each check fails with probability 6e-7
/// (n = 120,000; seed 9).
#[test]
fn random_mixes_keep_their_shares() {
    let n = 120_000u32;
    let counts = counts(&draw(
        "mix:sizes=64/7;594/4;1518/1,order=random",
        n.into(),
        9,
    ));
    for (size, weight) in [(64, 7.0), (594, 4.0), (1_518, 1.0)] {
        let (share, n) = (weight / 12.0, f64::from(n));
        let error = counts[&size] as f64 - n * share;
        let deviation = (n * share * (1.0 - share)).sqrt();
        assert!(error.abs() < 5.0 * deviation, "{size}: {error}");
    }
}

/// Chi-square test over 101 sizes and 101,000 draws: with 100 degrees of freedom, 185 is exceeded
/// with probability 5e-7 (seed 2).
#[test]
fn uniform_sizes_are_uniform() {
    let counts = counts(&draw("uniform:min=100,max=200", 101_000, 2));
    assert_eq!(counts.len(), 101);
    let chi: f64 = counts
        .values()
        .map(|count| (*count as f64 - 1e3).powi(2) / 1e3)
        .sum();
    assert!(chi < 185.0, "{chi}");
    assert_eq!(sizes("uniform:min=100,max=200").mean().round(), 150.0);
}

#[test]
fn invalid_sizes_are_refused() {
    let texts = "13 fixed:size=17,fcs=with 65536 64b uniform:min=100,max=99 mix:sizes=64/0 \
                 mix:sizes=64/x mix:sizes= mix:sizes=64/65536;65/1 mix:sizes=64/4294967297 list";
    for text in texts.split(' ') {
        assert!(SIZES.parse(text).is_err(), "{text}");
    }
    assert!(SIZES.parse("mix:sizes=64/65536;65/1,order=random").is_ok());
}
