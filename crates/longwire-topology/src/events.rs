//! `[[at]]`: the scenario in a topology or in a separate file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use longwire_engine::{Nanos, Part};

use super::builder::{Builder, split_direction};
use super::fields::{AT, Section};
use super::plan::Direction;
use super::problem::{Diagnostics, suggestion};
use super::ramp::Ramp;
use super::timeline::{Action, Event, State, Timeline};
use super::tree::{self, Placed};
use super::value::Table;
use super::{NamedText, glob, toml_table, workload};

/// Default number of steps in a ramp.
const STEPS: u64 = 100;

/// Reads all events. Requires all links and paths to have been read.
pub(super) fn read(file: &Table<'_>, builder: &mut Builder) -> Timeline {
    let mut events: Vec<(Event, Range<usize>)> = Vec::new();
    let items = tree::tables(file, "at");
    if items.iter().any(|item| item.value.contains_key("move")) {
        let rules = builder.rules.iter().map(|(_, rule)| rule.target.class);
        builder.matched = Some(rules.collect());
    }
    for item in items {
        let Some(event) = event(&item, builder) else {
            continue;
        };
        if let Some((before, _)) = events.last()
            && event.time < before.time
        {
            let span = tree::text(item.value, "time").map_or(item.span.clone(), |time| time.span);
            let (time, before) = (event.time, before.time);
            let reason = format!("{time} is before the previous event, at {before}");
            let remedy = "sort the events by time";
            builder.refuse(span, "at.time", reason, remedy);
        }
        let every = tree::text(item.value, "every").map(|every| every.span);
        events.push((event, every.unwrap_or(item.span)));
    }
    workload::check(&events, builder);
    Timeline {
        events: events.into_iter().map(|(event, _)| event).collect(),
    }
}

fn event(item: &Placed<&Table<'_>>, builder: &mut Builder) -> Option<Event> {
    let table = item.value;
    if !table.contains_key("time") {
        let (reason, remedy) = ("the event has no time", "write time = \"30s\"");
        builder.refuse(item.span.clone(), "at.time", reason, remedy);
        return None;
    }
    let time = tree::unit(table, "time", "at", &mut builder.diagnostics);
    let every = tree::unit::<Nanos>(table, "every", "at", &mut builder.diagnostics);
    let times = tree::whole(table, "times");
    workload::check_every(item, every, times, builder);
    let actions = actions(table, "at", builder);
    let ramps = ramps(table, every, builder);
    if actions.is_empty() && ramps.is_empty() && builder.diagnostics.has_no_errors() {
        let remedy = "write set, on, off, pause, move or ramp";
        builder.refuse(item.span.clone(), "at", "the event has no action", remedy);
    }
    Some(Event {
        time: time?,
        actions,
        ramps,
        every,
        times: times.or(every.is_none().then_some(1)),
    })
}

/// Reads a table's immediate actions. `at` is the prefix of its fields in messages.
pub(super) fn actions(table: &Table<'_>, at: &str, builder: &mut Builder) -> Vec<Action> {
    let mut actions = sets(table, at, builder);
    let states = [
        ("on", State::On),
        ("off", State::Off),
        ("pause", State::Paused),
    ];
    let given = states.iter().filter(|(key, _)| table.contains_key(key));
    // A pattern may match a million links, so compare links only if two states can conflict.
    let mut keys = (given.count() > 1).then(BTreeMap::new);
    for (field, state) in states {
        for text in tree::texts(table, field) {
            let at = tree::under(at, field);
            check_pattern(text.value, text.span.clone(), &at, builder);
            if let Some(keys) = &mut keys
                && let Some((name, other)) = other_state(text.value, field, keys, builder)
            {
                let reason = format!("'{name}' is also listed under '{other}'");
                builder.refuse(text.span, at, reason, "name each link under one state");
            }
            let pattern = text.value.to_owned();
            actions.push(Action::State { pattern, state });
        }
    }
    actions.extend(moves(table, at, builder));
    actions
}

/// State under which an event lists each link direction.
type StateKeys = BTreeMap<(usize, Direction), &'static str>;

