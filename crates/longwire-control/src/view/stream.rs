//! History of directions as an event stream.

use std::sync::Arc;

use hyper::body::Bytes;
use longwire_engine::Nanos;

use super::View;
use super::answers::no_direction;
use super::columns::{Columns, HistoryEvent};
use crate::refusal::Refusal;
use crate::route::Call;
use crate::state::ApiState;
use crate::stream::{EventSource, event};

/// Maximum directions of a stream.
const DIRECTIONS_MAX: usize = 8;

/// Source of the new samples of some directions.
struct NewSamples {
    view: Arc<View>,
    state: Arc<ApiState>,
    /// Names, and the end of the last sample sent.
    directions: Vec<(String, Option<Nanos>)>,
}

/// Returns the event source of a request.
///
/// # Errors
/// 404 for an unknown direction.
pub fn open(state: &Arc<ApiState>, call: &Call) -> Result<Box<dyn EventSource>, Refusal> {
    let view = Arc::clone(&state.view);
    let names: Vec<&str> = call
        .query
        .text("directions")
        .unwrap_or("")
        .split(',')
        .collect();
    if names.len() > DIRECTIONS_MAX || names.contains(&"") {
        return Err(Refusal::bad(format!(
            "?directions= takes 1 to {DIRECTIONS_MAX} directions separated by commas, such as \
             link.up,link.down"
        )));
    }
    for name in &names {
        if view.history().read(name, &state.controller).is_none() {
            return Err(no_direction(name));
        }
    }
    view.wanted.notify_one();
    Ok(Box::new(NewSamples {
        view,
        state: Arc::clone(state),
        directions: names
            .iter()
            .map(|name| ((*name).to_owned(), None))
            .collect(),
    }))
}

impl EventSource for NewSamples {
    fn next(&mut self) -> Result<Bytes, Bytes> {
        let mut history = self.view.history();
        let mut sent = HistoryEvent::default();
        for (name, last) in &mut self.directions {
            let Some(samples) = history.read(name, &self.state.controller) else {
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
    }
}
