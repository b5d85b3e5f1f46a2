//! The route table, from which dispatch, permitted methods and the OpenAPI document derive.

use longwire_engine::Nanos;
use longwire_network::{ChangeRecord, LinkView};
use longwire_topology::glob::is_pattern;
use serde_json::{Value, json};

use super::registry::Models;
use super::reply::{Refusal, Reply};
use super::responses::{
    Changes, Links, Overview, Paths, Ports, ReplayProgress, Rules, ScenarioEvent, Skipped, Stats,
    Upcoming,
};
use super::route::Answer::{self, Events, Json};
use super::route::Method::{self, Delete, Get, Patch, Post};
use super::route::Work::{self, Change, Quick, Slow, Stream};
use super::route::{Call, Kind, Parameter, Route};
use super::state::ApiState;
use super::stream::counters;
use super::view::answers::{self, open_history};
use super::view::table::SORTS;
use super::{metrics, openapi};

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

const MATCH: Parameter = Parameter::new("match", Kind::Text)
    .help("names of links, with wildcards * and ?; all by default");
const LIMIT: Parameter = Parameter::new("limit", Kind::Number(1, PAGE_MAX))
    .help("maximum number of items; 100 by default");
const SKIP: Parameter = Parameter::new("skip", Kind::Number(0, u32::MAX as u64));
const LINKS: Parameter =
    Parameter::new("links", Kind::Choice(&["sum", "each"])).help("sums, or individual links");
const CHECK: Parameter =
    Parameter::new("check", Kind::Flag).help("validate the change without applying it");
const AT: Parameter = Parameter::new("at", Kind::Text)
    .help("time since the start of the run, such as 30s; now by default");
const IN: Parameter = Parameter::new("in", Kind::Text).help("time from now, such as 2s");
const EVERY: Parameter =
    Parameter::new("every", Kind::Time(EVERY_MIN, EVERY_MAX)).help("period; 1s by default");

/// Creates a GET route.
const fn get(path: &'static str, answer: Answer, work: Work) -> Route {
    Route {
        method: Get,
        path,
        help: "",
        parameters: &[],
        body: None,
        answer,
        work,
    }
}

/// Creates a route that changes the network.
const fn change(method: Method, path: &'static str, work: Work) -> Route {
    Route {
        method,
        ..get(path, Json("Changed"), work)
    }
}

impl Route {
    const fn help(self, help: &'static str) -> Route {
        Route { help, ..self }
    }

    const fn takes(self, parameters: &'static [Parameter]) -> Route {
        Route { parameters, ..self }
    }

    const fn body(self, schema: &'static str) -> Route {
        Route {
            body: Some(schema),
            ..self
        }
    }
}

