//! JSON as TOML, so that what is sent and what is written are read by the same
//! reader.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The longest name and the longest value of a change, in bytes. Problems
/// repeat them.
const NAME_MAX: usize = 4 << 10;
const VALUE_MAX: usize = 1 << 20;

/// Whether every name and text in a value is short enough to be one.
pub(super) fn is_bounded(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= VALUE_MAX,
        Value::Array(items) => items.iter().all(is_bounded),
        Value::Object(fields) => {
            let bounded = |(name, value): (&String, _)| name.len() <= NAME_MAX && is_bounded(value);
            fields.iter().all(bounded)
        }
    }
}

/// A JSON object as the text of a TOML document.
///
/// # Errors
/// The field that is null: TOML has no such value.
pub(super) fn document(object: &Map<String, Value>) -> Result<String, String> {
    let mut text = String::new();
    for (name, value) in object {
        push_text(&mut text, name);
        text.push_str(" = ");
        push(&mut text, value).map_err(|inner| match inner.as_str() {
            "" => name.clone(),
            inner => format!("{name}.{inner}"),
        })?;
        text.push('\n');
    }
    Ok(text)
}

fn push(text: &mut String, value: &Value) -> Result<(), String> {
    match value {
        Value::Null => return Err(String::new()),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => push_number(text, number),
        Value::String(value) => push_text(text, value),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                push(text, item)?;
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (nth, (name, value)) in fields.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                push_text(text, name);
                text.push_str(" = ");
                push(text, value).map_err(|inner| match inner.as_str() {
                    "" => name.clone(),
                    inner => format!("{name}.{inner}"),
                })?;
            }
            text.push('}');
        }
    }
    Ok(())
}

/// TOML's whole numbers have 64 bits with a sign; larger ones go as text, and
/// the reader says what it expected. JSON's `2.0` is a whole number (JSON Schema
/// 2020-12, section 6.1.1).
fn push_number(text: &mut String, number: &serde_json::Number) {
    /// Whole numbers up to it are exact in floating point.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let whole = number.as_f64().filter(|real| real.fract() == 0.0);
    if number
        .as_u64()
        .is_some_and(|number| i64::try_from(number).is_err())
    {
        push_text(text, &number.to_string());
    } else if let Some(real) = whole.filter(|real| number.is_f64() && real.abs() <= EXACT_MAX) {
        text.push_str(&(real as i64).to_string());
    } else {
        text.push_str(&number.to_string());
    }
}

/// A basic string: TOML's escapes are JSON's, and it allows no DEL.
fn push_text(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() && (c as u32) < 0x80 => {
                // Writing to a text does not fail.
                let _ = write!(text, "\\u{:04X}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_the_same() {
        let value = json!({
            "a \"b\" \\ \n \u{7f} \u{1} é": { "x": [1, -2, 2.5, 1e30, "t", 3.0], "empty": {} },
            "list": [[["deep"]], { "k": true }],
            "none": [],
        });
        let text = document(value.as_object().unwrap()).unwrap();
        let read: toml::Table = toml::from_str(&text).unwrap();
        let names: Vec<&String> = read.keys().collect();
        assert_eq!(names.len(), 3);
        assert!(read.contains_key("a \"b\" \\ \n \u{7f} \u{1} é"), "{text}");
        assert_eq!(read["list"][1]["k"].as_bool(), Some(true));
        let first = names.iter().find(|name| name.starts_with('a')).unwrap();
        assert_eq!(read[first.as_str()]["x"][1].as_integer(), Some(-2));
        assert_eq!(read[first.as_str()]["x"][3].as_float(), Some(1e30));
        assert_eq!(read[first.as_str()]["x"][5].as_integer(), Some(3));
    }

    #[test]
    fn names_and_values_have_bounds() {
        let of = |name: usize, value: usize| {
            is_bounded(&json!({ "set": { "x".repeat(name): [{ "rate": "x".repeat(value) }] } }))
        };
        assert!(of(NAME_MAX, VALUE_MAX));
        assert!(!of(NAME_MAX + 1, 1));
        assert!(!of(1, VALUE_MAX + 1));
    }

    #[test]
    fn null_is_named() {
        let value = json!({ "set": { "a": { "rate": null } } });
        let refused = document(value.as_object().unwrap());
        assert_eq!(refused, Err("set.a.rate".to_owned()));
    }
}
