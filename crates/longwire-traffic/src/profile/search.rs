//! Search for the maximum load without loss.

use super::trial::{Outcome, ProfileError, Tester, Trial, Verdict};

/// Reason why a search found no higher load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The maximum load passed.
    None,
    /// The device lost frames at higher loads.
    Device,
    /// Trials at higher loads were void for this reason, so the true limit may be higher.
    Unknown(String),
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Maximum load that passed, with its outcome; `None` if none did.
    pub best: Option<(u64, Outcome)>,
    /// Reason why no higher load passed.
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
pub fn highest<T: Tester>(
    tester: &mut T,
    most: u64,
    resolution: u64,
    acceptable_loss: f64,
    trial: &dyn Fn(u64) -> Trial,
) -> Result<Search, T::Error> {
    let mut trials = 0;
    let mut search = halve(most, resolution, &mut |load| {
        attempt(tester, &trial(load), acceptable_loss, &mut trials)
    })?;
    search.trials = trials;
    Ok(search)
}

/// Finds the maximum load in `1..=most` that passes, to within `resolution`, by bisection. Tries
/// `most` first.
///
/// # Errors
/// Any error of `attempt`.
pub(super) fn halve<E>(
    most: u64,
    resolution: u64,
    attempt: &mut dyn FnMut(u64) -> Result<(Outcome, Verdict), E>,
) -> Result<Search, E> {
    let mut search = Search {
        best: None,
        limit: Limit::None,
        trials: 0,
    };
    let (mut passed, mut failed) = (0, most.saturating_add(1));
    let mut load = most;
    loop {
        let (outcome, verdict) = attempt(load)?;
        search.trials += 1;
        match verdict {
            Verdict::Passed => {
                passed = load;
                search.best = Some((load, outcome));
            }
            Verdict::Lost => {
                failed = load;
                search.limit = Limit::Device;
            }
            Verdict::Void(reason) => {
                failed = load;
                search.limit = Limit::Unknown(reason);
            }
        }
        // `most` was tried first, so it has either passed or is an upper bound.
        if passed == most || failed - passed <= resolution.max(1) {
            return Ok(search);
        }
        load = passed + (failed - passed) / 2;
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
        let void = judged
            .iter()
            .any(|(_, verdict)| matches!(verdict, Verdict::Void(_)));
        if attempts == ATTEMPTS || !void {
            return Ok(judged);
        }
    }
}

impl Limit {
    /// Returns the name in reports.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Limit::None => "none",
            Limit::Device => "device",
            Limit::Unknown(_) => "unknown",
        }
    }

    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Limit::Unknown(reason) => Some(reason.clone()),
            Limit::None | Limit::Device => None,
        }
    }
}
