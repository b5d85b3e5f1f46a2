//! The table of all there is: from it come dispatch, the methods that a path
//! takes, and the OpenAPI document.

use longwire_engine::Nanos;
use serde_json::{Value, json};

use super::metrics;
use super::openapi;
use super::query::{Kind, Parameter};
use super::refusal::Refusal;
use super::registry::Models;
use super::reply::Reply;
use super::responses::{Changes, Links, Overview, Paths, Ports, Rules, Stats};
use super::responses::{ReplayProgress, ScenarioEvent, Skipped, Upcoming};
use super::route::{Answer, Call, Method, Route, Work};
use super::state::ApiState;
use super::stream;
use super::view::table::SORTS;
use super::view::{self, answers};
use longwire_fabric::{Done, LinkView};
use longwire_topology::glob::is_pattern;

/// The most links, rules or changes of one answer, and their number by default.
const PAGE_MAX: u64 = 10_000;
const PAGE: u64 = 100;

/// Fields of a report that the API has elsewhere, or not at all.
const NOT_SERVED: [&str; 3] = ["links", "inputs", "wake_margin_us"];

/// The links of a page that are read at a time.
const PART: usize = 200;

/// The shortest period of a stream.
const EVERY_MIN: Nanos = Nanos::from_millis(50);
const EVERY_MAX: Nanos = Nanos::from_secs(3600);

const MATCH: Parameter = Parameter {
    name: "match",
    kind: Kind::Text,
    help: "names of links, with * for anything and ? for a character; all by default",
};
const LIMIT: Parameter = Parameter::new(
    "limit",
    Kind::Number(1, PAGE_MAX),
    "the most in one answer; 100 by default",
);
const LINKS: Parameter = Parameter {
    name: "links",
    kind: Kind::Choice(&["sum", "each"]),
    help: "all links together, or each by its name",
};
const CHECK: Parameter = Parameter {
    name: "check",
    kind: Kind::Flag,
    help: "only say whether it could be done, and do nothing",
};
const AT: Parameter = Parameter {
    name: "at",
    kind: Kind::Text,
    help: "when, since the start of the run, as in 30s; now by default",
};
const IN: Parameter = Parameter {
    name: "in",
    kind: Kind::Text,
    help: "when, from now on, as in 2s",
};

/// A route that reads, without body.
const fn get(
    path: &'static str,
    help: &'static str,
    parameters: &'static [Parameter],
    answer: Answer,
    work: Work,
) -> Route {
    Route {
        method: Method::Get,
        path,
        help,
        parameters,
        body: None,
        answer,
        work,
    }
}

