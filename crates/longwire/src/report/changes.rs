//! Formats the changes of a run as text.

use longwire_network::{ChangeRecord, Changes};
use longwire_units::words::{count_of, seconds};

/// Maximum number of changes listed individually.
const CHANGES_MAX: usize = 3;

/// Formats each change as a line, or only the number of changes if there are many.
pub(super) fn change_lines(changes: &Changes) -> Vec<String> {
    let made = changes.made.len() as u64 + changes.forgotten;
    let failed = changes.made.iter().filter(|done| done.error.is_some());
    match made {
        0 => Vec::new(),
        _ if made <= CHANGES_MAX as u64 => changes.made.iter().map(change_line).collect(),
        _ => {
            let made = format!("{}: -v lists them", count_of(made, "change"));
            let failed = failed.map(change_line);
            std::iter::once(made).chain(failed).collect()
        }
    }
}

/// Formats a change as a line.
pub fn change_line(done: &ChangeRecord) -> String {
    let until = done.until_ns.map(seconds);
    let until = until.map_or_else(String::new, |until| format!(" to {until}"));
    // Additions and removals set no options on links.
    let links = match done.links {
        0 | 1 => String::new(),
        links => format!(" ({})", count_of(links as u64, "link")),
    };
    let error = done.error.as_ref();
    let error = error.map_or_else(String::new, |error| format!("; failed: {error}"));
    format!(
        "at {}{until} by {}: {}{links}{error}",
        seconds(done.at_ns),
        done.by,
        done.change
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_one_line_each_or_their_number() {
        let done = |at_ns: u64, links: u64| -> ChangeRecord {
            let change = json!({ "set": { "adsl*": { "rate": "4mbit" } } });
            let done = json!({ "at_ns": at_ns, "by": "control", "change": change, "links": links });
            serde_json::from_str(&done.to_string()).expect("a change")
        };
        let mut changes = Changes::default();
        changes.remember(done(4_049_022_260, 1));
        changes.remember(done(5_000_000_000, 12));
        let one = "at 4.049 s by control: set adsl* rate=4mbit";
        let several = "at 5 s by control: set adsl* rate=4mbit (12 links)";
        assert_eq!(change_lines(&changes), [one, several]);
        let mut failed = done(6_000_000_000, 0);
        failed.error = Some("no link is called adsl9".to_owned());
        changes.remember(failed);
        changes.remember(done(7_000_000_000, 1));
        let count = "4 changes: -v lists them";
        let failed = "at 6 s by control: set adsl* rate=4mbit; failed: no link is called adsl9";
        assert_eq!(change_lines(&changes), [count, failed]);
    }
}
