//! Changes: each is made or refused as a whole.

use std::io::{self, Write};

use longwire_engine::Nanos;

use super::{Action, body, print_json, read};
use crate::{Error, Globals};
use longwire_control::client::{Client, ClientError};
use longwire_control::responses::{Changed, Wrong};

/// Makes the change of an action.
pub(super) fn make(action: &Action, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let (change, check) = body::of(action)?;
    let path = if check {
        "/v1/changes?check=true"
    } else {
        "/v1/changes"
    };
    let changed = client.post(path, &change).map_err(|error| match error {
        ClientError::Cut { .. } if !check => Error::Failed(format!(
            "{error}; whether the change was made is not known; see `longwire ctl changes`"
        )),
        error => error.into(),
    })?;
    if globals.json {
        return print_json(&changed);
    }
    let changed: Changed = read(changed)?;
    for warning in &changed.warnings {
        writeln!(io::stderr(), "warning: {}", Wrong::from(warning.clone()))?;
    }
    if !globals.quiet {
        writeln!(io::stdout(), "{}", words(&changed, check))?;
    }
    Ok(())
}

fn words(changed: &Changed, check: bool) -> String {
    let parts = [
        (changed.links, "set, directions apart"),
        (changed.added, "added"),
        (changed.removed, "removed"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let what = match parts.as_slice() {
        [] => "done".to_owned(),
        parts => parts.join(", "),
    };
    let at = Nanos::from_nanos(changed.at_ns);
    if check {
        format!("possible, nothing was changed: {what}")
    } else {
        format!("{what}; at {at} of the run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_with_their_time() {
        let changed = Changed {
            at_ns: 2_500_000_000,
            links: 4,
            added: 0,
            removed: 1,
            warnings: Vec::new(),
        };
        assert_eq!(
            words(&changed, false),
            "4 set, directions apart, 1 removed; at 2.5s of the run"
        );
        let checked = words(&changed, true);
        assert!(
            checked.starts_with("possible, nothing was changed"),
            "{checked}"
        );
    }
}
