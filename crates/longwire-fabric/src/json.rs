//! Commands in the JSON format of changes.

use longwire_engine::{LinkSpec, Nanos, PARTS};
use serde_json::{Map, Value, json};

use longwire_topology::{Action, State};

/// Returns options by name; repeated options as a list.
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
