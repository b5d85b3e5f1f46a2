//! What the API answers, by its table of routes.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::{Request, Response, StatusCode};
use longwire_runtime::host::{normal_priority, prompt_priority};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::args::Detail;
use super::guard::Rights;
use super::query::Query;
use super::refusal::Refusal;
use super::reply::{Body, Reply};
use super::route::{Call, Route, Work, find};
use super::routes::ROUTES;
use super::stream;
use crate::fabric::Controller;

/// The largest body.
pub const BODY_MAX: usize = 16 << 20;

/// A body must be there so soon.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The most streams at once.
pub const STREAMS_MAX: usize = 64;

/// What answers need.
pub struct Api {
    /// The run.
    pub controller: Arc<Controller>,
    /// What /metrics tells unless a request says.
    pub metrics: Detail,
    /// Becomes `true` at the end.
    pub stopped: watch::Receiver<bool>,
    /// Places for streams.
    pub streams: Arc<Semaphore>,
    /// Where work goes that takes long.
    slow: Handle,
    /// Changes are made one after the other; those that wait hold no thread.
    turn: Semaphore,
}

impl Api {
    /// The API of a run.
    pub fn new(
        controller: Arc<Controller>,
        metrics: Detail,
        stopped: watch::Receiver<bool>,
        slow: Handle,
    ) -> Api {
        Api {
            controller,
            metrics,
            stopped,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            slow,
            turn: Semaphore::new(1),
        }
    }

    /// Answers a request that was let in.
    pub async fn answer(
        self: Arc<Api>,
        request: Request<Incoming>,
        rights: Rights,
    ) -> Response<Body> {
        let answered = self.handle(request, rights).await;
        answered.unwrap_or_else(Refusal::into_response)
    }

    async fn handle(
        self: Arc<Api>,
        request: Request<Incoming>,
        rights: Rights,
    ) -> Result<Response<Body>, Refusal> {
        let (route, mut call) = read_head(
            request.method().as_str(),
            request.uri().path(),
            request.uri().query(),
        )?;
        if route.changes() && rights == Rights::Read {
            let error = "this token may read only; nothing was changed";
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
        if route.body.is_some() {
            call.body = parse_body(&read_body(request.into_body()).await?)?;
        }
        let api = Arc::clone(&self);
        match route.work {
            Work::Quick(work) => {
                // Not here: it may wait for the fabric all the same.
                let prompt = move || {
                    prompt_priority();
                    work(&api, &call)
                };
                let worked = spawn_blocking(prompt).await;
                worked
                    .unwrap_or_else(|_| Err(fault()))
                    .map(Reply::into_response)
            }
            Work::Slow(work) => {
                let worked = self.slowly(move || work(&api, &call)).await;
                worked
                    .unwrap_or_else(|| Err(fault()))
                    .map(Reply::into_response)
            }
            Work::Change(make) => {
                let _turn = self.turn.acquire().await;
                // Not slowly: others wait for what a change holds. Nor before
                // the packets: one of a hundred thousand links takes a while.
                let change = move || {
                    normal_priority();
                    api.change(&make(&call), &call)
                };
                let made = spawn_blocking(change).await;
                made.unwrap_or_else(|_| Err(fault()))
                    .map(Reply::into_response)
            }
            Work::Stream => {
                let made = self.slowly(move || stream::watcher(&api, &call)).await;
                made.unwrap_or_else(|| Err(fault())).map(stream::open)
            }
        }
    }

    /// Makes a change, or says whether it could be made.
    fn change(&self, change: &Value, call: &Call) -> Result<Reply, Refusal> {
        let changed = match call.query.flag("check") {
            true => self.controller.check(change),
            false => self.controller.change(change),
        };
        Reply::json(&changed.map_err(Refusal::problems)?)
    }

    /// Does work that takes long, on a thread for such; `None` if it failed
    /// midway.
    pub async fn slowly<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        self.slow.spawn_blocking(work).await.ok()
    }
}

fn fault() -> Refusal {
    let error = "the answer could not be made; this is a fault of Longwire";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// Which route a request is for, and what it says but for its body.
///
/// # Errors
/// If there is no such route, or it does not take what is said.
pub fn read_head(
    method: &str,
    path: &str,
    query: Option<&str>,
) -> Result<(&'static Route, Call), Refusal> {
    let (route, name) = find(&ROUTES, method, path)?;
    let call = Call {
        name,
        query: Query::parse(query, route.parameters)?,
        body: Value::Null,
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

async fn read_body(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let large = || {
        let error = format!("the body has more than {} MiB", BODY_MAX >> 20);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    };
    // Said ahead, it need not be read.
    if body.size_hint().lower() > BODY_MAX as u64 {
        return Err(large());
    }
    let collected = timeout(BODY_TIME, Limited::new(body, BODY_MAX).collect()).await;
    let collected = collected.map_err(|_| {
        let error = format!("the body was not there after {} s", BODY_TIME.as_secs());
        Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
    })?;
    match collected {
        Ok(bytes) => Ok(bytes.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(large()),
        Err(_) => Err(Refusal::bad("the body ends early")),
    }
}
