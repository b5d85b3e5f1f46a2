//! Dispatches requests by the route table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Request, Response, StatusCode};
use longwire_network::Controller;
use longwire_runtime::host::{normal_priority, prompt_priority, release_free_memory};
use longwire_topology::Problem;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::guard::{Caller, Files, Rights};
use super::reply::{Body, Refusal, Reply};
use super::route::{Call, Query, Route, Work, find};
use super::routes::ROUTES;
use super::server::CONNECTIONS_MAX;
use super::state::{ApiState, STREAMS_MAX};
use super::stream;
use crate::limits::{Bodies, RequestBody, is_large};

/// Maximum number of requests in progress or queued.
pub const WORK_MAX: usize = 128;

const _: () = assert!(
    STREAMS_MAX + WORK_MAX < CONNECTIONS_MAX,
    "some connections can always give way"
);

/// Delay after a large body before freed memory is returned to the system.
const TRIM_AFTER: Duration = Duration::from_millis(500);

/// Control API of a run.
pub struct Api {
    state: Arc<ApiState>,
    /// Files that changes may name.
    files: Files,
    bodies: Bodies,
    /// Permits for requests in progress.
    work: Arc<Semaphore>,
    /// Whether the return of freed memory is scheduled.
    trimming: AtomicBool,
    /// Serialises changes without blocking threads.
    turn: Semaphore,
}

impl Api {
    /// Creates the API of a run. Runs may share `work`, the permits of requests.
    pub fn new(state: Arc<ApiState>, files: Files, work: Arc<Semaphore>) -> Api {
        Api {
            state,
            files,
            bodies: Bodies::new(),
            work,
            trimming: AtomicBool::new(false),
            turn: Semaphore::new(1),
        }
    }

    /// Returns whether this is the API of a run.
    pub fn is_of(&self, controller: &Arc<Controller>) -> bool {
        Arc::ptr_eq(&self.state.controller, controller)
    }

    /// Answers an admitted request.
    pub async fn answer(
        self: Arc<Api>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let (method, uri) = (request.method().as_str(), request.uri());
        let (route, mut call) = read_head(method, uri.path(), uri.query())?;
        call.accept = accepted(request.headers());
        if route.changes() && caller.rights == Rights::Read {
            let error = "read-only token; nothing was changed";
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
        if route.changes() && !self.state.controller.takes_changes() {
            return Err(Refusal::conflict(
                "a replay cannot be changed: its verdicts are computed ahead of time; restart it \
                 with other options",
            ));
        }
        let (mut body, mut _trim) = (None, None);
        if route.body.is_some() {
            let sent = request.into_body();
            _trim = is_large(&sent).then(|| TrimLater(Arc::clone(&self)));
            body = Some(self.bodies.read(sent).await?);
        }
        let working = caller.slot.work();
        call.may_change = caller.rights == Rights::Change;
        if let Work::Stream(make) = route.work {
            let state = Arc::clone(&self.state);
            let open = move || stream::watcher(&state, &call, make, working);
            let made = self.state.slowly(open);
            return made.await.unwrap_or_else(|| Err(fault())).map(stream::open);
        }
        let _place = take_permit(&self.work)?;
        let reply = Arc::clone(&self).work(route, call, body, caller).await;
        reply.map(Reply::into_response)
    }

    async fn work(
        self: Arc<Api>,
        route: &'static Route,
        mut call: Call,
        body: Option<RequestBody>,
        caller: Caller,
    ) -> Result<Reply, Refusal> {
        let state = Arc::clone(&self.state);
        match route.work {
            Work::Quick(work) => {
                // Even quick work may wait for a lock of the network.
                let prompt = move || {
                    prompt_priority();
                    work(&state, &call)
                };
                let worked = spawn_blocking(prompt).await;
                worked.unwrap_or_else(|_| Err(fault()))
            }
            Work::Slow(work) => {
                let worked = self.state.slowly(move || work(&state, &call)).await;
                worked.unwrap_or_else(|| Err(fault()))
            }
            Work::Change(make, body_at) => {
                let _turn = self.turn.acquire().await;
                // Use neither a slow thread, because a change holds locks, nor the packet threads'
                // priority, because large changes are slow. Parse one body at a time: parsed JSON
                // needs many times the memory of its text.
                let api = Arc::clone(&self);
                let change = move || {
                    normal_priority();
                    if let Some(body) = body {
                        call.body = parse_body(&body.bytes)?;
                    }
                    api.change((&make(&call), body_at), &call, &caller)
                };
                let made = spawn_blocking(change).await;
                made.unwrap_or_else(|_| Err(fault()))
            }
            // Streams are handled by the caller.
            Work::Stream(_) => Err(fault()),
        }
    }

    /// Schedules the return of freed memory to the system, unless already scheduled.
    fn trim_soon(self: Arc<Api>) {
        // The async runtime may have ended.
        let Ok(handle) = Handle::try_current() else {
            return;
        };
        if self.trimming.swap(true, Ordering::Relaxed) {
            return;
        }
        handle.spawn(async move {
            sleep(TRIM_AFTER).await;
            self.trimming.store(false, Ordering::Relaxed);
            self.state.slowly(release_free_memory).await;
        });
    }

    /// Applies or checks a change. `body_at` is the JSON pointer to the request body within the
    /// change.
    fn change(
        &self,
        (change, body_at): (&Value, &str),
        call: &Call,
        caller: &Caller,
    ) -> Result<Reply, Refusal> {
        let files = self.files.of(caller.peer);
        let changed = if call.query.flag("check") {
            self.state.controller.check(change, files)
        } else {
            self.state.controller.change(change, files)
        };
        let refused = |mut problems: Vec<Problem>| {
            let name = call.name.replace('~', "~0").replace('/', "~1");
            let body_at = body_at.replace("{name}", &name);
            for problem in &mut problems {
                let in_body = problem.pointer.strip_prefix(&body_at);
                problem.pointer = in_body.unwrap_or_default().to_owned();
            }
            Refusal::problems(problems)
        };
        Reply::json(&changed.map_err(refused)?)
    }
}

/// Joins the values of all `Accept` headers.
pub fn accepted(headers: &HeaderMap) -> String {
    let accepts = headers.get_all(ACCEPT).iter();
    let accepts: Vec<&str> = accepts.filter_map(|value| value.to_str().ok()).collect();
    accepts.join(",")
}

/// Takes a permit.
///
/// # Errors
/// 503 if none is free.
pub fn take_permit(work: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(work).try_acquire_owned().map_err(|_| {
        Refusal::busy(format!(
            "too many requests in progress ({WORK_MAX}); try again"
        ))
    })
}

/// Guard of a request with a large body; schedules the return of memory to the system when dropped.
struct TrimLater(Arc<Api>);

impl Drop for TrimLater {
    fn drop(&mut self) {
        Arc::clone(&self.0).trim_soon();
    }
}

/// Returns the refusal of a request whose work panicked.
pub fn fault() -> Refusal {
    let error = "internal error";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// Parses a request without its body.
///
/// # Errors
/// 404, 405, or 400 for invalid parameters.
pub fn read_head(
    method: &str,
    path: &str,
    query: Option<&str>,
) -> Result<(&'static Route, Call), Refusal> {
    let (route, name) = find(&ROUTES, method, path)?;
    let call = Call {
        name,
        query: Query::parse(query, route.parameters)?,
        ..Call::default()
    };
    Ok((route, call))
}

/// Parses a body.
///
/// # Errors
/// 400 if it is not JSON.
pub fn parse_body(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad(format!("the body is not JSON: {error}")))
}
