//! The reports of receivers next to those of links.

use std::collections::BTreeMap;

use super::report::{ReceiveReport, ReceivedLinkReport};
use longwire_runtime::RunReport;

/// The reports of receivers, by the names of the links whose frames they received.
pub type ReceivedByLink = BTreeMap<String, ReceiveReport>;

/// Returns the report of a run in which each link has the reports of its
/// receivers.
pub fn with_received(
    report: RunReport,
    received: &ReceivedByLink,
) -> RunReport<ReceivedLinkReport> {
    report.map_links(|link| ReceivedLinkReport {
        received: received.get(&link.name).cloned(),
        link,
    })
}
