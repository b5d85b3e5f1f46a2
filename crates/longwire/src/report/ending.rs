//! The report of a run, with what a command adds.

use longwire_fabric::Changes;
use longwire_runtime::RunReport;

use crate::receiving::ReceivedByLink;

/// The report of a run with its additions.
pub struct Ending<'a> {
    /// The report.
    pub run: &'a RunReport,
    /// Changes made during the run.
    pub changes: Changes,
    /// The reports of receivers.
    pub received: ReceivedByLink,
    /// Whether the text includes the receivers' reports; otherwise `lines` does.
    pub shows_receivers: bool,
    /// Lines at the end of the text.
    pub lines: Vec<String>,
}

impl<'a> Ending<'a> {
    /// Returns the report without changes or receivers.
    pub fn of(run: &'a RunReport) -> Ending<'a> {
        Ending {
            run,
            changes: Changes::default(),
            received: ReceivedByLink::new(),
            shows_receivers: true,
            lines: Vec::new(),
        }
    }
}
