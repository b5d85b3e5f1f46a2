//! Quantities in netem-trace documents: texts such as `1Gbps 20Mbps` and `1s 500ms`, or objects
//! with a whole and a part.

use serde_json::{Map, Value};

use super::quantity::Quantity;
use crate::prelude::*;
use longwire_units::decimal::scaled;

/// Reads the field `key`, or its default.
///
/// # Errors
/// If the value is invalid.
pub fn field(
    fields: &Map<String, Value>,
    key: &str,
    quantity: Quantity,
    usual: u64,
) -> Result<u64, String> {
    let Some(value) = fields.get(key) else {
        return Ok(usual);
    };
    let read = match value {
        Value::Number(_) => Err(not_written(quantity)),
        value => self::value(value, quantity, 1),
    };
    read.map_err(|message| format!("{key}: {message}"))
}

/// Reads a text, an object with a whole and a part, or a number in steps of `scale`.
///
/// # Errors
/// If the value is invalid.
pub fn value(value: &Value, quantity: Quantity, scale: u64) -> Result<u64, String> {
    match (value, quantity) {
        (Value::String(text), _) => sum(text, quantity),
        (Value::Object(parts), Quantity::Rate) => whole_and_part(parts, "gbps", "bps"),
        (Value::Object(parts), _) => whole_and_part(parts, "secs", "nanos"),
        (Value::Number(_), _) => number(value, scale),
        _ => Err(not_written(quantity)),
    }
}

fn not_written(quantity: Quantity) -> String {
    format!("not a string such as {}", example(quantity))
}

/// Reads a number in steps of `scale`.
///
/// # Errors
/// If the value is not a number, negative or too large.
pub fn number(value: &Value, scale: u64) -> Result<u64, String> {
    match value {
        Value::Number(number) => scaled(&number.to_string(), scale),
        other => Err(format!("'{other}' is not a number")),
    }
}

fn example(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "12Mbps",
        _ => "1s 500ms",
    }
}

/// Reads `{"gbps": 0, "bps": 12000000}`; the whole is in units of a billion parts.
fn whole_and_part(parts: &Map<String, Value>, whole: &str, part: &str) -> Result<u64, String> {
    let read = |key: &str| match parts.get(key).and_then(Value::as_u64) {
        Some(value) => Ok(value),
        None => Err(format!("no integer '{key}'")),
    };
    let value = read(whole)?.checked_mul(1_000_000_000);
    let value = value.and_then(|value| value.checked_add(read(part).ok()?));
    read(part)?;
    value.ok_or_else(|| "too large".to_string())
}

/// Returns the length in nanoseconds of a time unit that only the humantime crate defines. A
/// capital M is a month of 30.44 days; a year has 365.25 days.
fn calendar_scale(unit: &str) -> Option<u64> {
    let seconds = match unit {
        "second" => 1,
        "m" | "mins" | "minute" => 60,
        "hr" | "hrs" | "hour" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "wk" | "wks" | "week" | "weeks" => 7 * 86_400,
        "M" | "month" | "months" => 2_630_016,
        "y" | "yr" | "yrs" | "year" | "years" => 31_557_600,
        _ => return None,
    };
    Some(seconds * 1_000_000_000)
}

/// Sums numbers with units, separated by optional spaces.
fn sum(text: &str, quantity: Quantity) -> Result<u64, String> {
    let mut total = 0u64;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(unit_at.unwrap_or(rest.len()));
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let scale = match quantity {
            Quantity::Rate => quantity.scale(unit),
            _ => calendar_scale(unit).or(quantity.scale(unit)),
        };
        let scale =
            scale.ok_or_else(|| format!("'{text}' is not of the form {}", example(quantity)))?;
        let value = scaled(number, scale)?;
        total = total
            .checked_add(value)
            .ok_or_else(|| format!("'{text}' is too large"))?;
        rest = after.trim_start();
    }
    if text.trim().is_empty() {
        Err(format!("empty; for example: {}", example(quantity)))
    } else {
        Ok(total)
    }
}