/// Records the links that a pattern lists under a state. Returns the first link that is also listed
/// under another state.
fn other_state(
    pattern: &str,
    key: &'static str,
    keys: &mut StateKeys,
    builder: &Builder,
) -> Option<(String, &'static str)> {
    let (name, direction) = split_direction(pattern);
    let exact = builder.topology.link_named(name);
    let fits = builder.topology.links_fitting(name);
    let fits = fits.filter(|_| glob::is_pattern(name));
    let ways = [Direction::Up, Direction::Down].into_iter();
    let ways = ways.filter(|way| direction.is_none_or(|one| one == *way));
    let mut named = exact.into_iter().chain(fits);
    named.find_map(|link| {
        let mut others = ways.clone().filter_map(|way| {
            let known = *keys.entry((link, way)).or_insert(key);
            (known != key).then_some(known)
        });
        let name = &builder.topology.links[link].name;
        Some((name.to_string(), others.next()?))
    })
}

/// Reports a pattern that matches no link, or whose suffix `.down` selects a missing direction.
pub(super) fn check_pattern(text: &str, span: Range<usize>, at: &str, builder: &mut Builder) {
    let (name, direction) = split_direction(text);
    let fits = if glob::is_pattern(name) {
        builder.topology.links_fitting(name).next()
    } else {
        builder.topology.link_named(name)
    };
    match fits {
        None if glob::is_pattern(name) => {
            let reason = format!("no link matches '{name}'");
            let remedy = "* matches any characters, ? matches one";
            builder.refuse(span, at, reason, remedy);
        }
        None => builder.no_link(name, span, at),
        Some(link)
            if direction == Some(Direction::Down)
                && builder.topology.links[link].down.is_none() =>
        {
            let reason = if builder.topology.links[link].is_one_way {
                format!("'{name}' has direction up only")
            } else {
                format!("'{name}' is shared and has no separate directions")
            };
            builder.refuse(span, at, reason, "remove .down");
        }
        Some(_) => {}
    }
}

fn sets(table: &Table<'_>, at: &str, builder: &mut Builder) -> Vec<Action> {
    let mut actions = Vec::new();
    let Some(sets) = tree::table(table, "set") else {
        return actions;
    };
    for (pattern, value) in tree::entries(sets) {
        let at = tree::under(at, &format!("set.{}", pattern.value));
        check_pattern(pattern.value, pattern.span.clone(), &at, builder);
        let Some(table) = value.as_table() else {
            continue;
        };
        let options = builder.store.one_way(table, &at, &mut builder.diagnostics);
        if table.is_empty() {
            let remedy = "for example: { rate = \"5mbit\" }";
            builder.refuse(pattern.span, &at, "no options to set", remedy);
        }
        actions.push(Action::Set {
            pattern: pattern.value.to_owned(),
            options: Box::new(options),
            resets: tree::resets(table).iter().map(|part| part.name).collect(),
        });
    }
    actions
}

fn moves(table: &Table<'_>, at: &str, builder: &mut Builder) -> Vec<Action> {
    let outage = tree::unit(table, "outage", at, &mut builder.diagnostics);
    let Some(moves) = tree::table(table, "move") else {
        if let Some(outage) = table.get("outage") {
            let reason = "outage is given without move";
            let remedy = "write move = { … }, or remove outage";
            let at = tree::under(at, "outage");
            builder.refuse(outage.span.clone(), at, reason, remedy);
        }
        return Vec::new();
    };
    let mut actions = Vec::new();
    for (class, value) in tree::entries(moves) {
        let Some(target) = tree::placed(value) else {
            continue;
        };
        let to = target.value;
        for name in [&class, &target] {
            check_class(name, &tree::under(at, "move"), builder);
        }
        check_matched(&class, to, &tree::under(at, "move"), builder);
        // Links used only after a move count as used.
        for hop in [class.value, to] {
            if let Some(link) = builder.topology.link_named(hop) {
                builder.used[link] = true;
            }
        }
        actions.push(Action::Move {
            class: class.value.to_owned(),
            to: to.to_owned(),
            outage: outage.unwrap_or(Nanos::ZERO),
        });
    }
    actions
}

