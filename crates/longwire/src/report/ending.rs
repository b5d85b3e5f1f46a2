//! A run's report with the additions of its command.

use longwire_network::Changes;
use longwire_runtime::RunReport;

use crate::receiving::ReceivedByLink;

/// Stream for the report, as text and as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStream {
    /// The default.
    Stdout,
    /// Used if stdout belongs to a command or a capture.
    Stderr,
}

impl ReportStream {
    /// Returns a stream that none of these captures uses.
    pub fn beside<'a>(captures: impl IntoIterator<Item = &'a str>) -> ReportStream {
        if captures.into_iter().any(|capture| capture == "-") {
            ReportStream::Stderr
        } else {
            ReportStream::Stdout
        }
    }
}

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
