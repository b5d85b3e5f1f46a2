//! The answers of the API, by its table of routes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Request, Response, StatusCode};
use longwire_fabric::Controller;
use longwire_runtime::host::{normal_priority, prompt_priority, release_free_memory};
use longwire_topology::Problem;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::bodies::{Bodies, RequestBody, is_large};
use super::guard::{Caller, Files, Rights};
use super::query::Query;
use super::refusal::Refusal;
use super::reply::{Body, Reply};
use super::route::{Call, Route, Work, find};
use super::routes::ROUTES;
use super::server::CONNECTIONS_MAX;
use super::state::{ApiState, STREAMS_MAX};
use super::stream;

/// The most requests that are worked on at once, or wait for their turn.
pub const WORK_MAX: usize = 128;

const _: () = assert!(
    STREAMS_MAX + WORK_MAX < CONNECTIONS_MAX,
    "some connections can always give way"
);

/// Memory is given back to the system so long after a large body.
const TRIM_AFTER: Duration = Duration::from_millis(500);

/// The control API of a run.
pub struct Api {
    state: Arc<ApiState>,
    /// The files that changes may name.
    files: Files,
    bodies: Bodies,
    /// Places for requests that are worked on.
    work: Arc<Semaphore>,
    /// Whether memory is to be given back soon.
    trimming: AtomicBool,
    /// Changes are made one after the other; those that wait hold no thread.
    turn: Semaphore,
}

impl Api {
    /// Returns the API of a run.
    pub fn new(state: Arc<ApiState>, files: Files) -> Api {
        Api {
            state,
            files,
            bodies: Bodies::new(),
            work: Arc::new(Semaphore::new(WORK_MAX)),
            trimming: AtomicBool::new(false),
            turn: Semaphore::new(1),
        }
    }

    /// Replaces the places for requests by those that several runs share.
    pub fn with_work(self, work: Arc<Semaphore>) -> Api {
        Api { work, ..self }
    }

    /// Whether it is the API of this run.
    pub fn is_of(&self, controller: &Arc<Controller>) -> bool {
        Arc::ptr_eq(&self.state.controller, controller)
    }

    /// Answers a request that was let in.
    pub async fn answer(
        self: Arc<Api>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Response<Body> {
        let answered = self.handle(request, caller).await;
        answered.unwrap_or_else(Refusal::into_response)
    }

    async fn handle(
        self: Arc<Api>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let (route, mut call) = read_head(
            request.method().as_str(),
            request.uri().path(),
            request.uri().query(),
        )?;
        let accepts = request.headers().get_all(ACCEPT).iter();
        let accepts: Vec<&str> = accepts.filter_map(|value| value.to_str().ok()).collect();
        call.accept = accepts.join(",");
        if route.changes() && caller.rights == Rights::Read {
            let error = "this token may read only; nothing was changed";
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
        if route.changes() && !self.state.controller.takes_changes() {
            return Err(Refusal::conflict(
                "this is a replay: its frames are read ahead and its links have decided about \
                 them, so that nothing can be changed; start it again with other options",
            ));
        }
        let (mut body, mut _trim) = (None, None);
        if route.body.is_some() {
            let sent = request.into_body();
            _trim = is_large(&sent).then(|| TrimLater(Arc::clone(&self)));
            body = Some(self.bodies.read(sent).await?);
        }
        let working = caller.seat.work();
        call.may_change = caller.rights == Rights::Change;
        if let Work::Stream(make) = route.work {
            let state = Arc::clone(&self.state);
            let open = move || stream::watcher(&state, &call, make, working);
            let made = self.state.slowly(open);
            return made.await.unwrap_or_else(|| Err(fault())).map(stream::open);
        }
        let _place = take_place(&self.work)?;
        let reply = Arc::clone(&self).work(route, call, body, caller).await;
        reply.map(Reply::into_response)
    }

    /// Does what a route is for.
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
                // Not here: it may wait for the fabric all the same.
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
                // Not slowly: others wait for what a change holds. Nor before
                // the packets: one of a hundred thousand links takes a while.
                // JSON takes many times the memory of its text, so that it is
                // read of one body at a time.
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
            // Opened before this is called.
            Work::Stream(_) => Err(fault()),
        }
    }

    /// Gives memory that was freed back to the system, once for all requests
    /// of a moment.
    fn trim_soon(self: Arc<Api>) {
        // At the end of a run there is no runtime left, and no need.
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

    /// Makes a change, or says whether it could be made. `body_at` is the pointer to the
    /// request's body in it.
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

/// Takes one of the places for requests that are worked on.
///
/// # Errors
/// 503 if there is none.
pub fn take_place(work: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(work).try_acquire_owned().map_err(|_| {
        Refusal::busy(format!(
            "{WORK_MAX} requests are being worked on; try again"
        ))
    })
}

/// Has memory given back once a request with a large body is done with, or
/// given up.
struct TrimLater(Arc<Api>);

impl Drop for TrimLater {
    fn drop(&mut self) {
        Arc::clone(&self.0).trim_soon();
    }
}

/// Returns the refusal of a request whose work failed midway.
pub fn fault() -> Refusal {
    let error = "the answer could not be made; this is a fault of Longwire";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// Returns the route of a request, and the request without its body.
///
/// # Errors
/// If there is no such route, or it does not take the parameters.
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

/// Reads a body as JSON.
///
/// # Errors
/// If it is none.
pub fn parse_body(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad(format!("the body is not JSON: {error}")))
}
