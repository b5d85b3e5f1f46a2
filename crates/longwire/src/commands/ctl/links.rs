//! `ctl get`: prints links with options, state and counters.

use std::io::{self, Write};

use indexmap::IndexSet;
use longwire_client::{Client, ClientError};
use longwire_network::{DirectionView, LinkView};
use longwire_runtime::deciding::Occupancy;
use longwire_topology::Direction;
use longwire_topology::glob::is_pattern;
use longwire_units::count_of;
use serde::Deserialize;
use serde_json::Value;

use super::show::named;
use super::{encoded, read};
use crate::report::output::print_json;
use crate::table::{Table, joined};
use crate::{Error, Globals};

/// Links per request; a response is about 1 MB.
const PAGE: usize = 1000;

/// A page of links, in the API's format.
#[derive(Deserialize)]
struct LinkPage {
    links: Vec<Value>,
    next: Option<String>,
}

/// Formats a queue limit; `is_default` if no option sets the queue.
fn limit(queue: &Occupancy, is_default: bool) -> Option<String> {
    let packets = queue.packets_limit.map(|most| count_of(most, "packet"));
    let bytes = queue.bytes_limit.map(|most| count_of(most, "byte"));
    let limits = joined(packets.into_iter().chain(bytes), ", ");
    let kind = if is_default { "default, FIFO: " } else { "" };
    (!limits.is_empty()).then(|| format!("{kind}{limits}"))
}

/// Prints links.
pub(super) fn get(name: Option<&str>, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    match name {
        Some(name) if !is_pattern(name) => one(name, client, globals),
        pattern => many(pattern.unwrap_or("*"), client, globals),
    }
}

/// Splits a name into stem and direction, if it has one.
pub(crate) fn link_and_direction(name: &str) -> (&str, Option<Direction>) {
    match name.rsplit_once('.') {
        Some((base, "up")) => (base, Some(Direction::Up)),
        Some((base, "down")) => (base, Some(Direction::Down)),
        _ => (name, None),
    }
}

/// Returns the directions of a link with their names, or only `way` if given.
fn directions(
    link: &LinkView,
    way: Option<Direction>,
) -> impl Iterator<Item = (&'static str, &DirectionView)> {
    let all = [
        (Direction::Up, Some(&link.up)),
        (Direction::Down, link.down.as_ref()),
    ];
    let all = all.into_iter();
    let chosen = all.filter(move |(one, _)| way.is_none_or(|way| way == *one));
    chosen.filter_map(|(one, direction)| Some((one.name(), direction?)))
}

