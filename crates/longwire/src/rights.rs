//! Drops the rights that a run does not need once its ports are open.

use std::path::Path;

use longwire_io::rights::{self, Capability};

use crate::cli::ReportArgs;

/// Drops the rights of the calling thread, and so of threads that it starts
/// later, except those in `needs`, those that restore settings and keep times,
/// and the right to write the report where other users' files are.
pub(crate) fn give_up(report: &ReportArgs, needs: &[Capability]) {
    give_up_for(report.report.as_deref(), needs);
}

/// Like [`give_up`], for the report's file, and for threads that write none.
pub(crate) fn give_up_for(report: Option<&Path>, needs: &[Capability]) {
    let mut kept = needs.to_vec();
    if report.is_some() {
        kept.push(Capability::DacOverride);
    }
    // Failing to drop rights does not affect the run.
    let _ = rights::give_up(&kept);
}
