//! State shared by all requests.

use std::sync::Arc;

use longwire_network::Controller;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::config::Detail;
use crate::view::View;

/// Maximum number of concurrent streams.
pub const STREAMS_MAX: usize = 64;

/// State shared by all requests.
pub struct ApiState {
    pub controller: Arc<Controller>,
    /// Default detail level of /metrics.
    pub metrics: Detail,
    /// `true` once the server is ending.
    pub stopped: watch::Receiver<bool>,
    /// Stream permits.
    pub streams: Arc<Semaphore>,
    /// Histories and tables that clients read.
    pub view: Arc<View>,
    /// Threads for slow work.
    pub slow: Handle,
}

impl ApiState {
    /// Creates the state of a run's API.
    pub fn new(
        controller: Arc<Controller>,
        metrics: Detail,
        stopped: watch::Receiver<bool>,
        slow: Handle,
    ) -> ApiState {
        ApiState {
            controller,
            metrics,
            stopped,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            view: Arc::default(),
            slow,
        }
    }

    /// Runs slow work on a low-priority thread; `None` if it panicked.
    pub async fn slowly<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        self.slow.spawn_blocking(work).await.ok()
    }
}
