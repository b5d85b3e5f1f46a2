//! Lookup tables compared with their formulas.

use core::f64::consts::PI;

use super::super::distributions::Formula;
use super::copula::{Ranks, Transfer};
use super::inverse::{Inverse, Octaves, Points, Tails};
use longwire_units::special::{gamma_quantile, gamma_tails, normal_above, normal_quantile};

/// Returns positions as (whether in the upper tail, tail probability), from the median outwards in
/// both tails.
fn places() -> impl Iterator<Item = (bool, f64)> {
    let tails = (0..20_000).map(|step| 0.5 * libm::exp(-f64::from(step) * 0.0016));
    tails.flat_map(|tail| [(false, tail), (true, tail)])
}

/// Returns a table's maximum error in probability, absolute and relative to the tail.
fn error(quantile: impl Fn(Tails) -> f64, tails: impl Fn(f64) -> Tails) -> (f64, f64) {
    let table = Inverse::Octaves(Octaves::new(quantile));
    let mut most = (0.0f64, 0.0f64);
    for (upper, tail) in places() {
        let there = tails(table.at(upper, tail));
        let found = if upper { there.above } else { there.below };
        let off = (found - tail).abs();
        // Near a bound, adjacent `f64` values are too far apart to represent small tail
        // probabilities.
        let counts = upper || tail > 1e-9;
        let in_proportion = if counts { off / tail } else { 0.0 };
        most = (most.0.max(off), most.1.max(in_proportion));
    }
    most
}

#[test]
fn tables_are_off_by_less_than_samples_can_show() {
    for (name, formula, anywhere_max, in_proportion_max) in [
        ("normal", Formula::Normal(0.0, 1.0), 2e-5, 1e-4),
        ("exponential", Formula::Exponential(0.0, 1.0), 2e-5, 1e-4),
        ("pareto", Formula::Pareto(1.0, 1.1), 2e-5, 1e-4),
        ("gamma", Formula::Gamma(2.5, 1.0), 2e-5, 1e-4),
        // The most skewed distribution allowed.
        ("weibull", Formula::Weibull(1.0, 0.1), 5e-4, 2e-3),
    ] {
        let (anywhere, in_proportion) = error(|at| formula.quantile(at), |x| formula.tails(x));
        assert!(anywhere < anywhere_max, "{name}: {anywhere}");
        assert!(in_proportion < in_proportion_max, "{name}: {in_proportion}");
    }
}

#[test]
fn moments_are_those_of_the_formula() {
    let table = Inverse::Octaves(Octaves::new(Tails::normal));
    let moments = table.moments();
    assert!(moments.mean.abs() < 1e-12, "{}", moments.mean);
    assert!(
        (moments.variance - 1.0).abs() < 1e-4,
        "{}",
        moments.variance
    );
    let points = Points::evenly(alloc::vec![1.0, 2.0, 6.0]);
    let moments = Inverse::Points(points).moments();
    // Two uniform distributions with means 1.5 and 4 and widths 1 and 4.
    assert!((moments.mean - 2.75).abs() < 1e-12);
    let variance = (1.0 + 16.0) / 24.0 + 1.25 * 1.25;
    assert!((moments.variance - variance).abs() < 1e-12);
}

#[test]
fn points_are_cut_at_their_bounds() {
    let points = || Points::at_probabilities(&[(10.0, 0.2), (20.0, 0.2), (30.0, 0.6), (30.0, 1.0)]);
    // Probability 1/5 at 10, 0 between 10 and 20, 2/5 between 20 and 30, and 2/5 at 30.
    let mut all = points();
    assert_eq!(all.truncate(0.0, 100.0), 1.0);
    let all = Inverse::Points(all);
    let at = |below: f64| all.at(below > 0.5, below.min(1.0 - below));
    assert_eq!(
        [at(0.1), at(0.4), at(0.7), at(0.99)],
        [10.0, 25.0, 30.0, 30.0]
    );
    assert!((all.moments().mean - (2.0 + 0.4 * 25.0 + 0.4 * 30.0)).abs() < 1e-12);
    let mut cut = points();
    assert!((cut.truncate(15.0, 25.0) - 0.2).abs() < 1e-12);
    let cut = Inverse::Points(cut);
    assert!((cut.at(false, 0.5) - 22.5).abs() < 1e-9);
    assert!((20.0..=25.0).contains(&cut.at(true, 0.0)));
    assert!((cut.moments().mean - 22.5).abs() < 1e-9);
    assert_eq!(points().truncate(12.0, 18.0), 0.0);
    let mut one = Points::one(7.0);
    assert_eq!(one.truncate(7.0, 7.0), 1.0);
    assert_eq!(one.truncate(8.0, 9.0), 0.0);
}

/// Autocorrelations of uniform and lognormal variables have closed forms.
#[test]
fn transfer_functions_are_those_of_the_formulas() {
    let uniform = Inverse::Octaves(Octaves::new(|at| 10.0 + 20.0 * at.below));
    let uniform = Transfer::of(&uniform);
    let sigma: f64 = 0.8;
    let lognormal = Inverse::Octaves(Octaves::new(|at| libm::exp(sigma * at.normal())));
    let lognormal = Transfer::of(&lognormal);
    for step in -20..=20 {
        let r = f64::from(step) / 20.0;
        let expected = 6.0 / PI * libm::asin(r / 2.0);
        assert!((uniform.at(r) - expected).abs() < 1e-6, "{r}");
        let expected = libm::expm1(sigma * sigma * r) / libm::expm1(sigma * sigma);
        let found = lognormal.at(r);
        assert!(
            (found - expected).abs() < 1e-3,
            "{r}: {found}, not {expected}"
        );
    }
    let found = uniform.invert(0.5).unwrap();
    assert!((found - 2.0 * libm::sin(PI / 12.0)).abs() < 1e-6);
    let least = lognormal.invert(-0.9).unwrap_err();
    let expected = libm::expm1(-sigma * sigma) / libm::expm1(sigma * sigma);
    assert!((least - expected).abs() < 1e-3, "{least}");
}

#[test]
fn ranks_are_the_normal_tails() {
    let ranks = Ranks::new();
    for step in 0..10_000 {
        let place = f64::from(step) * 0.0009;
        let (found, expected) = (ranks.tail(place), normal_above(place.min(8.25)));
        assert!((found - expected).abs() < 1e-6, "{place}");
        assert!((found / expected - 1.0).abs() < 2e-4, "{place}");
    }
}

#[test]
fn quantiles_lead_back_to_their_probabilities() {
    for step in 1..400 {
        let tail = 0.5 * libm::exp(-f64::from(step) * 0.085);
        let found = normal_above(normal_quantile(tail));
        assert!((found / tail - 1.0).abs() < 1e-12, "{tail}: {found}");
        for shape in [0.01, 0.3, 1.0, 2.5, 40.0, 1e4] {
            let above = gamma_tails(shape, gamma_quantile(shape, 1.0 - tail, tail)).1;
            assert!(
                (above / tail - 1.0).abs() < 1e-7,
                "{shape}, {tail}: {above}"
            );
            let x = gamma_quantile(shape, tail, 1.0 - tail);
            let below = gamma_tails(shape, x).0;
            // For small shapes, low quantiles underflow.
            let right = (below / tail - 1.0).abs() < 1e-7 || x == 0.0 && shape < 0.1;
            assert!(right, "{shape}, {tail}: {below}");
        }
    }
}
