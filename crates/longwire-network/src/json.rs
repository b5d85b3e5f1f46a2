//! Options and changes, as JSON and as text.

use longwire_engine::{LinkSpec, Nanos, PARTS};
use longwire_topology::{Action, State};
use serde_json::{Map, Value, json};

/// Returns options by name. Repeated options become a list.
pub fn options(options: &LinkSpec) -> Map<String, Value> {
    let given = PARTS.iter().filter_map(|part| {
        let texts = part.texts(options)?;
        let value = match texts.as_slice() {
            [text] if !part.is_repeated => json!(text),
            texts => json!(texts),
        };
        Some((part.name.to_owned(), value))
    });
    given.collect()
}

/// Returns actions as a JSON change.
pub(super) fn change(actions: &[Action]) -> Value {
    let mut change = json!({});
    for action in actions {
        match action {
            Action::Set {
                pattern,
                options: set,
                resets,
            } => {
                let mut set = options(set);
                set.extend(resets.iter().map(|name| ((*name).to_owned(), Value::Null)));
                change["set"][pattern] = Value::Object(set);
            }
            Action::State { pattern, state } => {
                let field = &mut change[field_of(*state)];
                match field.as_array_mut() {
                    Some(patterns) => patterns.push(json!(pattern)),
                    None => *field = json!([pattern]),
                }
            }
            Action::Move { class, to, outage } => {
                change["move"][class] = json!(to);
                if *outage > Nanos::ZERO {
                    change["outage"] = json!(outage.to_string());
                }
            }
        }
    }
    change
}

/// Returns the name of the field that sets a state.
fn field_of(state: State) -> &'static str {
    match state {
        State::On => "on",
        State::Off => "off",
        State::Paused => "pause",
    }
}

/// Maximum number of names listed.
const LISTED_MAX: usize = 4;

/// Formats options in the syntax of `ctl set`: `rate=5mbit loss=1% loss=nth:10`. A reset option has
/// an empty value: `queue=`.
pub fn options_in_words(options: &Map<String, Value>) -> String {
    let words = options.iter().flat_map(|(name, value)| {
        let texts = match value {
            Value::Null => vec![String::new()],
            value => texts_of(value),
        };
        texts.into_iter().map(move |text| format!("{name}={text}"))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Formats a change: `set core rate=4mbit, off adsl7`.
pub fn change_in_words(change: &Value) -> String {
    let table = |field: &str| change[field].as_object().into_iter().flatten();
    let mut parts: Vec<String> = Vec::new();
    for (name, options) in table("set") {
        let options = options.as_object().map(options_in_words);
        parts.push(format!("set {name} {}", options.unwrap_or_default()));
    }
    for state in ["on", "off", "pause"] {
        parts.extend(list(state, &texts_of(&change[state])));
    }
    for (class, to) in table("move") {
        parts.push(format!("move {class} to {}", texts_of(to).join(" ")));
    }
    for (name, ramp) in table("ramp") {
        let of = |field: &str| texts_of(&ramp[field]).join(" ");
        parts.push(format!(
            "ramp {name} {} from {} to {} in {}",
            of("option"),
            of("from"),
            of("to"),
            of("time")
        ));
    }
    for kind in ["link", "path"] {
        let added = change["add"][kind].as_array().into_iter().flatten();
        let names = added.filter_map(|one| one["name"].as_str().map(str::to_owned));
        parts.extend(list(&format!("add {kind}"), &names.collect::<Vec<_>>()));
    }
    parts.extend(list("remove", &texts_of(&change["remove"])));
    match parts.as_slice() {
        [] => "nothing".to_owned(),
        parts => parts.join(", "),
    }
}

/// Formats a verb with the first few names; `None` if there are no names.
fn list(verb: &str, names: &[String]) -> Option<String> {
    let shown = &names[..names.len().min(LISTED_MAX)];
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{verb} {}{more}", shown.join(", ")))
}

/// Flattens a value into texts.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Null => Vec::new(),
        value => vec![value.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_read_like_commands() {
        let cases = [
            (
                json!({ "set": { "adsl*": { "rate": "5mbit", "loss": ["1%", "nth:10"] } } }),
                "set adsl* loss=1% loss=nth:10 rate=5mbit",
            ),
            (
                json!({ "set": { "x.up": { "queue": null } }, "off": "core", "in": "2s" }),
                "set x.up queue=, off core",
            ),
            (
                json!({ "move": { "a": "b" }, "outage": "5ms", "remove": ["c", "d*"] }),
                "move a to b, remove c, d*",
            ),
            (
                json!({ "ramp": { "x": {
                    "option": "rate", "from": "1mbit", "to": "9mbit", "time": "4s", "steps": 8,
                } } }),
                "ramp x rate from 1mbit to 9mbit in 4s",
            ),
            (
                json!({ "add": { "link": [{ "name": "new", "rate": "1mbit" }] } }),
                "add link new",
            ),
            (
                json!({ "pause": ["a", "b", "c", "d", "e", "f"] }),
                "pause a, b, c, d and 2 more",
            ),
        ];
        for (change, words) in cases {
            assert_eq!(change_in_words(&change), words);
        }
    }

    #[test]
    fn an_option_that_is_repeated_is_written_as_often() {
        let Value::Object(options) = json!({ "delay": "9ms", "loss": ["1%"], "mtu": 1500 }) else {
            panic!("an object");
        };
        assert_eq!(options_in_words(&options), "delay=9ms loss=1% mtu=1500");
    }
}
