//! Runs repeated measurements and prints their results.

use std::fmt;

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::table::Table;

/// Prints a result as JSON, or as `about` followed by tables of the same fields.
///
/// # Errors
/// If the result cannot be serialised as JSON.
pub fn show(about: &str, found: &impl Serialize, json: bool) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(found).map_err(Error::failed)?;
    if json {
        println!("{text}");
    } else {
        println!("{about}");
        let field: Field = serde_json::from_str(&text).map_err(Error::failed)?;
        print!("{field}");
    }
    Ok(())
}

/// Returns the upper median; NaN if empty.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the result with the upper median of `key`.
///
/// # Panics
/// If there are no results.
pub fn median_by<R>(mut results: Vec<R>, key: impl Fn(&R) -> f64) -> R {
    results.sort_by(|a, b| key(a).total_cmp(&key(b)));
    results.swap_remove(results.len() / 2)
}

/// Measures all variants in turn, round by round, so that a disturbance affects all of them.
/// Returns the results by variant.
///
/// # Errors
/// Any error from `measure`, which receives the round number, counted from 1.
pub fn in_turn<V, R>(
    rounds: usize,
    variants: &[V],
    mut measure: impl FnMut(usize, &V) -> Result<R, Error>,
) -> Result<Vec<Vec<R>>, Error> {
    let mut found: Vec<Vec<R>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds.max(1) {
        for (variant, found) in variants.iter().zip(&mut found) {
            found.push(measure(round, variant)?);
        }
    }
    Ok(found)
}

/// A JSON value that preserves field order.
#[derive(Deserialize)]
#[serde(untagged)]
enum Field {
    Empty(()),
    Truth(bool),
    Whole(u64),
    Negative(i64),
    Number(f64),
    Text(String),
    List(Vec<Field>),
    Object(IndexMap<String, Field>),
}

impl Field {
    /// Appends the cells of a row; each field of a nested object becomes a column.
    fn cells(&self, name: &str, row: &mut Vec<(String, String)>) {
        match self {
            Field::Object(fields) => {
                for (key, field) in fields {
                    let key = key.replace('_', " ");
                    field.cells(format!("{name} {key}").trim(), row);
                }
            }
            field => row.push((name.to_owned(), field.cell())),
        }
    }

    /// Formats a scalar; numbers have about four significant digits.
    fn cell(&self) -> String {
        match self {
            Field::Empty(()) | Field::Object(_) => String::new(),
            Field::Truth(truth) => if *truth { "yes" } else { "no" }.to_owned(),
            Field::Whole(number) => number.to_string(),
            Field::Negative(number) => number.to_string(),
            Field::Text(text) => text.clone(),
            Field::Number(number) => {
                let digits = match number.abs() {
                    0.0..1.0 => 4,
                    1.0..10.0 => 3,
                    10.0..100.0 => 2,
                    100.0..1000.0 => 1,
                    _ => 0,
                };
                format!("{number:.digits$}")
            }
            Field::List(items) => {
                let items: Vec<String> = items.iter().map(Field::cell).collect();
                items.join(" to ")
            }
        }
    }

    /// Formats objects as a table.
    fn table(items: &[Field]) -> String {
        let row = |item: &Field| {
            let mut row = Vec::new();
            item.cells("", &mut row);
            row
        };
        let rows: Vec<Vec<(String, String)>> = items.iter().map(row).collect();
        let columns: IndexSet<&str> = rows.iter().flatten().map(|(name, _)| &**name).collect();
        let columns: Vec<&str> = columns.into_iter().collect();
        let mut table = Table::new(&columns);
        for row in &rows {
            let cell = |column: &&str| {
                let cell = row.iter().find(|(name, _)| name == column);
                cell.map_or(String::new(), |(_, text)| text.clone())
            };
            table.row(columns.iter().map(cell).collect());
        }
        table.text()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Empty(()) => Ok(()),
            Field::Object(fields) => fields.iter().try_for_each(|(name, field)| match field {
                Field::List(items) if items.iter().any(|item| matches!(item, Field::Object(_))) => {
                    write!(f, "\n{}:\n{field}", name.replace('_', " "))
                }
                Field::Object(_) => write!(f, "\n{}:\n{field}", name.replace('_', " ")),
                field => writeln!(f, "{}: {}", name.replace('_', " "), field.cell()),
            }),
            Field::List(items) => f.write_str(&Field::table(items)),
            field => writeln!(f, "{}", field.cell()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_columns_in_their_order() {
        let text = r#"{"links": 2, "rows": [{"size_bytes": 64, "ns": 12.345, "rtt": null},
            {"size_bytes": 1500, "ns": 1234.5, "rtt": {"p50": 0.5, "range": [1, 2]}}]}"#;
        let found: Field = serde_json::from_str(text).expect("JSON");
        let expected = "links: 2\n\nrows:\n\
                        size bytes     ns  rtt  rtt p50  rtt range\n\
                        \x20       64  12.35                         \n\
                        \x20     1500   1234        0.5000     1 to 2\n";
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn variants_take_turns() {
        let mut order = Vec::new();
        let found = in_turn(2, &["a", "b"], |round, name| {
            order.push(format!("{name}{round}"));
            Ok(round as f64)
        });
        assert_eq!(order, ["a1", "b1", "a2", "b2"]);
        assert_eq!(found.expect("measured"), [[1.0, 2.0], [1.0, 2.0]]);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    }
}
