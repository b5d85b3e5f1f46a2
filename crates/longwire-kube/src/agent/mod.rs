//! Agent of a node: reconciles the attachments of `longwire node` with the plan.

mod apply;
mod caches;
mod networks;
mod slices;
#[cfg(test)]
mod tests;
mod texts;
mod writer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use apply::Attempts;
pub use apply::remove_all;
use caches::Caches;
use kube::Client;
use networks::NetworkWorker;
use serde_json::Value;
use slices::{NodeState, Slices, slices};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use writer::StatusWriter;

use crate::metrics::{Health, Metrics, NodeRequest, serve};
use crate::node::{ATTACHMENTS, AttachmentView, Counters, NodeClient, NodeError};
use crate::plan::{PREFIX, Plan, WantedAttachment, plan};
use crate::watch::{ClusterError, Watcher};

/// Delay to collect changes before a round.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Retry interval while the node does not answer.
const RETRY: Duration = Duration::from_millis(500);

/// Interval between counter reads, and maximum interval between comparisons with the node.
const COUNTERS_EVERY: Duration = Duration::from_secs(5);

/// Minimum time between rounds, so that scenarios do not saturate a core.
const TURN_MIN: Duration = Duration::from_millis(10);

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Node name in the cluster.
    pub node: String,
    /// Namespace of the agent and of the secrets of networks.
    pub namespace: String,
    /// Socket of `longwire node`.
    pub socket: PathBuf,
    /// Address for metrics and health checks.
    pub listen: SocketAddr,
}

/// Fatal error of an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No access to a cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The metrics address cannot be bound.
    #[error("{address}: {error}")]
    Listen {
        /// Metrics address.
        address: SocketAddr,
        /// Underlying error.
        error: std::io::Error,
    },
    /// Signal handlers cannot be installed.
    #[error("signals: {0}")]
    Signal(std::io::Error),
}

