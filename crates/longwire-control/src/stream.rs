//! Event streams (WHATWG HTML, section 9.2), and `/v1/stats/stream`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame};
use hyper::{Response, StatusCode};
use longwire_engine::Nanos;
use longwire_runtime::deciding::LinkTotals;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

use super::reply::{Body, EVENTS, Refusal, response};
use super::responses::{Rates, StatsEvent, StatsRow};
use super::route::Call;
use super::server::ended;
use super::state::{ApiState, STREAMS_MAX};
use crate::limits::BusyGuard;

/// Default period of a stream.
const EVERY: Nanos = Nanos::from_secs(1);

/// Maximum number of links listed individually in a stream.
const EACH_MAX: usize = 10_000;

/// Heartbeat period; without heartbeats, neither side would detect a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Returns the next event of a stream. An error is the last event, and contains the reason.
pub type EventSource = Box<dyn FnMut() -> Result<Bytes, Bytes> + Send>;

/// Builds the event source for a request.
pub type MakeSource = fn(&Arc<ApiState>, &Call) -> Result<EventSource, Refusal>;

/// An event stream.
pub struct Watcher {
    state: Arc<ApiState>,
    source: EventSource,
    every: Duration,
    _place: OwnedSemaphorePermit,
    working: Arc<BusyGuard>,
}

/// Event source for counters, which compares each event with the previous one.
struct Counters {
    state: Arc<ApiState>,
    pattern: String,
    each: bool,
    last: Option<Sample>,
}

/// Counters at one point in time.
struct Sample {
    at: Nanos,
    count: usize,
    /// Hash of the set of links, to detect added and removed links.
    which: u64,
    sums: LinkTotals,
    each: HashMap<String, LinkTotals>,
}

/// Reserves a stream.
///
/// # Errors
/// 503 if all streams are in use.
pub fn take_permit(streams: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(streams).try_acquire_owned().map_err(|_| {
        let error = format!("too many open streams ({STREAMS_MAX}); close one");
        Refusal::busy(error)
    })
}

/// Returns the stream for a request; `working` protects the stream's connection from eviction.
///
/// # Errors
/// 503 if all streams are in use, or any error of the source.
pub fn watcher(
    state: &Arc<ApiState>,
    call: &Call,
    make: MakeSource,
    working: BusyGuard,
) -> Result<Watcher, Refusal> {
    let place = take_permit(&state.streams)?;
    let every = call.query.time("every").unwrap_or(EVERY);
    Ok(Watcher {
        state: Arc::clone(state),
        source: make(state, call)?,
        every: Duration::from_nanos(every.as_nanos()),
        _place: place,
        working: Arc::new(working),
    })
}

/// Returns the counter source for a request.
///
/// # Errors
/// 400 if too many links are requested individually.
pub fn counters(state: &Arc<ApiState>, call: &Call) -> Result<EventSource, Refusal> {
    let mut counters = Counters {
        state: Arc::clone(state),
        pattern: call.query.text("match").unwrap_or("*").to_owned(),
        each: call.query.text("links") == Some("each"),
        last: None,
    };
    if counters.each {
        let (count, _) = state.controller.totals(&counters.pattern);
        if count > EACH_MAX {
            return Err(Refusal::bad(too_many(count)));
        }
    }
    Ok(Box::new(move || counters.next()))
}

fn too_many(count: usize) -> String {
    format!(
        "{count} directions match, but a stream lists at most {EACH_MAX}; narrow ?match=, or use \
         ?links=sum"
    )
}

/// Starts a stream.
pub fn open(watcher: Watcher) -> Response<Body> {
    // At most one event is queued; the next one is built after sending it.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send_events(watcher, sender));
    response(StatusCode::OK, EVENTS, EventBody(receiver).boxed_unsync())
}

/// Sends events until the client disconnects or the run ends.
async fn send_events(mut watcher: Watcher, sender: mpsc::Sender<Bytes>) {
    let state = Arc::clone(&watcher.state);
    let working = Arc::clone(&watcher.working);
    let mut half_closed = pin!(working.0.half_closed());
    let mut stopped = state.stopped.clone();
    let mut ticks = interval(watcher.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut heart = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    loop {
        let text = tokio::select! {
            _ = ticks.tick() => {
                let made = state.slowly(move || {
                    let text = (watcher.source)();
                    (watcher, text)
                });
                let Some((back, text)) = made.await else {
                    return;
                };
                watcher = back;
                heart.reset();
                text
            }
            _ = heart.tick() => Ok(Bytes::from_static(b": heartbeat\n\n")),
            () = sender.closed() => return,
            () = half_closed.as_mut() => return,
            () = ended(&mut stopped) => {
                Err(event("end", &serde_json::json!({ "reason": "the run has ended" })))
            }
        };
        let (text, last) = match text {
            Ok(text) => (text, false),
            Err(text) => (text, true),
        };
        if sender.send(text).await.is_err() || last {
            return;
        }
    }
}

/// Encodes an event; omits the name of `stats` events.
pub fn event(kind: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    match kind {
        "" => format!("data: {data}\n\n").into(),
        kind => format!("event: {kind}\ndata: {data}\n\n").into(),
    }
}

impl Counters {
    fn next(&mut self) -> Result<Bytes, Bytes> {
        let now = self.read_counters();
        if self.each && now.count > EACH_MAX {
            let error = serde_json::json!({ "error": too_many(now.count) });
            return Err(event("error", &error));
        }
        let text = event("", &self.compare(&now));
        self.last = Some(now);
        Ok(text)
    }

    fn read_counters(&self) -> Sample {
        let controller = &self.state.controller;
        let mut now = Sample {
            at: controller.elapsed(),
            count: 0,
            which: 0,
            sums: LinkTotals::default(),
            each: HashMap::new(),
        };
        controller.each_totals(&self.pattern, &mut |name, totals| {
            now.count += 1;
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            now.which = now.which.wrapping_add(hasher.finish());
            now.sums.add(&totals);
            if self.each && now.count <= EACH_MAX {
                now.each.insert(name.to_owned(), totals);
            }
        });
        now
    }

    /// Returns an event with counters and rates.
    fn compare(&self, now: &Sample) -> StatsEvent {
        let before = self.last.as_ref();
        let passed = before.map_or(Nanos::ZERO, |before| now.at.saturating_sub(before.at));
        // After links were added or removed, the sums are not comparable.
        let same = before.filter(|before| before.which == now.which);
        StatsEvent {
            elapsed_s: now.at.as_secs_f64(),
            interval_s: passed.as_secs_f64(),
            links: now.count,
            totals: now.sums.clone().into(),
            rates: same.and_then(|same| Rates::between(&same.sums, &now.sums, passed)),
            each: self.each.then(|| rows(before, now, passed)),
        }
    }
}

/// Returns a row per link, ordered by name.
fn rows(before: Option<&Sample>, now: &Sample, passed: Nanos) -> Vec<StatsRow> {
    let mut rows: Vec<StatsRow> = now
        .each
        .iter()
        .map(|(name, totals)| {
            let before = before.and_then(|before| before.each.get(name));
            StatsRow {
                name: name.clone(),
                totals: totals.clone().into(),
                rates: before.and_then(|before| Rates::between(before, totals, passed)),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// Response body of an event stream.
struct EventBody(mpsc::Receiver<Bytes>);

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = self.0.poll_recv(cx);
        event.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