fn check_class(name: &Placed<&str>, at: &str, builder: &mut Builder) {
    if builder.topology.named(name.value).is_some() {
        return;
    }
    let links = builder.topology.link_names().take(1000);
    let paths = builder.topology.paths.iter().take(1000);
    let paths = paths.map(|path| &*path.name);
    let remedy = suggestion(name.value, paths.chain(links));
    let reason = format!("no link or path named '{}'", name.value);
    builder.refuse(name.span.clone(), at, reason, remedy);
}

/// Reports a move from a link or path without a matcher, which has no frames.
fn check_matched(class: &Placed<&str>, to: &str, at: &str, builder: &mut Builder) {
    let (topology, matched) = (&builder.topology, &builder.matched);
    let lacks = |class| matched.as_ref().is_some_and(|of| !of.contains(&class));
    if topology.named(to).is_some() && topology.named(class.value).is_some_and(lacks) {
        let reason = format!("'{}' has no matcher, so no frames to move", class.value);
        let remedy = "give it match = \"…\", or move a link or path with a matcher";
        builder.refuse(class.span.clone(), at, reason, remedy);
    }
}

fn ramps(table: &Table<'_>, every: Option<Nanos>, builder: &mut Builder) -> Vec<Arc<Ramp>> {
    let mut ramps = Vec::new();
    let Some(written) = tree::table(table, "ramp") else {
        return ramps;
    };
    for (pattern, value) in tree::entries(written) {
        let at = format!("at.ramp.{}", pattern.value);
        check_pattern(pattern.value, pattern.span.clone(), &at, builder);
        let Some(table) = value.as_table() else {
            continue;
        };
        let time = tree::unit::<Nanos>(table, "time", &at, &mut builder.diagnostics);
        let [option, from, to] = ["option", "from", "to"].map(|name| tree::text(table, name));
        let (Some(option), Some(from), Some(to), Some(time)) = (option, from, to, time) else {
            if builder.diagnostics.has_no_errors() {
                let reason = "a ramp needs option, from, to and time";
                let remedy = "write all of them";
                builder.refuse(pattern.span, &at, reason, remedy);
            }
            continue;
        };
        let Some(option) = Part::named(option.value) else {
            continue;
        };
        if let Some(every) = every.filter(|every| *every < time) {
            let reason = format!("the ramp takes {time}, but repeats every {every}");
            let remedy = "shorten it, or increase every";
            builder.refuse(pattern.span.clone(), &at, reason, remedy);
        }
        let steps = tree::whole(table, "steps").unwrap_or(STEPS);
        let span = from.span.clone();
        let ends = (from.value, to.value);
        match Ramp::new(pattern.value, option.name, ends, time, steps) {
            Ok(ramp) => ramps.push(Arc::new(ramp)),
            Err(reason) => {
                let remedy = "write from and to as plain values, such as 10mbit, 20ms or 1%";
                builder.refuse(span, &at, reason, remedy);
            }
        }
    }
    ramps
}

/// The top level of a scenario file.
static SCENARIO: Section = Section {
    help: "Changes of a topology during the run",
    options: false,
    fields: &[AT],
};

/// Returns whether a file has only the keys of a scenario, and at least one.
pub(super) fn is_scenario(file: &Table<'_>) -> bool {
    !file.is_empty() && file.keys().all(|name| SCENARIO.field(name).is_some())
}

/// Reads a scenario. Requires all links and paths to have been read. Problems refer to the
/// scenario's file.
pub(super) fn read_scenario<'a>(
    (name, text): &'a NamedText,
    builder: &mut Builder<'a>,
) -> Timeline {
    let diagnostics = Diagnostics::new(name, text);
    let of_topology = std::mem::replace(&mut builder.diagnostics, diagnostics);
    let mut timeline = Timeline::default();
    if let Some(file) = toml_table(text, &mut builder.diagnostics) {
        tree::check(&SCENARIO, &file, "", &mut builder.diagnostics);
        timeline = read(&file, builder);
    }
    let of_scenario = std::mem::replace(&mut builder.diagnostics, of_topology);
    builder.diagnostics.merge(of_scenario);
    timeline
}
