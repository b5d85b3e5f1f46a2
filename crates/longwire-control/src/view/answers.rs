//! Responses of the live view.

use longwire_engine::Nanos;

use super::columns::Columns;
use super::table::Selection;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Call;
use crate::state::ApiState;

/// Default number of rows.
const ROWS: u64 = 50;

/// Returns the samples of a direction.
///
/// # Errors
/// 404 for an unknown direction.
pub fn history(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let view = &state.view;
    let since = call.query.time("since").unwrap_or(Nanos::ZERO);
    let mut history = view.history();
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
    let page = view.table().page(&selection, &state.controller);
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
    let fidelity = view.first().fidelity(&state.controller, judgement);
    Reply::json(&fidelity)
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
    let flows = view.flows().read(&call.name, &state.controller);
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
