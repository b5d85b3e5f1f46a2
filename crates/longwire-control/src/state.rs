//! The state that all answers share.

use std::sync::Arc;

use longwire_fabric::Controller;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::config::Detail;
use crate::view::View;

/// The most streams at once.
pub const STREAMS_MAX: usize = 64;

/// The state that all answers share.
pub struct ApiState {
    /// The run.
    pub controller: Arc<Controller>,
    /// The detail of /metrics for requests that ask for none.
    pub metrics: Detail,
    /// Becomes `true` at the end.
    pub stopped: watch::Receiver<bool>,
    /// Places for streams.
    pub streams: Arc<Semaphore>,
    /// The histories and tables that clients read.
    pub view: Arc<View>,
    /// Threads for work that takes long.
    slow: Handle,
}

impl ApiState {
    /// Returns the state of a run's API.
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

    /// Replaces the places for streams by those that several runs share.
    pub fn with_streams(self, streams: Arc<Semaphore>) -> ApiState {
        ApiState { streams, ..self }
    }

    /// Replaces the view.
    pub fn with_view(self, view: View) -> ApiState {
        ApiState {
            view: Arc::new(view),
            ..self
        }
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