/// All routes.
pub static ROUTES: [Route; 24] = [
    get(
        "/v1",
        "What runs",
        &[],
        Answer::Json("Overview"),
        Work::Slow(overview),
    ),
    get(
        "/v1/openapi.json",
        "This document",
        &[],
        Answer::Document,
        Work::Quick(|_, _| Reply::json(&openapi::document(&ROUTES))),
    ),
    get(
        "/v1/links",
        "Links in the order of their names, a page at a time",
        &[
            MATCH,
            Parameter::new(
                "after",
                Kind::Text,
                "begin behind this name: what the page before said as next",
            ),
            LIMIT,
        ],
        Answer::Json("Links"),
        Work::Slow(links),
    ),
    get(
        "/v1/links/{name}",
        "A link",
        &[],
        Answer::Json("Link"),
        Work::Quick(link),
    ),
    Route {
        method: Method::Patch,
        path: "/v1/links/{name}",
        help: "Set options of all links whose names fit, at one time or not at all",
        parameters: &[AT, IN, CHECK],
        body: Some("Options"),
        answer: Answer::Json("Changed"),
        work: Work::Change(set, "/set/{name}"),
    },
    Route {
        method: Method::Post,
        path: "/v1/links",
        help: "Add a link, or many, as [[link]] of a topology does",
        parameters: &[AT, IN, CHECK],
        body: Some("NewLink"),
        answer: Answer::Json("Changed"),
        work: Work::Change(add, "/add/link/0"),
    },
    Route {
        method: Method::Delete,
        path: "/v1/links/{name}",
        help: "Remove all links whose names fit",
        parameters: &[AT, IN, CHECK],
        body: None,
        answer: Answer::Json("Changed"),
        work: Work::Change(remove, "/remove/0"),
    },
    get(
        "/v1/paths",
        "Paths: links that are crossed one after the other",
        &[],
        Answer::Json("Paths"),
        Work::Slow(|state, _| {
            let paths = state.controller.paths();
            Reply::json(&Paths { paths })
        }),
    ),
    get(
        "/v1/ports",
        "Ports and what they carried",
        &[],
        Answer::Json("Ports"),
        Work::Slow(|state, _| {
            let ports = state.controller.report().ports;
            Reply::json(&Ports { ports })
        }),
    ),
    get(
        "/v1/rules",
        "Rules by their order: which frames cross what",
        &[
            Parameter::new(
                "skip",
                Kind::Number(0, u32::MAX as u64),
                "leave out so many",
            ),
            LIMIT,
        ],
        Answer::Json("Rules"),
        Work::Slow(rules),
    ),
    get(
        "/v1/report",
        "The report so far, links apart",
        &[],
        Answer::Json("Report"),
        Work::Slow(|state, _| {
            let mut report = json!(state.controller.report());
            // Links have separate routes.
            if let Some(fields) = report.as_object_mut() {
                fields.retain(|field, _| !NOT_SERVED.contains(&field.as_str()));
            }
            Reply::json(&report)
        }),
    ),
    get(
        "/v1/changes",
        "Changes that were made, the oldest first",
        &[
            Parameter::new(
                "skip",
                Kind::Number(0, u32::MAX as u64),
                "leave out so many of the newest",
            ),
            Parameter::new(
                "limit",
                Kind::Number(1, PAGE_MAX),
                "only so many of the newest; all by default",
            ),
        ],
        Answer::Json("Changes"),
        Work::Slow(changes),
    ),
    Route {
        method: Method::Post,
        path: "/v1/changes",
        help: "Make a change: all of it at one time, or nothing",
        parameters: &[CHECK],
        body: Some("Change"),
        answer: Answer::Json("Changed"),
        work: Work::Change(|call| call.body.clone(), ""),
    },
    get(
        "/v1/scenario",
        "Events of the scenario that are still to come",
        &[LIMIT],
        Answer::Json("Upcoming"),
        Work::Slow(scenario),
    ),
    Route {
        method: Method::Post,
        path: "/v1/scenario/skip",
        help: "Move the scenario forward to its next event",
        parameters: &[],
        body: None,
        answer: Answer::Json("Skipped"),
        work: Work::Quick(skip),
    },
    get(
        "/v1/stats",
        "What was counted of links, summed up",
        &[MATCH],
        Answer::Json("Stats"),
        Work::Slow(sums),
    ),
    get(
        "/v1/stats/stream",
        "What is counted, again and again: an event each time",
        &[
            MATCH,
            Parameter::new(
                "every",
                Kind::Time(EVERY_MIN, EVERY_MAX),
                "how often; 1s by default",
            ),
            LINKS,
        ],
        Answer::Events("StatsEvent"),
        Work::Stream(stream::counters),
    ),
    get(
        "/v1/models",
        "The models and presets that options take",
        &[],
        Answer::Json("Models"),
        Work::Slow(|_, _| Reply::json(&Models::all())),
    ),
    get(
        "/v1/table",
        "Rates of directions, read once a second while they are asked for",
        &[
            MATCH,
            Parameter::new("sort", Kind::Choice(&SORTS), "the order; name by default"),
            Parameter::new("order", Kind::Choice(&["asc", "desc"]), "asc by default"),
            Parameter::new(
                "offset",
                Kind::Number(0, u32::MAX as u64),
                "rows to leave out",
            ),
            Parameter::new(
                "limit",
                Kind::Number(1, 500),
                "the most rows; 50 by default",
            ),
        ],
        Answer::Json("TablePage"),
        Work::Slow(answers::table),
    ),
    get(
        "/v1/history/stream",
        "The samples of directions since the event before: ten a second",
        &[
            Parameter::new(
                "directions",
                Kind::Text,
                "names as in link.up,link.down, at most 8",
            ),
            Parameter::new(
                "every",
                Kind::Time(EVERY_MIN, EVERY_MAX),
                "how often; 1s by default",
            ),
        ],
        Answer::Events("HistoryEvent"),
        Work::Stream(view::stream::open),
    ),
    get(
        "/v1/history/{name}",
        "The samples of a direction in the last ten minutes at most",
        &[Parameter::new(
            "since",
            Kind::Time(Nanos::ZERO, Nanos::MAX),
            "only samples after this time of the run, as in 12.5s",
        )],
        Answer::Json("Columns"),
        Work::Slow(answers::history),
    ),
    get(
        "/v1/flows/{name}",
        "The largest flows of a direction, counted while they are asked for",
        &[],
        Answer::Json("Flows"),
        Work::Slow(answers::flows),
    ),
    get(
        "/v1/fidelity",
        "How true the run is to its configuration so far",
        &[],
        Answer::Json("Fidelity"),
        Work::Slow(answers::fidelity),
    ),
    get(
        "/metrics",
        "Metrics for Prometheus: OpenMetrics where Accept prefers it, else the text format 0.0.4",
        &[MATCH, LINKS],
        Answer::Metrics,
        Work::Slow(metrics::answer),
    ),
];

