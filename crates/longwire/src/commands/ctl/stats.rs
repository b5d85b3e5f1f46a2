//! Formats counters of API responses.

use longwire_control::responses::Totals;
use longwire_runtime::ledger::Traffic;

/// Returns the counters to show, with their names: traffic and queue always, others if
/// not 0.
pub(super) fn named(counted: &Totals) -> Vec<(String, u64)> {
    let totals = &counted.totals;
    let mut shown: Vec<(String, u64)> = Vec::new();
    let mut rare = Vec::new();
    for (counter, count) in totals
        .counted()
        .filter(|(counter, _)| !counter.label.is_empty())
    {
        if Traffic::COUNTERS.contains(counter) {
            shown.push((counter.label.to_owned(), count));
        } else if count > 0 {
            rare.push((counter.label.to_owned(), count));
        }
    }
    shown.push(("queued".to_owned(), counted.queued));
    let dropped = counted.dropped.iter();
    shown.extend(dropped.map(|(reason, count)| (format!("dropped: {reason}"), *count)));
    shown.append(&mut rare);
    shown
}
