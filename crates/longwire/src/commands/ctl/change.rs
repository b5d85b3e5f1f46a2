//! Changes: each is applied or refused as a whole.

use std::io::{self, Write};

use super::{Action, body, print_json, read};
use crate::{Error, Globals};
use longwire_client::{Client, ClientError};
use longwire_control::responses::{ChangeResult, problem_body};
use longwire_units::words::seconds;

/// Applies the change of an action.
pub(super) fn make(action: &Action, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let (change, check) = body::of(action)?;
    let path = if check {
        "/v1/changes?check=true"
    } else {
        "/v1/changes"
    };
    let changed = client.post(path, &change).map_err(|error| match error {
        ClientError::ConnectionLost { .. } if !check => Error::failed(format!(
            "{error}; the change may have been applied; see `longwire ctl changes`"
        )),
        error => error.into(),
    })?;
    if globals.json {
        return print_json(&changed);
    }
    let changed: ChangeResult = read(changed)?;
    for warning in &changed.warnings {
        writeln!(io::stderr(), "warning: {}", problem_body(warning.clone()))?;
    }
    if !globals.quiet {
        let is_scheduled = change.get("at").or(change.get("in")).is_some();
        writeln!(io::stdout(), "{}", words(&changed, check, is_scheduled))?;
    }
    Ok(())
}

fn words(changed: &ChangeResult, check: bool, is_scheduled: bool) -> String {
    let link = if changed.links == 1 { "link" } else { "links" };
    let parts = [
        (changed.links, format!("{link} changed")),
        (changed.added, "added".to_owned()),
        (changed.removed, "removed".to_owned()),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let what = match parts.as_slice() {
        [] => "applied".to_owned(),
        parts => parts.join(", "),
    };
    if check {
        format!("nothing was changed; it would be: {what}")
    } else if is_scheduled {
        format!("scheduled for {}: {what}", seconds(changed.at_ns))
    } else {
        format!("{what} at {}", seconds(changed.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_with_their_time() {
        let changed = ChangeResult {
            at_ns: 2_500_000_000,
            links: 4,
            added: 0,
            removed: 1,
            warnings: Vec::new(),
        };
        assert_eq!(
            words(&changed, false, false),
            "4 links changed, 1 removed at 2.5 s"
        );
        let checked = words(&changed, true, true);
        assert_eq!(
            checked,
            "nothing was changed; it would be: 4 links changed, 1 removed"
        );
        let one = ChangeResult {
            at_ns: 4_049_022_260,
            links: 1,
            removed: 0,
            ..changed
        };
        assert_eq!(words(&one, false, false), "1 link changed at 4.049 s");
        assert_eq!(
            words(&one, false, true),
            "scheduled for 4.049 s: 1 link changed"
        );
    }
}