/// All routes.
pub static ROUTES: [Route; 24] = [
    get("/v1", Json("Overview"), Slow(overview)).help("Overview of the run"),
    get("/v1/openapi.json", Answer::Document, Quick(document)).help("This document"),
    get("/v1/links", Json("Links"), Slow(links))
        .help("A page of links, ordered by name")
        .takes(&[
            MATCH,
            Parameter::new("after", Kind::Text)
                .help("name after which the page begins; pass `next` of the previous page"),
            LIMIT,
        ]),
    get("/v1/links/{name}", Json("Link"), Quick(link)).help("A link"),
    change(Patch, "/v1/links/{name}", Change(set, "/set/{name}"))
        .help("Set options of all matching links, atomically")
        .takes(&[AT, IN, CHECK])
        .body("Options"),
    change(Post, "/v1/links", Change(add, "/add/link/0"))
        .help("Add links, as [[link]] in a topology")
        .takes(&[CHECK])
        .body("NewLink"),
    change(Delete, "/v1/links/{name}", Change(remove, "/remove/0"))
        .help("Remove all matching links")
        .takes(&[CHECK]),
    get("/v1/paths", Json("Paths"), Slow(paths)).help("Paths: sequences of links"),
    get("/v1/ports", Json("Ports"), Slow(ports)).help("Ports with their counters"),
    get("/v1/rules", Json("Rules"), Slow(rules))
        .help("Classifier rules in order of evaluation")
        .takes(&[SKIP.help("number of rules to skip"), LIMIT]),
    get("/v1/report", Json("Report"), Slow(report)).help("Report so far, without links"),
    get("/v1/changes", Json("Changes"), Slow(changes))
        .help("Changes, oldest first")
        .takes(&[
            SKIP.help("number of newest changes to skip"),
            LIMIT.help("maximum changes in the response; all by default"),
        ]),
    change(Post, "/v1/changes", Change(|call| call.body.clone(), ""))
        .help("Make a change, atomically")
        .takes(&[CHECK])
        .body("Change"),
    get("/v1/scenario", Json("Upcoming"), Slow(scenario))
        .help("Upcoming events of the scenario")
        .takes(&[LIMIT]),
    Route {
        method: Post,
        ..get("/v1/scenario/skip", Json("Skipped"), Quick(skip))
            .help("Skip to the next event of the scenario")
    },
    get("/v1/stats", Json("Stats"), Slow(sums))
        .help("Counters summed over links")
        .takes(&[MATCH]),
    get("/v1/stats/stream", Events("StatsEvent"), Stream(counters))
        .help("Counters, as an event stream")
        .takes(&[MATCH, EVERY, LINKS]),
    get("/v1/models", Json("Models"), Slow(models)).help("Models and presets for link options"),
    get("/v1/table", Json("TablePage"), Slow(answers::table))
        .help("Rates of directions, updated once per second while clients read them")
        .takes(&[
            MATCH,
            Parameter::new("sort", Kind::Choice(&SORTS)).help("sort key; name by default"),
            Parameter::new("order", Kind::Choice(&["asc", "desc"])).help("asc by default"),
            Parameter::new("offset", Kind::Number(0, u32::MAX as u64))
                .help("number of rows to skip"),
            Parameter::new("limit", Kind::Number(1, 500)).help("maximum rows; 50 by default"),
        ]),
    get(
        "/v1/history/stream",
        Events("HistoryEvent"),
        Stream(open_history),
    )
    .help("Samples of directions, 10 per second, as an event stream")
    .takes(&[
        Parameter::new("directions", Kind::Text).help("at most 8 names, such as link.up,link.down"),
        EVERY,
    ]),
    get(
        "/v1/history/{name}",
        Json("Columns"),
        Slow(answers::history),
    )
    .help("Samples of a direction over the last ten minutes")
    .takes(
        &[Parameter::new("since", Kind::Time(Nanos::ZERO, Nanos::MAX))
            .help("return samples after this time of the run, such as 12.5s")],
    ),
    get("/v1/flows/{name}", Json("Flows"), Slow(answers::flows))
        .help("Largest flows of a direction; counted only while clients read them"),
    get("/v1/fidelity", Json("Fidelity"), Slow(answers::fidelity))
        .help("Fidelity of the run so far"),
    get("/metrics", Answer::Metrics, Slow(metrics::answer))
        .help(
            "Prometheus metrics, in OpenMetrics format if Accept prefers it, else in text format \
             0.0.4",
        )
        .takes(&[MATCH, LINKS]),
];

fn document(_: &ApiState, _: &Call) -> Result<Reply, Refusal> {
    Reply::json(&openapi::document(&ROUTES))
}

fn models(_: &ApiState, _: &Call) -> Result<Reply, Refusal> {
    Reply::json(&Models::all())
}

fn paths(state: &ApiState, _: &Call) -> Result<Reply, Refusal> {
    let paths = state.controller.paths();
    Reply::json(&Paths { paths })
}

fn ports(state: &ApiState, _: &Call) -> Result<Reply, Refusal> {
    let ports = state.controller.report().ports;
    Reply::json(&Ports { ports })
}

/// Returns the report without the fields in [`NOT_SERVED`].
fn report(state: &ApiState, _: &Call) -> Result<Reply, Refusal> {
    let mut report = json!(state.controller.report());
    if let Some(fields) = report.as_object_mut() {
        fields.retain(|field, _| !NOT_SERVED.contains(&field.as_str()));
    }
    Reply::json(&report)
}

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
        view: state.view.keeps_all,
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
    let mut change = json!({ "set": { call.name.as_str(): call.body } });
    for name in ["at", "in"] {
        if let Some(time) = call.query.text(name) {
            change[name] = json!(time);
        }
    }
    change
}

/// Returns the change for a `POST` of a link.
fn add(call: &Call) -> Value {
    json!({ "add": { "link": [call.body] } })
}

/// Returns the change for a `DELETE` of links.
fn remove(call: &Call) -> Value {
    json!({ "remove": [call.name] })
}
