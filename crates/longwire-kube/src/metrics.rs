//! Prometheus metrics of the agent and the controller, and an HTTP server for metrics and health
//! checks.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::agent::AgentError;

/// A request to the node.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum NodeRequest {
    List,
    Put,
    Delete,
}

/// Names and values of labels.
type MetricLabels<const N: usize> = [(&'static str, String); N];

/// Metrics of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    watch_errors: Family<MetricLabels<1>, Counter>,
    requests: Family<MetricLabels<2>, Counter>,
    attachments: Family<MetricLabels<1>, Gauge>,
    status_writes: Family<MetricLabels<1>, Counter>,
    reaction: Histogram,
    leader: Gauge,
    synced: Gauge,
    turns: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut all = Registry::with_prefix("longwire_kube");
        let all = &mut all;
        let watch_errors = registered(all, "watch_errors", "Broken watches");
        let requests = registered(all, "node_requests", "Requests to the node");
        let attachments = registered(all, "attachments", "Attachments of this node by state");
        let status_writes = registered(all, "status_writes", "Writes of status to the API server");
        let buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
        let reaction = Histogram::new(buckets);
        let help = "Seconds from a cache change until it is applied";
        all.register("reaction_seconds", help, reaction.clone());
        Metrics {
            watch_errors,
            requests,
            attachments,
            status_writes,
            reaction,
            leader: registered(all, "leader", "1 for the leading controller"),
            synced: registered(all, "synced", "1 once all caches are complete"),
            turns: registered(all, "turns", "Reconciliations"),
            registry: Arc::new(std::mem::take(all)),
        }
    }
}

/// Creates and registers a metric.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Returns the counter of failed watches for a kind.
    pub fn watch_errors(&self, kind: &str) -> Counter {
        let labels = [("kind", kind.to_owned())];
        self.watch_errors.get_or_create(&labels).clone()
    }

    /// Counts a request to the node by its result.
    pub fn count_request<T, E>(&self, request: NodeRequest, result: &Result<T, E>) {
        let outcome = if result.is_ok() { "Done" } else { "Failed" };
        let labels = [
            ("request", format!("{request:?}")),
            ("outcome", outcome.to_owned()),
        ];
        self.requests.get_or_create(&labels).inc();
    }

    /// Sets the numbers of attached and waiting attachments.
    pub fn set_attachments(&self, attached: usize, waiting: usize) {
        for (state, count) in [("attached", attached), ("waiting", waiting)] {
            let labels = [("state", state.to_owned())];
            self.attachments.get_or_create(&labels).set(count as i64);
        }
    }

    /// Counts a write of status for a kind.
    pub fn count_status_write(&self, kind: &str) {
        let labels = [("kind", kind.to_owned())];
        self.status_writes.get_or_create(&labels).inc();
    }

    /// Records the time from a change until it was applied.
    pub fn observe_reaction(&self, time: Duration) {
        self.reaction.observe(time.as_secs_f64());
    }

    /// Sets whether this controller leads.
    pub fn set_leader(&self, is_leader: bool) {
        self.leader.set(i64::from(is_leader));
    }

    /// Counts a comparison with complete caches.
    pub fn count_turn(&self) {
        self.synced.set(1);
        self.turns.inc();
    }

    /// Returns all metrics as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        encode(&mut text, &self.registry).unwrap_or_default();
        text
    }
}

/// Time without a round of the main loop after which the process counts as dead.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 32;

/// Liveness and readiness of the main loop.
///
/// A process that waits for an API server or its node counts as alive: a restart would not help,
/// and existing links continue.
#[derive(Debug)]
pub struct Health(Mutex<LastRound>);

/// Time of the last round of the main loop, and whether the process is ready.
type LastRound = (Instant, bool);

impl Default for Health {
    fn default() -> Health {
        Health(Mutex::new((Instant::now(), false)))
    }
}

impl Health {
    /// Records a round of the main loop.
    pub fn beat(&self, is_ready: bool) {
        *self.last() = (Instant::now(), is_ready);
    }

    fn last(&self) -> MutexGuard<'_, LastRound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves new metrics and health checks at an address until the process ends. Returns the actual
/// address, and what is served.
///
/// # Errors
/// If the address cannot be bound.
pub async fn serve(address: SocketAddr) -> Result<(SocketAddr, Metrics, Arc<Health>), AgentError> {
    let failed = |error| AgentError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (metrics, health) = (Metrics::default(), Arc::<Health>::default());
    let served = (address, metrics.clone(), Arc::clone(&health));
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::spawn(async move {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                // Usually the process is out of descriptors.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (metrics, health) = (metrics.clone(), Arc::clone(&health));
            tokio::spawn(async move {
                let answer = service_fn(|request: Request<Incoming>| {
                    let response = answer(request.uri().path(), &metrics, &health);
                    async { Ok::<_, Infallible>(response) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(10))
                    .serve_connection(TokioIo::new(stream), answer);
                // Ignore errors, which concern only this client.
                let _ = connection.await;
                drop(place);
            });
        }
    });
    Ok(served)
}

fn answer(path: &str, metrics: &Metrics, health: &Health) -> Response<Full<Bytes>> {
    let check = |is_fine: bool| {
        if is_fine {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "no\n".to_owned())
        }
    };
    let (status, text) = match path {
        "/metrics" => (StatusCode::OK, metrics.text()),
        "/healthz" => check(health.last().0.elapsed() < SILENCE_MAX),
        "/readyz" => check(health.last().1),
        _ => (StatusCode::NOT_FOUND, "no such path\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    if path == "/metrics" {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let kind = hyper::header::HeaderValue::from_static(kind);
        response.headers_mut().insert("content-type", kind);
    }
    response
}
