//! A run's report with the additions of its command.

use longwire_network::Changes;
use longwire_runtime::RunReport;

use super::finish::ReportStream;

use crate::receiving::ReceivedByLink;

/// A run's report with the additions of its command.
pub struct Ending<'a> {
    /// Report of the run.
    pub run: &'a RunReport,
    /// Changes made during the run.
    pub changes: Changes,
    /// Receiver reports.
    pub received: ReceivedByLink,
    /// Whether the text includes the receivers' reports; if not, `lines` includes them.
    pub shows_receivers: bool,
    /// Stream of the report.
    pub place: ReportStream,
    /// Final lines of the text.
    pub lines: Vec<String>,
}

impl<'a> Ending<'a> {
    /// Returns a report without changes or receivers, for stdout.
    pub fn of(run: &'a RunReport) -> Ending<'a> {
        Ending {
            run,
            changes: Changes::default(),
            received: ReceivedByLink::new(),
            shows_receivers: true,
            place: ReportStream::Stdout,
            lines: Vec::new(),
        }
    }
}
