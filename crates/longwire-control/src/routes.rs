//! The route table, from which dispatch, permitted methods and the OpenAPI document derive.

use longwire_engine::Nanos;
use longwire_network::{ChangeRecord, LinkView};
use longwire_topology::glob::is_pattern;
use serde_json::{Value, json};

use super::registry::Models;
use super::reply::Reply;
use super::responses::{
    Changes, Links, Overview, Paths, Ports, ReplayProgress, Rules, ScenarioEvent, Skipped, Stats,
    Upcoming,
};
use super::route::{Answer, Call, Method, Route, Work};
use super::state::ApiState;
use super::view::answers;
use super::view::table::SORTS;
use super::{metrics, openapi, stream};
use crate::reply::Refusal;
use crate::route::{Kind, Parameter};

/// Maximum and default number of links, rules or changes in a response.
const PAGE_MAX: u64 = 10_000;
const PAGE: u64 = 100;

/// Report fields that other routes return, or that the API omits.
const NOT_SERVED: [&str; 3] = ["links", "inputs", "wake_margin_us"];

/// Number of links read in one step.
const PART: usize = 200;

/// Bounds of a stream's period.
const EVERY_MIN: Nanos = Nanos::from_millis(50);
const EVERY_MAX: Nanos = Nanos::from_secs(3600);

const MATCH: Parameter = Parameter {
    name: "match",
    kind: Kind::Text,
    help: "names of links, with wildcards * and ?; all by default",
};
const LIMIT: Parameter = Parameter::new(
    "limit",
    Kind::Number(1, PAGE_MAX),
    "maximum number of items; 100 by default",
);
const LINKS: Parameter = Parameter {
    name: "links",
    kind: Kind::Choice(&["sum", "each"]),
    help: "sums, or individual links",
};
const CHECK: Parameter = Parameter {
    name: "check",
    kind: Kind::Flag,
    help: "validate the change without applying it",
};
const AT: Parameter = Parameter {
    name: "at",
    kind: Kind::Text,
    help: "time since the start of the run, such as 30s; now by default",
};
const IN: Parameter = Parameter {
    name: "in",
    kind: Kind::Text,
    help: "time from now, such as 2s",
};

