//! Options of a link as JSON, and their changes by a step.

use serde_json::{Map, Value};

/// Tables of options of one direction.
const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Applies a step's options to a link. An option of both directions also replaces that of `up` and
/// of `down`; null removes an option.
pub fn merge(link: &mut Map<String, Value>, set: &Map<String, Value>) {
    for (name, value) in set {
        if DIRECTIONS.contains(&name.as_str())
            && let Value::Object(set) = value
        {
            let direction = link.entry(name.as_str()).or_insert_with(empty);
            if let Value::Object(direction) = direction {
                set.iter()
                    .for_each(|(name, value)| put(direction, name, value));
            }
            continue;
        }
        for direction in DIRECTIONS {
            if let Some(Value::Object(direction)) = link.get_mut(direction) {
                direction.remove(name);
            }
        }
        put(link, name, value);
    }
    for direction in DIRECTIONS {
        if link
            .get(direction)
            .is_some_and(|options| *options == empty())
        {
            link.remove(direction);
        }
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn put(options: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        options.remove(name);
    } else {
        options.insert(name.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is not an object"),
        }
    }

    #[test]
    fn a_step_replaces_options_of_both_directions() {
        let mut link =
            object(json!({ "delay": "20ms", "up": { "delay": "5ms", "rate": "1mbit" } }));
        merge(
            &mut link,
            &object(json!({ "delay": "40ms", "down": { "loss": "1%" } })),
        );
        let expected =
            json!({ "delay": "40ms", "up": { "rate": "1mbit" }, "down": { "loss": "1%" } });
        assert_eq!(Value::Object(link), expected);
    }

    #[test]
    fn null_removes_an_option() {
        let mut link = object(json!({ "delay": "20ms", "down": { "loss": "1%" } }));
        merge(
            &mut link,
            &object(json!({ "delay": null, "down": { "loss": null } })),
        );
        assert_eq!(Value::Object(link), json!({}));
    }
}
