//! Options of `attach set`, by direction.

use longwire_topology::{StartFiles, duplex_of_json};
use serde_json::{Map, Value};

use super::attach_runs::AttachSetArgs;
use super::attach_traffic::SelectedTraffic;
use crate::report::start;
use crate::{Error, Globals};

const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Options of both directions, and of each.
pub(super) struct DirectedOptions {
    both: Map<String, Value>,
    each: [(&'static str, Map<String, Value>); 2],
}

impl DirectedOptions {
    /// Parses options: `delay=20ms`, `up-rate=5mbit`, `loss=` for none.
    pub fn new(args: &AttachSetArgs) -> Result<DirectedOptions, Error> {
        let mut options = DirectedOptions {
            both: Map::new(),
            each: DIRECTIONS.map(|direction| (direction, Map::new())),
        };
        let mut given: Map<String, Value> = super::ctl::table(args.options.iter().cloned());
        for value in given.values_mut().filter(|value| **value == "") {
            *value = Value::Null;
        }
        for (name, value) in given {
            let asked = args.direction.as_deref();
            let (direction, option) = split(&name)
                .map_or((asked, &*name), |(direction, option)| {
                    (Some(direction), option)
                });
            if let (Some(asked), Some(direction)) = (asked, direction)
                && asked != direction
            {
                return Err(Error::Usage(format!(
                    "'{name}' is of the direction {direction}, and --direction {asked} was given"
                )));
            }
            let each = options.each.iter_mut();
            let one = each.into_iter().find(|(name, _)| Some(*name) == direction);
            let table = one.map_or(&mut options.both, |(_, table)| table);
            table.insert(option.to_owned(), value);
        }
        Ok(options)
    }

    /// Returns the options of both directions, then of each; empty tables are omitted.
    pub fn tables(&self) -> impl Iterator<Item = (Option<&'static str>, &Map<String, Value>)> {
        let each = self.each.iter().map(|(name, table)| (Some(*name), table));
        let all = std::iter::once((None, &self.both)).chain(each);
        all.filter(|(_, table)| !table.is_empty())
    }

    /// Warns of valid but suspicious values, such as 10Mbps. The link refuses invalid
    /// ones.
    pub fn warn(&self, globals: &Globals) -> Result<(), Error> {
        for (_, table) in self.tables() {
            let given = table.iter().filter(|(_, value)| !value.is_null());
            let given = given.map(|(name, value)| (name.clone(), value.clone()));
            if let Ok((_, warnings)) = duplex_of_json(&given.collect(), &StartFiles::any()) {
                let warnings: Vec<String> = warnings
                    .iter()
                    .map(|warning| format!("{}: {}", warning.field, warning.reason))
                    .collect();
                start::doubt(&warnings, globals);
            }
        }
        Ok(())
    }

    /// Refuses options of a direction that the link does not have.
    pub fn check(&self, traffic: &SelectedTraffic) -> Result<(), Error> {
        let mut directions = self.tables().filter_map(|(direction, _)| direction);
        let checked = directions.try_for_each(|direction| traffic.check(direction));
        checked.map_err(Error::Usage)
    }
}

/// Splits `up-delay`.
fn split(name: &str) -> Option<(&'static str, &str)> {
    let (start, option) = name.split_once('-')?;
    let direction = DIRECTIONS
        .into_iter()
        .find(|direction| *direction == start)?;
    Some((direction, option))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(words: &[(&str, &str)], direction: Option<&str>) -> Result<Value, Error> {
        let read = DirectedOptions::new(&AttachSetArgs {
            name: "web".to_owned(),
            options: words
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            direction: direction.map(str::to_owned),
        })?;
        Ok(json!(read.tables().collect::<Vec<_>>()))
    }

    #[test]
    fn options_have_a_direction_by_their_name_or_by_the_argument() {
        let words = [("delay", "1ms"), ("up-rate", "5mbit"), ("down-loss", "")];
        assert_eq!(
            options(&words, None).expect("options"),
            json!([
                [null, { "delay": "1ms" }],
                ["up", { "rate": "5mbit" }],
                ["down", { "loss": null }],
            ])
        );
        let up = options(&[("delay", "1ms"), ("up-rate", "5mbit")], Some("up"));
        assert_eq!(
            up.expect("options"),
            json!([["up", { "delay": "1ms", "rate": "5mbit" }]])
        );
        assert!(options(&words, Some("up")).is_err());
    }
}
