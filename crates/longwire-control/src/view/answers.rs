//! Responses of the live view, its sampler, and its stream of samples.

use std::sync::Arc;

use longwire_engine::Nanos;
use tokio::time::{MissedTickBehavior, interval};

use crate::reply::{Refusal, Reply};
use crate::route::Call;
use crate::server::ended;
use crate::state::ApiState;
use crate::stream::{EventSource, event};
use crate::view::history::{Columns, HistoryEvent};
use crate::view::table::Selection;
use crate::view::{PERIOD, lock};

/// Default number of rows.
const ROWS: u64 = 50;

/// Returns the samples of a direction.
///
/// # Errors
/// 404 for an unknown direction.
pub fn history(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let view = &state.view;
    let since = call.query.time("since").unwrap_or(Nanos::ZERO);
    let mut history = lock(&view.history);
    let samples = history.read(&call.name, &state.controller);
    let samples = samples.ok_or_else(|| no_direction(&call.name))?;
    view.wanted.notify_one();
    let columns = Columns::of(samples.iter().filter(|sample| sample.at > since));
    drop(history);
    Reply::json(&columns)
}

/// Returns rows of the table of directions.
///
/// # Errors
/// If serialisation fails.
pub fn table(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let view = &state.view;
    let number = |name: &str, otherwise| call.query.number(name).unwrap_or(otherwise) as usize;
    let selection = Selection {
        pattern: call.query.text("match").unwrap_or("*"),
        sort: call.query.text("sort").unwrap_or("name"),
        descending: call.query.text("order") == Some("desc"),
        offset: number("offset", 0),
        limit: number("limit", ROWS),
    };
    let page = lock(&view.table).page(&selection, &state.controller);
    view.wanted.notify_one();
    Reply::json(&page)
}

/// Returns the fidelity of the run so far.
///
/// # Errors
/// If serialisation fails.
pub fn fidelity(state: &ApiState, _call: &Call) -> Result<Reply, Refusal> {
    let view = &state.view;
    let judgement = view.judgement(&state.controller);
    Reply::json(&lock(&view.first).fidelity(&state.controller, judgement))
}

/// Returns the largest flows of a direction.
///
/// # Errors
/// 404 for an unknown direction; 409 for a replay.
pub fn flows(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    if !state.controller.takes_changes() {
        return Err(Refusal::conflict("the flows of a replay are not counted"));
    }
    let view = &state.view;
    let flows = lock(&view.flows).read(&call.name, &state.controller);
    view.wanted.notify_one();
    Reply::json(&flows.ok_or_else(|| no_direction(&call.name))?)
}

/// 404: unknown direction.
pub fn no_direction(name: &str) -> Refusal {
    Refusal::missing(format!(
        "no direction named '{name}'; directions are NAME.up and NAME.down, or NAME of a shared \
         link; `longwire ctl get` lists all links"
    ))
}

/// Maximum number of directions in a stream.
const DIRECTIONS_MAX: usize = 8;

/// Returns the source of new samples of the requested directions.
///
/// # Errors
/// 404 for an unknown direction.
pub fn open_history(state: &Arc<ApiState>, call: &Call) -> Result<EventSource, Refusal> {
    let view = &state.view;
    let directions = call.query.text("directions").unwrap_or("");
    let names: Vec<&str> = directions.split(',').collect();
    if names.len() > DIRECTIONS_MAX || names.contains(&"") {
        return Err(Refusal::bad(format!(
            "?directions= takes 1 to {DIRECTIONS_MAX} directions separated by commas, such as \
             link.up,link.down"
        )));
    }
    for name in &names {
        if lock(&view.history).read(name, &state.controller).is_none() {
            return Err(no_direction(name));
        }
    }
    view.wanted.notify_one();
    let state = Arc::clone(state);
    // Names of directions, each with the end time of the last sample sent.
    let directions = names.iter().map(|name| ((*name).to_owned(), None));
    let mut directions: Vec<(String, Option<Nanos>)> = directions.collect();
    Ok(Box::new(move || {
        let mut history = lock(&state.view.history);
        let mut sent = HistoryEvent::default();
        for (name, last) in &mut directions {
            let Some(samples) = history.read(name, &state.controller) else {
                let error = serde_json::json!({ "error": format!("{name} was removed") });
                return Err(event("error", &error));
            };
            let new = samples
                .iter()
                .filter(|sample| last.is_none_or(|last| sample.at > last));
            let columns = Columns::of(new);
            *last = samples.back().map(|sample| sample.at).or(*last);
            sent.0.insert(name.clone(), columns);
        }
        Ok(event("", &sent))
    }))
}

/// Samples the run while clients need samples, until the run ends.
pub async fn sample(state: Arc<ApiState>) {
    let view = &state.view;
    let mut stopped = state.stopped.clone();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for tick in 0u64.. {
        let next = async {
            if view.is_idle() {
                // Without clients, do not wake the run ten times per second.
                view.wanted.notified().await;
                ticks.reset();
            }
            ticks.tick().await;
        };
        tokio::select! {
            () = next => {}
            () = ended(&mut stopped) => return,
        }
        let of = Arc::clone(&state);
        let sampled = state.slowly(move || of.view.sample(&of.controller, tick));
        if sampled.await.is_none() {
            return;
        }
    }
}