fn overview(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let controller = &state.controller;
    Reply::json(&Overview {
        program: "longwire".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        elapsed_s: controller.elapsed().as_secs_f64(),
        seed: controller.seed(),
        links: controller.link_count(),
        paths: controller.paths().len(),
        may_change: call.may_change && controller.takes_changes(),
        view: state.view.keeps_all(),
        replay: (!controller.takes_changes()).then(|| ReplayProgress::of(&controller.report())),
    })
}

fn links(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let limit = call.query.number("limit").unwrap_or(PAGE) as usize;
    let after = call.query.text("after");
    let pattern = call.query.text("match").unwrap_or("*");
    let mut links: Vec<LinkView> = Vec::new();
    let mut more = true;
    // A part at a time, so that no change of the network waits for a large page. One
    // link more shows that there is another page.
    while more && links.len() <= limit {
        let behind = links.last().map(|link| link.name.as_str()).or(after);
        let wanted = (limit + 1 - links.len()).min(PART);
        let part = state.controller.links(pattern, behind, wanted);
        more = part.len() == wanted;
        links.extend(part);
    }
    let more = links.len() > limit;
    links.truncate(limit);
    let next = links.last().filter(|_| more);
    Reply::json(&Links {
        next: next.map(|link| link.name.clone()),
        links,
    })
}

fn link(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    match state.controller.link(&call.name) {
        Some(link) => Reply::json(&link),
        None => Err(no_link(&call.name)),
    }
}

fn no_link(name: &str) -> Refusal {
    let error = if is_pattern(name) {
        format!("no link is called '{name}'; `longwire ctl get '{name}'` lists those that fit")
    } else {
        format!("no link is called '{name}'; `longwire ctl get` lists all")
    };
    Refusal::missing(error)
}

fn rules(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let limit = call.query.number("limit").unwrap_or(PAGE) as usize;
    let skip = call.query.number("skip").unwrap_or(0) as usize;
    let mut rules = state.controller.rules(skip, limit + 1);
    let more = rules.len() > limit;
    rules.truncate(limit);
    let next = more.then_some(skip + limit);
    Reply::json(&Rules { rules, next })
}

fn changes(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let limit = call.query.number("limit").unwrap_or(PAGE_MAX) as usize;
    let skip = call.query.number("skip").unwrap_or(0) as usize;
    let remembered = state.controller.changes();
    let mut changes: Vec<Done> = remembered.made.into();
    changes.truncate(changes.len().saturating_sub(skip));
    let older = changes.len().saturating_sub(limit);
    Reply::json(&Changes {
        changes: changes.split_off(older),
        forgotten: remembered.forgotten,
        next: (older > 0).then_some(skip + limit),
    })
}

fn scenario(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let limit = call.query.number("limit").unwrap_or(PAGE) as usize;
    let upcoming = state.controller.upcoming(limit).into_iter();
    let events = upcoming.map(|event| ScenarioEvent {
        at_ns: event.at.as_nanos(),
        change: event.change,
    });
    Reply::json(&Upcoming {
        elapsed_s: state.controller.elapsed().as_secs_f64(),
        skipped_s: state.controller.scenario_ahead().as_secs_f64(),
        events: events.collect(),
    })
}

fn skip(state: &ApiState, _call: &Call) -> Result<Reply, Refusal> {
    let at = state.controller.skip_to_next_event();
    Reply::json(&Skipped {
        at_ns: at.map(Nanos::as_nanos),
    })
}

fn sums(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let elapsed = state.controller.elapsed();
    let pattern = call.query.text("match").unwrap_or("*");
    let (links, totals) = state.controller.totals(pattern);
    Reply::json(&Stats {
        elapsed_s: elapsed.as_secs_f64(),
        links,
        totals: totals.into(),
    })
}

/// Returns the change of a `PATCH` of links.
fn set(call: &Call) -> Value {
    timed(call, json!({ "set": { call.name.as_str(): call.body } }))
}

/// Returns the change of a `POST` of a link.
fn add(call: &Call) -> Value {
    timed(call, json!({ "add": { "link": [call.body] } }))
}

/// Returns the change of a `DELETE` of links.
fn remove(call: &Call) -> Value {
    timed(call, json!({ "remove": [call.name] }))
}

/// A change at the time that the parameters say.
fn timed(call: &Call, mut change: Value) -> Value {
    for name in ["at", "in"] {
        if let Some(time) = call.query.text(name) {
            change[name] = json!(time);
        }
    }
    change
}
