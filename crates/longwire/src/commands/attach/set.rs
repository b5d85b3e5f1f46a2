//! `longwire attach set`: changes options of an attached link.

use std::process::ExitCode;

use clap::Args;
use longwire_client::node::DirectionSpec;
use longwire_client::{Address, Client};
use longwire_topology::{StartFiles, duplex_of_json};
use serde_json::{Map, Value, json};

use super::registry;
use crate::commands::ctl;
use crate::report::start;
use crate::{Error, Globals};

const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Arguments of `attach set`.
#[derive(Debug, Args)]
pub struct AttachSetArgs {
    /// Link name, as in `attach list`
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Options, such as delay=80ms or up-rate=5mbit; loss and rewrite are repeatable. An empty
    /// value, as in queue=, restores the default
    #[arg(value_name = "OPTION=VALUE", required = true, value_parser = ctl::option)]
    pub options: Vec<(String, String)>,

    /// Change one direction only: what the interface's namespace sends (up) or receives (down);
    /// same as an up- or down- prefix on each option
    #[arg(long, value_name = "up|down", value_parser = ["up", "down"])]
    pub direction: Option<String>,
}

pub(super) fn set(args: &AttachSetArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let options = DirectedOptions::new(args)?;
    options.warn(globals);
    let found = registry::named(&args.name)?;
    let view = &found.view;
    options.check(view.spec.direction)?;
    let answer = match &found.process {
        Some(process) if process.closed => return Err(found.refuse_closed()),
        Some(process) => {
            let mut client = Client::new(Address::Unix(process.control.clone()), None)?;
            let change = json!({ "set": options.of_interfaces(&view.interfaces) });
            client.post("/v1/changes", &change)?
        }
        // The node stores the options for later runs.
        None => {
            let mut spec = view.spec.clone();
            options.change(&mut spec.link);
            json!(registry::put(&view.name, &spec)?)
        }
    };
    if globals.json {
        println!("{answer}");
    } else if !globals.quiet {
        println!("'{}' was changed", view.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// Options for both directions, for up and for down.
struct DirectedOptions([(Option<&'static str>, Map<String, Value>); 3]);

impl DirectedOptions {
    /// Parses options: `delay=20ms`, `up-rate=5mbit`, `loss=` for none.
    fn new(args: &AttachSetArgs) -> Result<DirectedOptions, Error> {
        let mut tables = [None, Some("up"), Some("down")].map(|way| (way, Map::new()));
        for (name, value) in ctl::changes_of(&args.options) {
            let asked = args.direction.as_deref();
            let (direction, option) = split(&name)
                .map_or((asked, &*name), |(direction, option)| {
                    (Some(direction), option)
                });
            if let (Some(asked), Some(direction)) = (asked, direction)
                && asked != direction
            {
                return Err(Error::usage(format!(
                    "'{name}' has direction {direction} only, but --direction {asked} was given"
                )));
            }
            for (_, table) in tables.iter_mut().filter(|(way, _)| *way == direction) {
                table.insert(option.to_owned(), value.clone());
            }
        }
        Ok(DirectedOptions(tables))
    }

    /// Returns the options for both directions, then for each; skips empty tables.
    fn tables(&self) -> impl Iterator<Item = (Option<&'static str>, &Map<String, Value>)> {
        let tables = self.0.iter().map(|(way, table)| (*way, table));
        tables.filter(|(_, table)| !table.is_empty())
    }

    /// Warns about valid but suspicious values, such as 10Mbps. The run or the node refuses invalid
    /// ones.
    fn warn(&self, globals: &Globals) {
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
    }

    /// Refuses options for a direction that the link does not have.
    fn check(&self, direction: DirectionSpec) -> Result<(), Error> {
        let only = match direction {
            DirectionSpec::Both => return Ok(()),
            DirectionSpec::Up => "up",
            DirectionSpec::Down => "down",
        };
        let mut directions = self.tables().filter_map(|(direction, _)| direction);
        if directions.all(|direction| direction == only) {
            return Ok(());
        }
        Err(Error::usage(format!(
            "the link has one direction, {only}; attach a second link for the other direction"
        )))
    }

    /// Returns the change for the links of a run.
    fn of_interfaces(&self, interfaces: &[String]) -> Map<String, Value> {
        let links = interfaces.iter().flat_map(|interface| {
            self.tables().map(move |(direction, options)| {
                let direction = direction.map(|direction| format!(".{direction}"));
                let link = format!("{interface}{}", direction.unwrap_or_default());
                (link, json!(options))
            })
        });
        links.collect()
    }

    /// Changes the options of a stored link; `null` removes an option.
    fn change(&self, link: &mut Map<String, Value>) {
        for (direction, options) in self.tables() {
            for (name, value) in options {
                change(link, direction, name, value);
            }
        }
    }
}

/// Sets an option of a link, in one direction or in both.
fn change(link: &mut Map<String, Value>, direction: Option<&str>, name: &str, value: &Value) {
    let Some(direction) = direction else {
        // A directional option would override this one.
        for direction in DIRECTIONS {
            if let Some(Value::Object(options)) = link.get_mut(direction) {
                options.remove(name);
            }
        }
        return assign(link, name, value);
    };
    // Keep the option's value in the other direction.
    if value.is_null()
        && let Some(both) = link.remove(name)
    {
        let other = if direction == "up" { "down" } else { "up" };
        if let Value::Object(options) = link.entry(other).or_insert_with(|| json!({})) {
            options.entry(name).or_insert(both);
        }
    }
    if let Value::Object(options) = link.entry(direction).or_insert_with(|| json!({})) {
        assign(options, name, value);
    }
}

fn assign(options: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        options.remove(name);
    } else {
        options.insert(name.to_owned(), value.clone());
    }
}

/// Splits a directional option such as `up-delay`.
fn split(name: &str) -> Option<(&'static str, &str)> {
    let (start, option) = name.split_once('-')?;
    let direction = DIRECTIONS
        .into_iter()
        .find(|direction| *direction == start)?;
    Some((direction, option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str, direction: Option<&str>) -> Result<Value, Error> {
        let words = line.split(' ').map(|word| ctl::option(word).expect(word));
        let read = DirectedOptions::new(&AttachSetArgs {
            name: "web".to_owned(),
            options: words.collect(),
            direction: direction.map(str::to_owned),
        })?;
        Ok(json!(read.tables().collect::<Vec<_>>()))
    }

    #[test]
    fn options_have_a_direction_by_their_name_or_by_the_argument() {
        let line = "delay=1ms up-rate=5mbit down-loss=";
        assert_eq!(
            options(line, None).expect("options"),
            json!([
                [null, { "delay": "1ms" }],
                ["up", { "rate": "5mbit" }],
                ["down", { "loss": null }],
            ])
        );
        let up = options("delay=1ms up-rate=5mbit", Some("up")).expect("options");
        assert_eq!(up, json!([["up", { "delay": "1ms", "rate": "5mbit" }]]));
        assert!(options(line, Some("up")).is_err());
    }

    #[test]
    fn an_option_is_set_where_it_is_meant() {
        let link = json!({ "delay": "1ms", "up": { "delay": "2ms", "loss": "1%" } });
        for (link, direction, (name, value), changed) in [
            (
                link.clone(),
                None,
                ("delay", json!("9ms")),
                json!({ "delay": "9ms", "up": { "loss": "1%" } }),
            ),
            (
                link,
                Some("down"),
                ("delay", json!("9ms")),
                json!({ "delay": "1ms", "up": { "delay": "2ms", "loss": "1%" },
                        "down": { "delay": "9ms" } }),
            ),
            (
                json!({ "loss": "1%" }),
                Some("up"),
                ("loss", Value::Null),
                json!({ "down": { "loss": "1%" }, "up": {} }),
            ),
        ] {
            let Value::Object(mut link) = link else {
                panic!("an object");
            };
            change(&mut link, direction, name, &value);
            assert_eq!(Value::from(link), changed, "{direction:?} {name}");
        }
    }
}