/// Creates a GET route.
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
        "Overview of the run",
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
        "A page of links, ordered by name",
        &[
            MATCH,
            Parameter::new(
                "after",
                Kind::Text,
                "name after which the page begins; pass `next` of the previous page",
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
        help: "Set options of all matching links, atomically",
        parameters: &[AT, IN, CHECK],
        body: Some("Options"),
        answer: Answer::Json("Changed"),
        work: Work::Change(set, "/set/{name}"),
    },
    Route {
        method: Method::Post,
        path: "/v1/links",
        help: "Add links, as [[link]] in a topology",
        parameters: &[AT, IN, CHECK],
        body: Some("NewLink"),
        answer: Answer::Json("Changed"),
        work: Work::Change(add, "/add/link/0"),
    },
    Route {
        method: Method::Delete,
        path: "/v1/links/{name}",
        help: "Remove all matching links",
        parameters: &[AT, IN, CHECK],
        body: None,
        answer: Answer::Json("Changed"),
        work: Work::Change(remove, "/remove/0"),
    },
    get(
        "/v1/paths",
        "Paths: sequences of links",
        &[],
        Answer::Json("Paths"),
        Work::Slow(|state, _| {
            let paths = state.controller.paths();
            Reply::json(&Paths { paths })
        }),
    ),
    get(
        "/v1/ports",
        "Ports with their counters",
        &[],
        Answer::Json("Ports"),
        Work::Slow(|state, _| {
            let ports = state.controller.report().ports;
            Reply::json(&Ports { ports })
        }),
    ),
    get(
        "/v1/rules",
        "Classifier rules in order of evaluation",
        &[
            Parameter::new(
                "skip",
                Kind::Number(0, u32::MAX as u64),
                "number of rules to skip",
            ),
            LIMIT,
        ],
        Answer::Json("Rules"),
        Work::Slow(rules),
    ),
    get(
        "/v1/report",
        "Report so far, without links",
        &[],
        Answer::Json("Report"),
        Work::Slow(|state, _| {
            let mut report = json!(state.controller.report());
            // Links are returned by separate routes.
            if let Some(fields) = report.as_object_mut() {
                fields.retain(|field, _| !NOT_SERVED.contains(&field.as_str()));
            }
            Reply::json(&report)
        }),
    ),
    get(
        "/v1/changes",
        "Changes, oldest first",
        &[
            Parameter::new(
                "skip",
                Kind::Number(0, u32::MAX as u64),
                "number of newest changes to skip",
            ),
            Parameter::new(
                "limit",
                Kind::Number(1, PAGE_MAX),
                "maximum changes in the response; all by default",
            ),
        ],
        Answer::Json("Changes"),
        Work::Slow(changes),
    ),
    Route {
        method: Method::Post,
        path: "/v1/changes",
        help: "Make a change, atomically",
        parameters: &[CHECK],
        body: Some("Change"),
        answer: Answer::Json("Changed"),
        work: Work::Change(|call| call.body.clone(), ""),
    },
    get(
        "/v1/scenario",
        "Upcoming events of the scenario",
        &[LIMIT],
        Answer::Json("Upcoming"),
        Work::Slow(scenario),
    ),
    Route {
        method: Method::Post,
        path: "/v1/scenario/skip",
        help: "Skip to the next event of the scenario",
        parameters: &[],
        body: None,
        answer: Answer::Json("Skipped"),
        work: Work::Quick(skip),
    },
    get(
        "/v1/stats",
        "Counters summed over links",
        &[MATCH],
        Answer::Json("Stats"),
        Work::Slow(sums),
    ),
    get(
        "/v1/stats/stream",
        "Counters, as an event stream",
        &[
            MATCH,
            Parameter::new(
                "every",
                Kind::Time(EVERY_MIN, EVERY_MAX),
                "period; 1s by default",
            ),
            LINKS,
        ],
        Answer::Events("StatsEvent"),
        Work::Stream(stream::counters),
    ),
    get(
        "/v1/models",
        "Models and presets for link options",
        &[],
        Answer::Json("Models"),
        Work::Slow(|_, _| Reply::json(&Models::all())),
    ),
    get(
        "/v1/table",
        "Rates of directions, updated once per second while clients read them",
        &[
            MATCH,
            Parameter::new("sort", Kind::Choice(&SORTS), "sort key; name by default"),
            Parameter::new("order", Kind::Choice(&["asc", "desc"]), "asc by default"),
            Parameter::new(
                "offset",
                Kind::Number(0, u32::MAX as u64),
                "number of rows to skip",
            ),
            Parameter::new("limit", Kind::Number(1, 500), "maximum rows; 50 by default"),
        ],
        Answer::Json("TablePage"),
        Work::Slow(answers::table),
    ),
    get(
        "/v1/history/stream",
        "Samples of directions, 10 per second, as an event stream",
        &[
            Parameter::new(
                "directions",
                Kind::Text,
                "at most 8 names, such as link.up,link.down",
            ),
            Parameter::new(
                "every",
                Kind::Time(EVERY_MIN, EVERY_MAX),
                "period; 1s by default",
            ),
        ],
        Answer::Events("HistoryEvent"),
        Work::Stream(answers::open_history),
    ),
    get(
        "/v1/history/{name}",
        "Samples of a direction over the last ten minutes",
        &[Parameter::new(
            "since",
            Kind::Time(Nanos::ZERO, Nanos::MAX),
            "return samples after this time of the run, such as 12.5s",
        )],
        Answer::Json("Columns"),
        Work::Slow(answers::history),
    ),
    get(
        "/v1/flows/{name}",
        "Largest flows of a direction; counted only while clients read them",
        &[],
        Answer::Json("Flows"),
        Work::Slow(answers::flows),
    ),
    get(
        "/v1/fidelity",
        "Fidelity of the run so far",
        &[],
        Answer::Json("Fidelity"),
        Work::Slow(answers::fidelity),
    ),
    get(
        "/metrics",
        "Prometheus metrics, in OpenMetrics format if Accept prefers it, else in text format 0.0.4",
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
    // Read in parts, so that network changes do not wait for a large page. One link more than
    // requested shows that there is another page.
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
        format!("no link named '{name}'; `longwire ctl get '{name}'` lists matching links")
    } else {
        format!("no link named '{name}'; `longwire ctl get` lists all")
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
    let mut changes: Vec<ChangeRecord> = remembered.made.into();
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

/// Returns the change for a `PATCH` of links.
fn set(call: &Call) -> Value {
    timed(call, json!({ "set": { call.name.as_str(): call.body } }))
}

/// Returns the change for a `POST` of a link.
fn add(call: &Call) -> Value {
    timed(call, json!({ "add": { "link": [call.body] } }))
}

/// Returns the change for a `DELETE` of links.
fn remove(call: &Call) -> Value {
    timed(call, json!({ "remove": [call.name] }))
}

/// Adds the requested time to a change.
fn timed(call: &Call, mut change: Value) -> Value {
    for name in ["at", "in"] {
        if let Some(time) = call.query.text(name) {
            change[name] = json!(time);
        }
    }
    change
}