/// Runs an agent until SIGTERM or SIGINT. Attachments are left to the next agent.
///
/// # Errors
/// See [`AgentError`].
pub async fn run(settings: AgentSettings, client: Client) -> Result<(), AgentError> {
    let (metrics, health) = (Metrics::default(), Arc::<Health>::default());
    let address = settings.listen;
    let address = serve(address, metrics.clone(), Arc::clone(&health))
        .await
        .map_err(|error| AgentError::Listen { address, error })?;
    tracing::info!(node = settings.node, %address, "agent starts");
    let mut terminate = signal(SignalKind::terminate()).map_err(AgentError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AgentError::Signal)?;
    let mut agent = Agent::new(&settings, client, metrics, health);
    tokio::select! {
        () = agent.work() => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("agent ends; attachments stay");
    Ok(())
}

struct Agent {
    name: String,
    node: NodeClient,
    caches: Caches,
    changed: Arc<Notify>,
    attempts: Attempts,
    counters: BTreeMap<String, Counters>,
    counters_at: Option<Instant>,
    slices: watch::Sender<Option<Slices>>,
    /// Task that manages networks.
    _networks: NetworkWorker,
    /// Task that writes slices.
    _writer: StatusWriter,
    metrics: Metrics,
    health: Arc<Health>,
}

impl Agent {
    fn new(
        settings: &AgentSettings,
        client: Client,
        metrics: Metrics,
        health: Arc<Health>,
    ) -> Agent {
        let watcher = Watcher {
            client: client.clone(),
            changed: Arc::default(),
            metrics: metrics.clone(),
        };
        let (slices, of_links) = watch::channel(None);
        let node = NodeClient::new(&settings.socket);
        let (networks, of_networks) = NetworkWorker::start(&watcher, settings, node.clone());
        let latest = [of_links, of_networks];
        Agent {
            name: settings.node.clone(),
            node,
            changed: Arc::clone(&watcher.changed),
            caches: Caches::start(watcher, &settings.node),
            attempts: Attempts::default(),
            counters: BTreeMap::new(),
            counters_at: None,
            slices,
            _networks: networks,
            _writer: StatusWriter::start(client, &settings.node, latest, metrics.clone()),
            metrics,
            health,
        }
    }

    async fn work(&mut self) {
        let mut wait = RETRY;
        loop {
            let changed_at = tokio::select! {
                () = self.changed.notified() => Some(Instant::now()),
                () = tokio::time::sleep(wait) => None,
            };
            if changed_at.is_some() {
                tokio::time::sleep(DEBOUNCE).await;
            }
            match self.reconcile().await {
                Ok(Some(next)) => {
                    self.health.beat(true);
                    wait = next.clamp(TURN_MIN, COUNTERS_EVERY);
                    if let Some(changed_at) = changed_at {
                        self.metrics.observe_reaction(changed_at.elapsed());
                    }
                }
                Ok(None) => {
                    self.health.beat(false);
                    wait = RETRY;
                }
                Err(error) => {
                    tracing::warn!(%error, "reconciliation failed");
                    self.health.beat(false);
                    wait = RETRY;
                }
            }
        }
    }

    /// Makes the node match the plan. Returns the time until the next round; `None` while a cache
    /// is incomplete.
    async fn reconcile(&mut self) -> Result<Option<Duration>, NodeError> {
        let Some(state) = self.caches.state(&self.name) else {
            return Ok(None);
        };
        self.metrics.count_turn();
        let plan = plan(&state);
        let listed = self.node.attachments().await;
        self.metrics.count_request(NodeRequest::List, &listed);
        let views = match listed {
            Ok(views) => views,
            Err(error) => {
                let state = NodeState {
                    node_error: Some(&error),
                    ..NodeState::EMPTY
                };
                self.publish(&plan, state);
                return Err(error);
            }
        };
        let (wanted, _) = at_time(&plan.attachments, views.iter());
        let views = self
            .attempts
            .apply(&self.node, &wanted, &plan.kept, views, &self.metrics)
            .await;
        // Recompute: the scenario of a newly attached link starts now.
        let (_, next) = at_time(&plan.attachments, views.values());
        let are_due = self
            .counters_at
            .is_none_or(|at| at.elapsed() >= COUNTERS_EVERY);
        self.counters.retain(|name, _| views.contains_key(name));
        if are_due {
            self.counters_at = Some(Instant::now());
            self.read_counters(&views).await;
        }
        let is_attached = |view: &&AttachmentView| view.is_attached();
        let attached = views.values().filter(is_attached).count();
        self.metrics
            .set_attachments(attached, views.len() - attached);
        let state = NodeState {
            views: &views,
            errors: self.attempts.errors(),
            counters: &self.counters,
            node_error: None,
        };
        self.publish(&plan, state);
        let times = [Some(COUNTERS_EVERY), next, self.attempts.retry_after()];
        Ok(times.into_iter().flatten().min())
    }

    async fn read_counters(&mut self, views: &BTreeMap<String, AttachmentView>) {
        for view in views.values().filter(|view| view.is_attached()) {
            match self.node.counters(ATTACHMENTS, &view.name).await {
                Ok(counters) => {
                    self.counters.insert(view.name.clone(), counters);
                }
                // The link may be gone; if so, the next list omits it.
                Err(error) => tracing::debug!(name = view.name, %error, "no counters"),
            }
        }
    }

    fn publish(&self, plan: &Plan, state: NodeState<'_>) {
        send(&self.slices, slices(&self.name, plan, &state));
    }
}

/// Sends slices to the writer if they have changed.
fn send(sender: &watch::Sender<Option<Slices>>, slices: Slices) {
    sender.send_if_modified(|latest| {
        let is_new = latest.as_ref() != Some(&slices);
        *latest = Some(slices);
        is_new
    });
}

/// Returns the bodies of attachments at this time, and the time until the next change, or until the
/// time of that change may be known.
fn at_time<'a>(
    wanted: &BTreeMap<String, WantedAttachment>,
    views: impl Iterator<Item = &'a AttachmentView>,
) -> (BTreeMap<String, Value>, Option<Duration>) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let since = views.filter_map(|view| Some((view.name.as_str(), view.since_unix?)));
    let since: BTreeMap<&str, u64> = since.collect();
    let mut next: Option<Duration> = None;
    let bodies = wanted.iter().map(|(name, wanted)| {
        let mut body = wanted.body.clone();
        if let (Some(timeline), Some(link)) = (&wanted.timeline, wanted.body["link"].as_object()) {
            let since = since.get(name.as_str()).copied().map(Duration::from_secs);
            let (options, until) = timeline.at(link, now, since);
            body["link"] = Value::Object(options);
            let until = until.or(since.is_none().then_some(RETRY));
            next = [next, until].into_iter().flatten().min();
        }
        (name.clone(), body)
    });
    let bodies = bodies.collect();
    (bodies, next)
}

/// Returns whether an attachment was created by an agent.
fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}