/// Prints a link or one of its directions.
fn one(name: &str, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    const MISSING: u16 = 404;
    let mut get = |name| client.get(&format!("/v1/links/{}", encoded(name)));
    let (value, way) = match (get(name), link_and_direction(name)) {
        (Err(ClientError::Refused(refused)), (base, way @ Some(_)))
            if refused.status == MISSING =>
        {
            (get(base)?, way)
        }
        (response, _) => (response?, None),
    };
    if globals.json {
        return print_json(&match way {
            None => value,
            Some(way) => value.get(way.name()).cloned().unwrap_or(Value::Null),
        })
        .map(drop);
    }
    let link: LinkView = read(value)?;
    let text = detail(&link, way);
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Formats a link with all details.
fn detail(link: &LinkView, way: Option<Direction>) -> String {
    let mut text = format!("{}\n", link.name);
    for matcher in &link.matchers {
        text += &format!("  match {matcher}\n");
    }
    if let Some(to) = &link.moved_to {
        text += &format!("  moved to {to}\n");
    }
    let shown: Vec<(&str, &DirectionView)> = directions(link, way).collect();
    let mut header = vec![""];
    match shown.as_slice() {
        [_] if link.down.is_none() => header.push("both directions"),
        shown => header.extend(shown.iter().map(|(name, _)| *name)),
    }
    let facts: Vec<Vec<(String, String)>> = shown.iter().map(|(_, of)| facts(of)).collect();
    let names: IndexSet<&String> = facts.iter().flatten().map(|(name, _)| name).collect();
    let mut table = Table::new(&header);
    for name in names {
        let of = |facts: &Vec<(String, String)>| {
            let found = facts.iter().find(|(known, _)| known == name);
            found.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
        };
        let values = facts.iter().map(of);
        table.row(std::iter::once(name.clone()).chain(values).collect());
    }
    text + &table.text()
}

fn facts(direction: &DirectionView) -> Vec<(String, String)> {
    let mut facts = vec![("state".to_owned(), direction.state.name().to_owned())];
    for (name, value) in &direction.options {
        facts.push((name.clone(), texts(value).join(" ")));
    }
    let counted = named(&direction.counted).into_iter();
    facts.extend(counted.map(|(name, count)| (name, count.to_string())));
    if let Some(queue) = &direction.queue {
        let now = amounts(queue.packets, queue.bytes);
        let most = amounts(queue.packets_max, queue.bytes_max);
        if let Some(limit) = limit(queue, !direction.options.contains_key("queue")) {
            facts.push(("queue limit".to_owned(), limit));
        }
        facts.push(("queue now".to_owned(), now));
        facts.push(("queue maximum".to_owned(), most));
    }
    facts
}

/// Returns an option's text, or each text of a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// Prints all matching links, page by page.
fn many(pattern: &str, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let mut links = Vec::new();
    let way = pages(pattern, client, &mut links)?;
    if links.is_empty() && pattern != "*" {
        return Err(Error::usage(format!(
            "no link matches '{pattern}'; * matches any text, ? one character"
        )));
    }
    if globals.json {
        return print_json(&links).map(drop);
    }
    let mut table = Table::headed("link | state | in | out | dropped | queued | options");
    for value in links {
        let link: LinkView = read(value)?;
        for (name, direction) in directions(&link, way) {
            let name = match &link.down {
                Some(_) => format!("{}.{name}", link.name),
                None => link.name.clone(),
            };
            table.row(row(name, direction));
        }
    }
    io::stdout().lock().write_all(table.text().as_bytes())?;
    Ok(())
}

/// Fetches all links with matching names, page by page. If no link matches a pattern with a
/// direction suffix, fetches that direction of the links that match the pattern without the suffix.
fn pages(
    pattern: &str,
    client: &mut Client,
    links: &mut Vec<Value>,
) -> Result<Option<Direction>, Error> {
    let mut after: Option<String> = None;
    loop {
        let mut path = format!("/v1/links?match={}&limit={PAGE}", encoded(pattern));
        if let Some(after) = &after {
            path += &format!("&after={}", encoded(after));
        }
        let page: LinkPage = read(client.get(&path)?)?;
        links.extend(page.links);
        match page.next {
            // Require progress; otherwise a faulty server could cause an infinite loop.
            Some(next) if after.as_ref().is_none_or(|after| *after < next) => after = Some(next),
            Some(next) => {
                let reason = format!("the list of links repeats from '{next}'");
                return Err(ClientError::protocol(client.address(), reason).into());
            }
            None => break,
        }
    }
    match link_and_direction(pattern) {
        (base, Some(way)) if links.is_empty() => {
            pages(base, client, links)?;
            Ok(Some(way))
        }
        _ => Ok(None),
    }
}

fn row(name: String, direction: &DirectionView) -> Vec<String> {
    let options = direction.options.iter().flat_map(|(name, value)| {
        let texts = texts(value).into_iter();
        texts.map(move |text| format!("{name}={text}"))
    });
    vec![
        name,
        direction.state.name().to_owned(),
        direction.counted.totals.traffic.packets_in.to_string(),
        direction.counted.totals.traffic.packets_out.to_string(),
        direction.counted.dropped.total().to_string(),
        direction.counted.queued.to_string(),
        joined(options, " "),
    ]
}

/// Formats a queue's length in packets and bytes.
fn amounts(packets: u64, bytes: u64) -> String {
    let (packets, bytes) = (count_of(packets, "packet"), count_of(bytes, "byte"));
    format!("{packets}, {bytes}")
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::words;
    use serde_json::json;

    use super::*;

    fn link() -> LinkView {
        let direction = |options: Value| {
            json!({
                "state": "on", "options": options, "packets_in": 3, "bytes_in": 300,
                "packets_out": 2, "bytes_out": 200, "dropped": { "loss": 1 }, "raised": 0,
                "ecn_marked": 0, "corrupted": 0, "duplicated": 0, "late": 4, "queued": 0,
            })
        };
        let value = json!({
            "name": "adsl7", "shared": false, "match": ["src=10.0.0.7", "dst=10.0.0.7"],
            "up": direction(json!({ "rate": "1mbit" })),
            "down": direction(json!({ "rate": "16mbit", "loss": ["1%", "nth:every=5"] })),
        });
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_link_is_shown_in_full() {
        let text = detail(&link(), None);
        let lines: Vec<String> = text.lines().map(|line| words(line).join(" ")).collect();
        for line in [
            "rate 1mbit 16mbit",
            "loss - 1% nth:every=5",
            "dropped: loss 1 1",
            "late 4 4",
        ] {
            assert!(lines.iter().any(|known| known == line), "{line} in {text}");
        }
        let down = detail(&link(), Some(Direction::Down));
        assert!(down.contains("16mbit"), "{down}");
        assert!(!down.contains(" 1mbit"), "{down}");
    }

    #[test]
    fn directions_stand_behind_names() {
        assert_eq!(
            link_and_direction("a.b.down"),
            ("a.b", Some(Direction::Down))
        );
        assert_eq!(link_and_direction("up"), ("up", None));
        assert_eq!(link_and_direction("*.up"), ("*", Some(Direction::Up)));
    }
}
