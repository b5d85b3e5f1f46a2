//! `/metrics`, `/healthz` and `/readyz`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Time without a turn of the main loop after which the process is unhealthy.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Maximum connections.
const CONNECTIONS_MAX: usize = 32;

/// Liveness and readiness of the main loop.
///
/// A process that waits for an API server or its node is alive: a restart would not help, and
/// existing links stay.
#[derive(Debug)]
pub struct Health {
    start: Instant,
    last_beat_ms: AtomicU64,
    is_ready: AtomicBool,
}

impl Default for Health {
    fn default() -> Health {
        Health {
            start: Instant::now(),
            last_beat_ms: AtomicU64::new(0),
            is_ready: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// Notes a turn of the main loop.
    pub fn beat(&self, is_ready: bool) {
        let passed = self.start.elapsed().as_millis() as u64;
        self.last_beat_ms.store(passed, Ordering::Relaxed);
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        let last = Duration::from_millis(self.last_beat_ms.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last) < SILENCE_MAX
    }
}

/// Serves an address until the process ends.
///
/// # Errors
/// If the address cannot be bound.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    health: Arc<Health>,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::spawn(async move {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                // Usually out of descriptors.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (metrics, health) = (metrics.clone(), Arc::clone(&health));
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let response = answer(&request, &metrics, &health);
                    async { Ok::<_, Infallible>(response) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(10))
                    .serve_connection(TokioIo::new(stream), answer);
                // Errors concern the client alone.
                let _ = connection.await;
                drop(place);
            });
        }
    });
    Ok(address)
}

fn answer(
    request: &Request<Incoming>,
    metrics: &Metrics,
    health: &Health,
) -> Response<Full<Bytes>> {
    let check = |is_fine: bool| {
        if is_fine {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "no\n".to_owned())
        }
    };
    let (status, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, metrics.text()),
        "/healthz" => check(health.is_alive()),
        "/readyz" => check(health.is_ready.load(Ordering::Relaxed)),
        _ => (StatusCode::NOT_FOUND, "no such path\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    if request.uri().path() == "/metrics" {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let kind = hyper::header::HeaderValue::from_static(kind);
        response.headers_mut().insert("content-type", kind);
    }
    response
}
