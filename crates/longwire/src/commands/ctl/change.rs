//! Atomic changes to a running network (docs/control.md).

use std::io::{self, Read, Write};
use std::path::Path;

use longwire_capture::open;
use longwire_client::{Client, ClientError};
use longwire_control::responses::{ChangeResult, problem_body};
use longwire_units::words::seconds;
use serde_json::{Map, Value, json};

use super::{Action, AddArgs, MoveArgs, SetArgs, WhenArgs, read};
use crate::report::output::print_json;
use crate::table::joined;
use crate::{Error, Globals};

/// Maximum size of a change accepted by the server, in bytes.
const CHANGE_MAX: u64 = 16 << 20;

/// Parses `OPTION=VALUE`; the server validates both parts.
pub(in crate::commands) fn option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("not OPTION=VALUE, such as rate=5mbit".to_owned()),
    }
}

/// Returns the request body of an action, and whether it is a dry run.
fn body_of(action: &Action) -> Result<(Value, bool), Error> {
    let (what, when) = match action {
        Action::Add(args) => return Ok((add(args), args.check)),
        Action::Remove { names, check } => return Ok((json!({ "remove": names }), *check)),
        Action::Apply { file, check } => return Ok((read_file(file)?, *check)),
        Action::Set(args) => (set(args), &args.when),
        Action::On(args) => (json!({ "on": args.names }), &args.when),
        Action::Off(args) => (json!({ "off": args.names }), &args.when),
        Action::Pause(args) => (json!({ "pause": args.names }), &args.when),
        Action::Move(args) => (moved(args), &args.when),
        _ => unreachable!("the other actions change nothing"),
    };
    Ok((timed(what, when), when.check))
}

fn timed(mut change: Value, when: &WhenArgs) -> Value {
    for (name, time) in [("at", when.at), ("in", when.after)] {
        if let Some(time) = time {
            change[name] = json!(time.to_string());
        }
    }
    change
}

fn set(args: &SetArgs) -> Value {
    json!({ "set": { args.name.as_str(): changes_of(&args.options) } })
}

fn moved(args: &MoveArgs) -> Value {
    let mut change = json!({ "move": { args.class.as_str(): args.to } });
    if let Some(outage) = args.outage {
        change["outage"] = json!(outage.to_string());
    }
    change
}

fn add(args: &AddArgs) -> Value {
    let mut link = Value::from(duplex_table(args.link.texts()));
    link["name"] = json!(args.name);
    link["match"] = json!(args.matches);
    if let Some(template) = &args.template {
        link["template"] = json!(template);
    }
    if let Some(preset) = args.link.preset() {
        link["preset"] = json!(preset);
    }
    if args.shared {
        link["shared"] = json!(true);
    }
    if !args.match_down.is_empty() {
        link["down"]["match"] = json!(args.match_down);
    }
    json!({ "add": { "link": [link] } })
}

/// Returns the up and down options as one table; options equal in both directions are merged.
pub(in crate::commands) fn duplex_table(
    directions: [Vec<(&'static str, String)>; 2],
) -> Map<String, Value> {
    let [up, down] = directions.map(table);
    if up == down {
        return up;
    }
    Map::from_iter([
        ("up".to_owned(), up.into()),
        ("down".to_owned(), down.into()),
    ])
}

/// Returns changed options as a table; an empty value becomes `null`, which restores the default.
pub(in crate::commands) fn changes_of(options: &[(String, String)]) -> Map<String, Value> {
    let mut options = table(options.iter().cloned());
    for value in options.values_mut().filter(|value| **value == "") {
        *value = Value::Null;
    }
    options
}

/// Returns options as a table; repeated options become a list.
fn table(options: impl IntoIterator<Item = (impl Into<String>, String)>) -> Map<String, Value> {
    let mut table = Map::new();
    for (name, text) in options {
        let (name, text) = (name.into(), Value::from(text));
        match table.get_mut(&name) {
            None => drop(table.insert(name, text)),
            Some(Value::Array(texts)) => texts.push(text),
            Some(first) => *first = Value::Array(vec![first.take(), text]),
        }
    }
    table
}

/// Reads a change from a file, or from standard input.
fn read_file(path: &Path) -> Result<Value, Error> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().take(CHANGE_MAX + 1).read_to_string(&mut text)
    } else {
        open::to_read(path).and_then(|file| file.take(CHANGE_MAX + 1).read_to_string(&mut text))
    };
    read.map_err(Error::file(path, "cannot read the change"))?;
    let refuse = |why: String| Err(Error::usage(format!("{}: {why}", path.display())));
    if text.len() as u64 > CHANGE_MAX {
        let most = CHANGE_MAX >> 20;
        return refuse(format!("larger than {most} MiB; split the change"));
    }
    match parse(&text) {
        Ok(change) => Ok(change),
        Err(why) => refuse(why),
    }
}

