//! `longwire attach list`: the links of `attach` runs and of the node.

use std::io;
use std::process::ExitCode;

use longwire_client::node::{AttachmentState, FailSpec};
use longwire_client::{Address, Client};
use longwire_fabric::options_in_words;
use nix::unistd::geteuid;
use serde_json::{Map, Value, json};

use super::attach_node;
use super::attach_runs::{Record, runs};
use super::attach_traffic::SelectedTraffic;
use crate::table::Table;
use crate::{Error, Globals};

/// Prints the attached links.
pub(super) fn list(globals: &Globals) -> Result<ExitCode, Error> {
    let mut found = runs()?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let of_node = attach_node::views()?;
    if globals.json {
        let rows: Vec<Value> = found
            .iter()
            .map(|record| {
                let mut row = json!(record);
                row["links"] = links_of(record).map_or(Value::Null, Value::from);
                row
            })
            .chain(of_node.iter().map(|view| {
                let mut row = json!(view);
                row["node"] = Value::Bool(true);
                row
            }))
            .collect();
        println!(
            "{}",
            serde_json::to_string_pretty(&rows).map_err(io::Error::from)?
        );
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() && of_node.is_empty() {
        if !globals.quiet {
            println!("no link is attached");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::headed("name | place | interfaces | traffic | by | options");
    for record in &found {
        table.row(vec![
            record.name.clone(),
            record.place.clone(),
            interfaces_of(&record.interfaces),
            record.traffic.words(record.fails_closed()),
            format!("PID {}", record.pid),
            state_of(record),
        ]);
    }
    for view in of_node {
        table.row(vec![
            view.name,
            match view.state {
                AttachmentState::Attached => view.place.unwrap_or_default(),
                AttachmentState::Waiting => {
                    format!("waits: {}", summary(&view.reason.unwrap_or_default()))
                }
            },
            interfaces_of(&view.interfaces),
            SelectedTraffic::of_spec(&view.spec).words(view.spec.fail == FailSpec::Closed),
            "node".to_owned(),
            spec_words(&view.spec.link),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

/// Returns the start of a reason, without the list of searched places.
fn summary(reason: &str) -> &str {
    let line = reason.lines().next().unwrap_or_default();
    line.split("; ").next().unwrap_or_default()
}

/// Returns the options of a run's first link, or the reason that it has none.
fn state_of(record: &Record) -> String {
    if record.closed {
        return "closed, its emulator has ended".to_owned();
    }
    match links_of(record) {
        Some(links) => words(&links),
        None if geteuid().is_root() => "(does not respond)".to_owned(),
        None => "(root may see them)".to_owned(),
    }
}

/// Returns the options of a node's attachment, by direction.
fn spec_words(link: &Map<String, Value>) -> String {
    let mut both = link.clone();
    let directions = ["up", "down"].map(|name| (name, both.remove(name)));
    let mut parts = vec![options_in_words(&both)];
    for (name, options) in &directions {
        let options = options.as_ref().and_then(Value::as_object);
        if let Some(options) = options.filter(|options| !options.is_empty()) {
            parts.push(format!("{name} {}", options_in_words(options)));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// Returns the links of a run, from its control API.
fn links_of(record: &Record) -> Option<Vec<Value>> {
    let mut client = Client::new(Address::Unix(record.control.clone()), None).ok()?;
    let answer = client.get("/v1/links").ok()?;
    answer.get("links").unwrap_or(&answer).as_array().cloned()
}

/// Returns the options of the first interface's link, by direction.
fn words(links: &[Value]) -> String {
    let options = |direction: &str| {
        let options = links
            .first()
            .and_then(|link| link[direction].get("options"));
        let options = options.and_then(Value::as_object);
        options.map_or_else(String::new, options_in_words)
    };
    let (up, down) = (options("up"), options("down"));
    if up == down {
        return up;
    }
    format!("up {up}; down {down}")
}

/// Returns the names of interfaces, abbreviated if there are many.
fn interfaces_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    if names.len() <= SHOWN {
        return names.join(",");
    }
    format!("{},… ({})", names[..SHOWN].join(","), names.len())
}
