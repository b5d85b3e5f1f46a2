//! Polls the run on a separate thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use longwire_client::{Client, ClientError};
use longwire_control::responses::{Changes, Columns, Fidelity, Overview, Stats, TablePage};
use longwire_network::{LinkView, options_in_words};
use serde_json::{Value, json};

use super::screen::Sort;
use crate::Error;
use crate::commands::ctl::{encoded, link_and_direction, read};

/// Number of changes shown, newest first.
pub const CHANGES_SHOWN: usize = 3;

/// Part of the run to display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub pattern: String,
    pub sort: Sort,
    pub offset: usize,
    pub limit: usize,
    /// Direction in the detail view.
    pub detail: Option<String>,
}

/// A request from the screen.
#[derive(Debug)]
pub enum Request {
    /// Display this part from now on.
    Look(Query),
    /// Apply a change.
    Change(ChangeRequest),
}

/// A change to a link or direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRequest {
    /// Request body.
    pub body: Value,
    /// Description of the change.
    pub text: String,
    /// Direction whose options or state change; `None` if this change undoes another.
    pub of: Option<String>,
}

/// A message to the screen.
#[derive(Debug)]
pub enum Update {
    /// Current state of the run.
    Shown(Box<Snapshot>),
    /// The change was applied; includes the change that undoes it.
    Made(String, Option<ChangeRequest>),
    /// The change was refused and had no effect.
    Refused(String),
    /// The run does not answer; polling continues.
    Lost(String),
    /// The run has ended: its address has no listener. Polling continues, because another run may
    /// start at the same address.
    Ended,
    /// The run has not answered any request.
    First(Error),
}

/// A snapshot of the run.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub overview: Overview,
    pub stats: Stats,
    /// Rates since the previous snapshot: input bit/s, output bit/s, drops/s.
    pub rates: Option<[f64; 3]>,
    pub fidelity: Fidelity,
    pub page: TablePage,
    pub detail: Option<Detail>,
}

/// Details of a direction.
#[derive(Clone, Debug)]
pub struct Detail {
    pub name: String,
    pub link: LinkView,
    pub columns: Columns,
    pub changes: Changes,
}

/// Sends snapshots and applies changes until the screen closes.
pub fn serve(
    mut client: Client,
    every: Duration,
    requests: &Receiver<Request>,
    updates: &Sender<Update>,
) {
    let (mut query, mut last): (Option<Query>, Option<Stats>) = (None, None);
    let mut next = Instant::now();
    loop {
        match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Request::Look(wanted)) => {
                query = Some(wanted);
                next = Instant::now();
                continue;
            }
            Ok(Request::Change(request)) => {
                let _ = updates.send(change(&mut client, &request));
                next = Instant::now();
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        next = Instant::now() + every;
        let Some(query) = &query else { continue };
        let update = match look(&mut client, query, last.as_ref()) {
            Ok(snapshot) => {
                last = Some(snapshot.stats.clone());
                Update::Shown(Box::new(snapshot))
            }
            Err(error) if last.is_none() => Update::First(error),
            Err(Error::Control(
                ClientError::Unreachable { .. } | ClientError::ConnectionLost { .. },
            )) => Update::Ended,
            Err(error) => Update::Lost(error.to_string()),
        };
        if updates.send(update).is_err() {
            return;
        }
    }
}

fn look(client: &mut Client, query: &Query, last: Option<&Stats>) -> Result<Snapshot, Error> {
    let pattern = encoded(&query.pattern);
    let (sort, order) = query.sort.parameters();
    let stats: Stats = read(client.get(&format!("/v1/stats?match={pattern}"))?)?;
    let page = client.get(&format!(
        "/v1/table?match={pattern}&sort={sort}&order={order}&offset={}&limit={}",
        query.offset, query.limit
    ))?;
    let detail = query.detail.as_deref();
    let detail = detail.map(|name| look_at(client, name)).transpose()?;
    Ok(Snapshot {
        overview: read(client.get("/v1")?)?,
        rates: last.and_then(|last| rates(last, &stats)),
        fidelity: read(client.get("/v1/fidelity")?)?,
        page: read(page)?,
        detail,
        stats,
    })
}

fn rates(last: &Stats, now: &Stats) -> Option<[f64; 3]> {
    let seconds = now.elapsed_s - last.elapsed_s;
    let same = last.links == now.links && seconds > 0.0;
    let counted = |stats: &Stats| {
        let totals = &stats.totals.totals;
        let traffic = &totals.traffic;
        [
            8 * traffic.bytes_in,
            8 * traffic.bytes_out,
            totals.drops.total(),
        ]
    };
    let (before, after) = (counted(last), counted(now));
    let grown = |at: usize| after[at].saturating_sub(before[at]) as f64 / seconds;
    same.then(|| std::array::from_fn(grown))
}

fn look_at(client: &mut Client, name: &str) -> Result<Detail, Error> {
    Ok(Detail {
        name: name.to_owned(),
        link: read(client.get(&format!(
            "/v1/links/{}",
            encoded(link_and_direction(name).0)
        ))?)?,
        columns: read(client.get(&format!("/v1/history/{}", encoded(name)))?)?,
        changes: read(client.get(&format!("/v1/changes?limit={CHANGES_SHOWN}"))?)?,
    })
}

/// Validates a change, reads the values that it replaces, and applies it.
fn change(client: &mut Client, request: &ChangeRequest) -> Update {
    let made = (|| -> Result<Option<ChangeRequest>, ClientError> {
        client.post("/v1/changes?check=true", &request.body)?;
        let before = match &request.of {
            Some(name) => {
                let link = client.get(&format!(
                    "/v1/links/{}",
                    encoded(link_and_direction(name).0)
                ))?;
                back(name, &link, &request.body)
            }
            None => None,
        };
        client.post("/v1/changes", &request.body)?;
        Ok(before)
    })();
    match made {
        Ok(back) => Update::Made(request.text.clone(), back),
        Err(ClientError::Refused(refused)) => {
            Update::Refused(format!("refused: {}", refused.line()))
        }
        Err(ClientError::Unreachable { .. }) => {
            Update::Refused("refused: the run has ended".to_owned())
        }
        Err(error) => Update::Lost(error.to_string()),
    }
}

/// Returns the change that restores the values that `body` replaces in a direction. Options that
/// were unset keep their new value.
fn back(name: &str, link: &Value, body: &Value) -> Option<ChangeRequest> {
    let is_down = name.ends_with(".down") && !link["down"].is_null();
    let was = &link[if is_down { "down" } else { "up" }];
    let (body, text) = match body["set"][name].as_object() {
        Some(set) => {
            let known = set
                .keys()
                .filter_map(|option| Some((option.clone(), was["options"].get(option)?.clone())));
            let options: serde_json::Map<String, Value> = known.collect();
            if options.is_empty() {
                return None;
            }
            let text = options_in_words(&options);
            (
                json!({ "set": { name: options } }),
                format!("{name}: {text}"),
            )
        }
        None => {
            let state = was["state"].as_str()?;
            let action = if state == "paused" { "pause" } else { state };
            (json!({ action: [name] }), format!("{name}: {state}"))
        }
    };
    Some(ChangeRequest {
        body,
        text,
        of: None,
    })
}