/// Parses a change: JSON if it begins with a brace, TOML otherwise.
fn parse(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"));
    }
    toml::from_str(text).map_err(|error| format!("not TOML: {error}"))
}

/// Applies an action's change.
pub(super) fn make(action: &Action, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let (change, check) = body_of(action)?;
    let path = format!("/v1/changes{}", if check { "?check=true" } else { "" });
    let changed = client.post(&path, &change).map_err(|error| match error {
        ClientError::ConnectionLost { .. } if !check => Error::failed(format!(
            "{error}; the change may have been applied; see `longwire ctl changes`"
        )),
        error => error.into(),
    })?;
    if globals.json {
        return print_json(&changed).map(drop);
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
    let what = joined(parts.map(|(n, what)| format!("{n} {what}")), ", ");
    let what = if what.is_empty() { "applied" } else { &what };
    if check {
        format!("nothing was changed; the change would be: {what}")
    } else if is_scheduled {
        format!("scheduled for {}: {what}", seconds(changed.at_ns))
    } else {
        format!("{what} at {}", seconds(changed.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{Cli, Command};

    /// Returns the body of a change given on a command line.
    fn body(arguments: &str) -> Value {
        let arguments = ["longwire", "ctl"].into_iter().chain(arguments.split(' '));
        let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}"));
        let Command::Ctl(args) = &cli.command else {
            panic!("no ctl");
        };
        let (body, _) = body_of(&args.action).unwrap_or_else(|error| panic!("{error}"));
        body
    }

    #[test]
    fn the_command_line_equals_a_body() {
        let cases = r#"
            set adsl* rate=5mbit loss=1% loss=ber:rate=1e-6 --in 2s
            { "set": { "adsl*": { "rate": "5mbit", "loss": ["1%", "ber:rate=1e-6"] } }, "in": "2s" }

            set x.up queue= delay=1ms
            { "set": { "x.up": { "queue": null, "delay": "1ms" } } }

            add new7 --match src=10.0.0.7 --rate 1mbit --template adsl
            { "add": { "link": [{ "name": "new7", "match": ["src=10.0.0.7"], "template": "adsl",
                                  "rate": "1mbit" }] } }

            add x --match in-port=a --match-down in-port=b --delay 1ms --up-rate 1mbit
            { "add": { "link": [{ "name": "x", "match": ["in-port=a"],
                                  "up": { "rate": "1mbit", "delay": "1ms" },
                                  "down": { "delay": "1ms", "match": ["in-port=b"] } }] } }

            move terminal by-west --outage 50ms --at 30s
            { "move": { "terminal": "by-west" }, "outage": "50ms", "at": "30s" }

            remove a b*
            { "remove": ["a", "b*"] }

            pause core
            { "pause": ["core"] }
        "#;
        for case in cases.trim().split("\n\n") {
            let (arguments, wanted) = case.trim().split_once('\n').expect("two lines");
            let wanted: Value = serde_json::from_str(wanted).expect("JSON");
            assert_eq!(body(arguments), wanted, "{arguments}");
        }
    }

    #[test]
    fn toml_and_json_are_equivalent() {
        let toml = "in = \"2s\"\noff = [\"core\"]\n[set.\"adsl*\"]\nrate = \"5mbit\"\n";
        let json = r#" {"in":"2s","off":["core"],"set":{"adsl*":{"rate":"5mbit"}}}"#;
        assert_eq!(parse(toml), parse(json));
        assert!(parse("{").is_err() && parse("= 1").is_err());
    }

    #[test]
    fn changes_are_reported_with_their_time() {
        let changed = |at_ns, links, removed| ChangeResult {
            at_ns,
            links,
            added: 0,
            removed,
            warnings: Vec::new(),
        };
        let (four, one) = (changed(2_500_000_000, 4, 1), changed(4_049_022_260, 1, 0));
        for (change, check, is_scheduled, text) in [
            (&four, false, false, "4 links changed, 1 removed at 2.5 s"),
            (
                &four,
                true,
                true,
                "nothing was changed; the change would be: 4 links changed, 1 removed",
            ),
            (&one, false, false, "1 link changed at 4.049 s"),
            (&one, false, true, "scheduled for 4.049 s: 1 link changed"),
        ] {
            assert_eq!(words(change, check, is_scheduled), text);
        }
    }
}
