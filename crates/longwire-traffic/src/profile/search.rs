//! Search for the maximum load without loss.

use serde::Serialize;

use super::trial::{Outcome, ProfileError, Tester, Trial, Verdict};

/// Reason why a search found no higher load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// `none`: the maximum load passed; `device`: the device fails at higher loads; `unknown`:
    /// higher loads could not be tested.
    #[serde(rename = "limit")]
    pub kind: &'static str,
    /// Reason for `unknown`.
    pub reason: Option<String>,
}

impl Limit {
    pub(super) const NONE: Limit = Limit::named("none");
    pub(super) const DEVICE: Limit = Limit::named("device");

    const fn named(kind: &'static str) -> Limit {
        let reason = None;
        Limit { kind, reason }
    }

    pub(super) fn unknown(reason: String) -> Limit {
        Limit {
            reason: Some(reason),
            ..Limit::named("unknown")
        }
    }
}

/// Result of a search.
#[derive(Debug)]
pub(super) struct Search {
    /// Maximum load that passed; 0 if none did.
    pub best: u64,
    pub limit: Limit,
    /// Number of trials.
    pub trials: u32,
}

/// Maximum number of attempts at a void trial.
pub(super) const ATTEMPTS: u32 = 3;

/// Finds the maximum load in `1..=most` whose trial passes.
///
/// # Errors
/// If a trial cannot be run.
pub(super) fn highest<T: Tester>(
    tester: &mut T,
    most: u64,
    resolution: u64,
    acceptable_loss: f64,
    trial: &dyn Fn(u64) -> Trial,
) -> Result<Search, T::Error> {
    let mut trials = 0;
    let search = halve(most, resolution, &mut |load| {
        let judged = attempt(tester, &trial(load), acceptable_loss, &mut trials);
        judged.map(|(_, verdict)| verdict)
    })?;
    Ok(Search { trials, ..search })
}

/// Finds the maximum load in `1..=most` that passes, to within `resolution`, by bisection. Tries
/// `most` first.
///
/// # Errors
/// Any error of `attempt`.
pub(super) fn halve<E>(
    most: u64,
    resolution: u64,
    attempt: &mut dyn FnMut(u64) -> Result<Verdict, E>,
) -> Result<Search, E> {
    let mut search = Search {
        best: 0,
        limit: Limit::NONE,
        trials: 0,
    };
    let (mut load, mut failed) = (most, most.saturating_add(1));
    loop {
        search.trials += 1;
        match attempt(load)? {
            Verdict::Passed => search.best = load,
            Verdict::Lost => (failed, search.limit) = (load, Limit::DEVICE),
            Verdict::Void(reason) => (failed, search.limit) = (load, Limit::unknown(reason)),
        }
        // `most` was tried first, so it has either passed or is an upper bound.
        if search.best == most || failed - search.best <= resolution.max(1) {
            return Ok(search);
        }
        load = search.best + (failed - search.best) / 2;
    }
}

/// Runs a trial, repeating it while it is void.
pub(super) fn attempt<T: Tester>(
    tester: &mut T,
    trial: &Trial,
    acceptable_loss: f64,
    trials: &mut u32,
) -> Result<(Outcome, Verdict), T::Error> {
    let trial = (trial.clone(), acceptable_loss);
    let mut judged = attempt_together(tester, &[trial], trials)?;
    judged.pop().ok_or_else(|| ProfileError::NoOutcome.into())
}

/// Runs concurrent trials, each with its acceptable loss, repeating them while any is void.
pub(super) fn attempt_together<T: Tester>(
    tester: &mut T,
    asked: &[(Trial, f64)],
    trials: &mut u32,
) -> Result<Vec<(Outcome, Verdict)>, T::Error> {
    let sent: Vec<Trial> = asked.iter().map(|(trial, _)| trial.clone()).collect();
    let mut attempts = 0;
    loop {
        let outcomes = tester.together(&sent)?.into_iter().zip(asked);
        *trials += 1;
        attempts += 1;
        let judged = outcomes.map(|(outcome, (_, acceptable_loss))| {
            let verdict = outcome.verdict(*acceptable_loss);
            (outcome, verdict)
        });
        let judged: Vec<(Outcome, Verdict)> = judged.collect();
        let is_void = |(_, verdict): &(_, _)| matches!(verdict, Verdict::Void(_));
        if attempts == ATTEMPTS || !judged.iter().any(is_void) {
            return Ok(judged);
        }
    }
}
