//! Correlated delays with an unchanged marginal distribution, by a Gaussian copula: a first-order
//! autoregressive Gaussian process provides the ranks.

use super::inverse::{Inverse, Moments, Octaves, Tails};
use crate::models::prelude::*;
use longwire_units::special::{normal_above, normal_density};

/// The process z' = r z + sqrt(1 - r²) e, with e standard normal. Then z is standard normal too,
/// with lag-1 autocorrelation r.
#[derive(Clone, Debug)]
pub(super) struct Copula {
    coefficient: f64,
    innovation: f64,
    /// Process state; `None` before the first frame.
    place: Option<f64>,
    normal: Inverse,
    ranks: Ranks,
}

impl Copula {
    /// Creates a process for which delays looked up in `inverse` have this lag-1 autocorrelation,
    /// in -1..1.
    ///
    /// # Errors
    /// The distribution's minimum autocorrelation, if the requested one is below it: in a skewed
    /// distribution, opposite ranks do not give opposite values.
    pub fn new(inverse: &Inverse, autocorrelation: f64) -> Result<Copula, f64> {
        let coefficient = Transfer::of(inverse).invert(autocorrelation)?;
        Ok(Copula {
            coefficient,
            innovation: libm::sqrt(1.0 - coefficient * coefficient),
            place: None,
            normal: Inverse::Octaves(Octaves::new(Tails::normal)),
            ranks: Ranks::new(),
        })
    }

    /// Draws the next delay.
    #[inline]
    pub fn draw(&mut self, inverse: &Inverse, stream: &mut Stream) -> f64 {
        let fresh = self.normal.draw(stream.next_u64());
        let place = match self.place {
            Some(place) => self.coefficient * place + self.innovation * fresh,
            None => fresh,
        };
        self.place = Some(place);
        inverse.at(place > 0.0, self.ranks.tail(place.abs()))
    }
}

/// Bound on a standard normal variable, exceeded once in 10^16 draws.
const PLACE_MAX: f64 = 8.25;

/// Number of steps in the tables over the normal variable.
const STEPS: usize = 2_112;
const STEP: f64 = PLACE_MAX / STEPS as f64;

/// Upper tail of the standard normal, interpolated linearly. Absolute error < 1e-6,
/// relative < 2e-4.
#[derive(Clone, Debug)]
pub(super) struct Ranks(Box<[f64]>);

impl Ranks {
    pub fn new() -> Ranks {
        // One knot more than steps, and another to avoid a bounds check at the end.
        let tail = |knot| normal_above(knot as f64 * STEP);
        Ranks((0..STEPS + 2).map(tail).collect())
    }

    #[inline]
    pub fn tail(&self, place: f64) -> f64 {
        let place = place.min(PLACE_MAX) * (1.0 / STEP);
        let knot = (place as usize).min(STEPS);
        let (here, next) = (self.0[knot], self.0[knot + 1]);
        here + (place - knot as f64) * (next - here)
    }
}

/// Maps the autocorrelation of the normal variables to that of the values at the same ranks: a
/// power series whose coefficients are the squared coefficients of the values' Hermite expansion
/// (Nataf's transformation, 1962, by Mehler's formula; Liu and Der Kiureghian 1986).
pub(super) struct Transfer {
    /// Coefficients from the first power on; they sum to at most 1.
    squares: Vec<f64>,
    /// Weight of the higher powers: the remainder to 1.
    rest: f64,
}

/// Maximum number of coefficients.
const POWERS_MAX: usize = 400;

/// Remainder below which the series is truncated.
const REST_ENOUGH: f64 = 1e-9;

impl Transfer {
    pub fn of(inverse: &Inverse) -> Transfer {
        let Moments { mean, .. } = inverse.moments();
        let knots = -(STEPS as i32)..=STEPS as i32;
        let values: Vec<(f64, f64)> = knots
            .map(|knot| {
                let place = f64::from(knot) * STEP;
                let value = inverse.at(place > 0.0, normal_above(place.abs()));
                (place, (value - mean) * normal_density(place) * STEP)
            })
            .collect();
        let variance = |(place, weighted): &(f64, f64)| {
            let density = normal_density(*place) * STEP;
            weighted * weighted / density
        };
        let variance: f64 = values.iter().map(variance).sum();
        let mut transfer = Transfer {
            squares: Vec::new(),
            rest: 1.0,
        };
        // Two successive normalised Hermite polynomials at every point.
        let mut before = alloc::vec![0.0; values.len()];
        let mut here = alloc::vec![1.0; values.len()];
        while transfer.squares.len() < POWERS_MAX && transfer.rest > REST_ENOUGH {
            let order = transfer.squares.len() as f64;
            let mut coefficient = 0.0;
            for ((place, weighted), (before, here)) in
                values.iter().zip(before.iter_mut().zip(&mut here))
            {
                let next = (place * *here - libm::sqrt(order) * *before) / libm::sqrt(order + 1.0);
                (*before, *here) = (*here, next);
                coefficient += weighted * next;
            }
            let square = coefficient * coefficient / variance;
            transfer.squares.push(square.min(transfer.rest));
            transfer.rest = (transfer.rest - square).max(0.0);
        }
        transfer
    }

    /// Returns the values' autocorrelation for the normal variables' autocorrelation `r`. The
    /// result increases with `r`, because values increase with ranks.
    pub fn at(&self, r: f64) -> f64 {
        let higher = |sum: f64, square: &f64| (sum + square) * r;
        self.squares.iter().rev().fold(self.rest * r, higher)
    }

    /// Returns the normal variables' autocorrelation for which the values have the requested one.
    /// If that is unattainable, the error is the minimum.
    pub fn invert(&self, wanted: f64) -> Result<f64, f64> {
        let (mut low, mut high) = (-1.0, 1.0);
        if wanted < self.at(low) {
            return Err(self.at(low));
        }
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if self.at(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low + high) / 2.0)
    }
}
