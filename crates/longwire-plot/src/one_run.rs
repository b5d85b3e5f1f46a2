//! A log and the report of the same run: they share links and the time axis.

use crate::input::{Input, Span};
use crate::page::RunDocument;
use crate::series::Zero;

/// A comparison of the inputs.
#[derive(Debug)]
pub(super) struct OneRun {
    /// Whether the inputs are a log and the report of one run.
    pub is_one: bool,
    /// The zero of the time axis.
    pub zero: Zero,
    /// Times of the run's changes on the time axis, in nanoseconds.
    pub changes: Vec<i64>,
}

impl OneRun {
    /// Compares the inputs. In one run, sets the origin of the log to the start of the run, as
    /// in reports and messages.
    pub fn of(inputs: &[Input], spans: &mut [Option<Span>]) -> OneRun {
        let mut run = OneRun {
            is_one: false,
            zero: Zero::FirstFrame,
            changes: Vec::new(),
        };
        let mut reports = inputs.iter().filter_map(|input| match input {
            Input::Report { report, .. } => Some(report),
            Input::Log { .. } => None,
        });
        let mut logs = spans.iter_mut().flatten();
        let (Some(report), None, Some(span), None) =
            (reports.next(), reports.next(), logs.next(), logs.next())
        else {
            return run;
        };
        let epoch = start(report);
        // Early logs do not say when their run started, and early reports neither.
        run.is_one = epoch.is_none() || span.epoch.is_none() || epoch == span.epoch;
        let Some(epoch) = epoch.filter(|_| run.is_one) else {
            return run;
        };
        if epoch <= span.first {
            span.origin = epoch;
            run.zero = Zero::RunStart;
        }
        let made = report.changes.iter().flat_map(|changes| &changes.made);
        let times = made.map(|change| change.at_ns);
        let times = times.filter_map(|at| epoch.checked_add_unsigned(at));
        run.changes = times.filter_map(|at| at.checked_sub(span.origin)).collect();
        run
    }
}

/// Returns when a report's run started, if the report says so.
fn start(report: &RunDocument) -> Option<i64> {
    let epoch = i64::try_from(report.epoch_ns).ok()?;
    (epoch > 0).then_some(epoch)
}
