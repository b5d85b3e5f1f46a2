//! The three tiers: every commit, by changed paths, and full.

use crate::checks::{CHECKS, Check};
use crate::record;
use crate::runner::Runner;
use crate::runner::Shortfall::Failed;
use crate::{leftovers, tools};

/// Runs checks.
pub fn run(runner: &mut Runner, checks: &[&Check]) {
    for check in checks {
        (check.run)(runner);
    }
}

/// Runs the checks with files changed since their last recorded pass.
pub fn by_path(runner: &mut Runner, checks: &[&Check]) {
    for check in checks {
        let name = check.name;
        let why = match record::changed_since_pass(name) {
            None => "no recorded pass".to_owned(),
            Some((commit, files)) => match check.affected_by(&files) {
                Some(file) => format!("{file} changed since {commit}"),
                None => {
                    println!("{name}: nothing changed since {commit}");
                    continue;
                }
            },
        };
        println!("{name}: {why}");
        (check.run)(runner);
    }
}

/// Runs checks of any tier and records each. `rest` skips those with a recorded pass of
/// this state. A run of all checks installs their programs.
pub fn full(runner: &mut Runner, checks: &[&Check], rest: bool) {
    if checks.len() == CHECKS.len() {
        tools::install(runner, true);
    }
    let before = leftovers::look();
    for check in checks {
        let name = check.name;
        if rest && record::changed_since_pass(name).is_some_and(|(_, files)| files.is_empty()) {
            println!("{name}: passed here already");
            continue;
        }
        let start = runner.len();
        (check.run)(runner);
        let (result, time) = runner.summary(start);
        if let Err(error) = record::append(name, runner.seconds, &result, time) {
            runner.step("record", || Err(Failed(error)));
        }
    }
    runner.step("nothing left behind", || leftovers::compare(&before));
}
