//! `longwire attach list`: lists all attached links.

use std::process::ExitCode;

use longwire_client::node::{AttachmentSpec, AttachmentState, DirectionSpec};
use longwire_client::{Address, Client};
use longwire_network::options_in_words;
use nix::unistd::geteuid;
use serde_json::{Map, Value, json};

use super::registry::{self, AttachProcess, CLOSED, Registered};
use crate::report::output::print_json;
use crate::table::{Table, joined};
use crate::{Error, Globals};

pub(super) fn list(globals: &Globals) -> Result<ExitCode, Error> {
    let all = registry::all()?;
    if globals.json {
        let rows: Vec<Value> = all.iter().map(row).collect();
        return print_json(&rows);
    }
    if all.is_empty() {
        if !globals.quiet {
            println!("no attached links");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::headed("name | place | interfaces | traffic | by | options");
    for Registered { view, process } in all {
        let (by, options) = match &process {
            Some(process) => (format!("PID {}", process.pid), options_of(process)),
            None => ("node".to_owned(), spec_words(&view.spec.link)),
        };
        let place = view.place.unwrap_or_default();
        table.row(vec![
            view.name,
            match view.state {
                AttachmentState::Waiting if process.is_none() => {
                    format!("waiting: {}", summary(&view.reason.unwrap_or_default()))
                }
                _ => place,
            },
            interfaces_of(&view.interfaces),
            traffic_of(&view.spec),
            by,
            options,
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

/// Returns an attachment as JSON, with the current options of the run's links.
fn row(one: &Registered) -> Value {
    let mut row = json!(one);
    match &one.process {
        Some(process) => row["links"] = links_of(process).map_or(Value::Null, Value::from),
        None => row["node"] = Value::Bool(true),
    }
    row
}

/// Returns the reason without the list of searched places.
fn summary(reason: &str) -> &str {
    let line = reason.lines().next().unwrap_or_default();
    line.split("; ").next().unwrap_or_default()
}

/// Formats the traffic selection of a link.
fn traffic_of(spec: &AttachmentSpec) -> String {
    let mut words = Vec::new();
    if !spec.to.is_empty() {
        words.push(format!("to {}", spec.to.join(" ")));
    }
    if let Some(filter) = &spec.filter {
        words.push(format!("filter '{filter}'"));
    }
    match spec.direction {
        DirectionSpec::Both => {}
        DirectionSpec::Up => words.push("up only".to_owned()),
        DirectionSpec::Down => words.push("down only".to_owned()),
    }
    if let Some(priority) = spec.priority {
        words.push(format!("priority {priority}"));
    }
    if words.is_empty() {
        words.push("all".to_owned());
    }
    if !spec.fail.is_open() {
        words.push("fails closed".to_owned());
    }
    words.join("; ")
}

/// Returns the options of a run's first link, or why they are unknown.
fn options_of(process: &AttachProcess) -> String {
    if process.closed {
        return CLOSED.to_owned();
    }
    match links_of(process) {
        Some(links) => words(&links),
        None if geteuid().is_root() => "(does not respond)".to_owned(),
        None => "(not readable; try sudo)".to_owned(),
    }
}

/// Returns the options of a node attachment, by direction.
fn spec_words(link: &Map<String, Value>) -> String {
    let mut both = link.clone();
    let directions = ["up", "down"].map(|name| (name, both.remove(name)));
    let both = Some(options_in_words(&both)).filter(|both| !both.is_empty());
    let own = directions.iter().filter_map(|(name, options)| {
        let options = options.as_ref()?.as_object()?;
        (!options.is_empty()).then(|| format!("{name} {}", options_in_words(options)))
    });
    joined(both.into_iter().chain(own), "; ")
}

/// Queries a run's control API for its links.
fn links_of(process: &AttachProcess) -> Option<Vec<Value>> {
    let mut client = Client::new(Address::Unix(process.control.clone()), None).ok()?;
    let answer = client.get("/v1/links").ok()?;
    answer.get("links").unwrap_or(&answer).as_array().cloned()
}

/// Returns the link options of the first interface, by direction.
fn words(links: &[Value]) -> String {
    let options = |direction: &str| {
        let options = links.first().map(|link| &link[direction]["options"]);
        let options = options.and_then(Value::as_object);
        options.map_or_else(String::new, options_in_words)
    };
    let (up, down) = (options("up"), options("down"));
    if up == down {
        return up;
    }
    format!("up {up}; down {down}")
}

/// Returns the interface names, abbreviated if there are many.
fn interfaces_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    if names.len() <= SHOWN {
        return names.join(",");
    }
    format!("{},… ({})", names[..SHOWN].join(","), names.len())
}
