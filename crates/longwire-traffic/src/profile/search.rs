//! The search for the greatest load that a device passes without loss.

use super::error::ProfileError;
use super::trial::{Outcome, Tester, Trial, Verdict};

/// The reason why a search did not go higher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The greatest load passed.
    None,
    /// The device lost frames above.
    Device,
    /// Trials above it had no verdict on the device, for this reason: the true limit
    /// is at least the one found.
    Unknown(String),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The greatest load that passed, and its trial; `None` if none did.
    pub best: Option<(u64, Outcome)>,
    /// Why it did not go higher.
    pub limit: Limit,
    /// The number of trials made.
    pub trials: u32,
}

/// A trial that says nothing of the device is made again, so often in all.
pub(super) const ATTEMPTS: u32 = 3;

/// Finds the greatest load, of `1..=most`, whose trial passes.
///
/// # Errors
/// If a trial cannot be made.
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

/// Finds the greatest load, of `1..=most`, that passes: to within
/// `resolution`, by halving the range between the greatest that passed and
/// the least that did not. `most` is tried first.
///
/// # Errors
/// If one cannot be tried.
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
        // The greatest load was the first: it passed, or is what failed.
        if passed == most || failed - passed <= resolution.max(1) {
            return Ok(search);
        }
        load = passed + (failed - passed) / 2;
    }
}

/// Makes a trial, and again if it says nothing of the device.
pub(super) fn attempt<T: Tester>(
    tester: &mut T,
    trial: &Trial,
    acceptable_loss: f64,
    trials: &mut u32,
) -> Result<(Outcome, Verdict), T::Error> {
    let trial = (trial.clone(), acceptable_loss);
    let mut judged = attempt_together(tester, &[trial], trials)?;
    let judged = judged.pop();
    judged.ok_or_else(|| ProfileError::NoOutcome.into())
}

/// Makes trials at the same time, each with the loss that is acceptable for
/// it; and again if one of them says nothing of the device.
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
    /// Returns the limit's name in reports.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Limit::None => "none",
            Limit::Device => "device",
            Limit::Unknown(_) => "unknown",
        }
    }

    /// Returns the reason of an unknown limit.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Limit::Unknown(reason) => Some(reason.clone()),
            Limit::None | Limit::Device => None,
        }
    }
}
