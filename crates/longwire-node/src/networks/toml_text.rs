//! Text of a topology that was sent as JSON.

use std::fmt::Write;

use serde_json::Value;

/// Returns a topology as text: a string itself, an object as TOML. `None` for other values, and
/// for null, which TOML does not have.
pub(super) fn text(file: &Value) -> Option<String> {
    match file {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            let mut text = String::new();
            for (name, value) in fields {
                key(&mut text, name);
                write_value(&mut text, value)?;
                text.push('\n');
            }
            Some(text)
        }
        _ => None,
    }
}

fn key(text: &mut String, name: &str) {
    write_text(text, name);
    text.push_str(" = ");
}

/// Writes a value in one line, with inline tables.
fn write_value(text: &mut String, value: &Value) -> Option<()> {
    match value {
        Value::Null => return None,
        Value::Bool(flag) => drop(write!(text, "{flag}")),
        Value::Number(number) => drop(write!(text, "{number}")),
        Value::String(value) => write_text(text, value),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                write_value(text, item)?;
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (place, (name, value)) in fields.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { " " });
                key(text, name);
                write_value(text, value)?;
            }
            text.push_str(" }");
        }
    }
    Some(())
}

/// Writes a basic string (TOML 1.0, section "String").
fn write_text(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => drop(write!(text, "\\u{:04X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longwire_topology::Topology;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_same_topology_as_its_text() {
        let object = json!({
            "seed": 7,
            "ports": { "left": "null", "right": "null" },
            "link": [{ "name": "wire", "delay": "5ms", "loss": ["1%"], "up": { "rate": "1mbit" } }],
            "at": [{ "time": "1s", "set": { "wi*": { "delay": "6ms" } } }],
        });
        let written = text(&object).expect("a text");
        let topology = Topology::parse("net", &written, Path::new(""));
        let topology = topology.unwrap_or_else(|problems| panic!("{written}\n{problems:?}"));
        assert_eq!((topology.seed, topology.ports.len()), (Some(7), 2));
        assert_eq!(topology.links[0].up.texts("rate"), ["1mbit"]);
        assert_eq!(topology.timeline.events.len(), 1);
    }

    #[test]
    fn special_characters_are_kept_and_nulls_refused() {
        let written = text(&json!({ "a\"b": "\\ \u{7f} \n ü" })).expect("a text");
        assert_eq!(written, "\"a\\\"b\" = \"\\\\ \\u007F \\u000A ü\"\n");
        assert_eq!(text(&json!({ "a": [null] })), None);
        assert_eq!(text(&json!(7)), None);
    }
}
