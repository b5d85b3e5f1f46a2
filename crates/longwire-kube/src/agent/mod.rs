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
use serde_json::Value;
use slices::{NodeState, Slices, slices};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

use crate::metrics::{Health, Metrics, NodeRequest, serve};
use crate::node::{ATTACHMENTS, AttachmentView, Counters, NodeClient, NodeError};
use crate::plan::{PREFIX, Plan, WantedAttachment, plan};
use crate::watch::{Task, Watcher};

/// Delay to collect changes before a round.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Retry interval while the node does not answer.
const RETRY: Duration = Duration::from_millis(500);

/// Interval between counter reads, and maximum interval between comparisons with the node.
const COUNTERS_EVERY: Duration = Duration::from_secs(5);

/// Minimum time between rounds, so that scenarios do not saturate a core.
const TURN_MIN: Duration = Duration::from_millis(10);

/// Settings of an agent.
#[derive(Clone, Debug, clap::Args)]
pub struct AgentSettings {
    /// Name of the node in the cluster
    #[arg(long, env = "NODE_NAME")]
    pub node: String,
    /// Namespace of the agent and of the networks' secrets
    #[arg(long, env = "POD_NAMESPACE", default_value = "longwire-system")]
    pub namespace: String,
    /// Socket of `longwire node`
    #[arg(long, default_value = "/run/longwire/node.sock")]
    pub node_socket: PathBuf,
    /// Listening address for /metrics, /healthz and /readyz
    #[arg(long, default_value = "0.0.0.0:9471")]
    pub listen: SocketAddr,
}

/// Fatal error of an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
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
    let (address, metrics, health) = serve(settings.listen).await?;
    tracing::info!(node = settings.node, %address, "agent starts");
    let end = end_signal()?;
    let mut agent = Agent::new(&settings, client, metrics, health);
    tokio::select! {
        () = agent.work() => {}
        () = end => {}
    }
    tracing::info!("agent ends; attachments stay");
    Ok(())
}

/// Returns a future that waits for SIGTERM or SIGINT.
pub(crate) fn end_signal() -> Result<impl Future<Output = ()>, AgentError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(AgentError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AgentError::Signal)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

struct Agent {
    name: String,
    node: NodeClient,
    caches: Caches,
    changed: Arc<Notify>,
    attempts: Attempts,
    counters: RunCounters,
    slices: watch::Sender<Option<Slices>>,
    /// Tasks that manage networks and write slices.
    _tasks: [Task; 2],
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
        let node = NodeClient::new(&settings.node_socket);
        let (networks, of_networks) = networks::start(&watcher, settings, node.clone());
        let latest = [of_links, of_networks];
        let writer = writer::start(client, &settings.node, latest, metrics.clone());
        Agent {
            name: settings.node.clone(),
            node,
            changed: Arc::clone(&watcher.changed),
            caches: Caches::start(watcher, &settings.node),
            attempts: Attempts::default(),
            counters: RunCounters::default(),
            slices,
            _tasks: [networks, writer],
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
            let next = self.reconcile().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "reconciliation failed");
                None
            });
            self.health.beat(next.is_some());
            wait = next.map_or(RETRY, |next| next.clamp(TURN_MIN, COUNTERS_EVERY));
            if let Some(changed_at) = changed_at.filter(|_| next.is_some()) {
                self.metrics.observe_reaction(changed_at.elapsed());
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
        self.counters
            .by_name
            .retain(|name, _| views.contains_key(name));
        let attached = views.values().filter(|view| view.is_attached());
        let names = attached.clone().map(|view| view.name.as_str());
        self.counters.update(&self.node, ATTACHMENTS, names).await;
        let attached = attached.count();
        let waiting = views.len() - attached;
        self.metrics.set_attachments(attached, waiting);
        let state = NodeState {
            views: &views,
            errors: &self.attempts.errors,
            counters: &self.counters.by_name,
            node_error: None,
        };
        self.publish(&plan, state);
        let times = [Some(COUNTERS_EVERY), next, self.attempts.retry_after()];
        Ok(times.into_iter().flatten().min())
    }

    fn publish(&self, plan: &Plan, state: NodeState<'_>) {
        send(&self.slices, slices(&self.name, plan, &state));
    }
}

/// Counters of runs, by attachment or network.
#[derive(Debug, Default)]
struct RunCounters {
    by_name: BTreeMap<String, Counters>,
    read_at: Option<Instant>,
}

impl RunCounters {
    /// Reads the counters of runs in this list, unless they are recent.
    async fn update(&mut self, node: &NodeClient, list: &str, names: impl Iterator<Item = &str>) {
        // The loops that call this wait for about `COUNTERS_EVERY`.
        let is_recent = |at: Instant| at.elapsed() < COUNTERS_EVERY - Duration::from_millis(100);
        if self.read_at.is_some_and(is_recent) {
            return;
        }
        self.read_at = Some(Instant::now());
        for name in names {
            match node.counters(list, name).await {
                Ok(counters) => drop(self.by_name.insert(name.to_owned(), counters)),
                // The run may have ended; if so, the next list omits it.
                Err(error) => tracing::debug!(name, %error, "no counters"),
            }
        }
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

/// Returns the current bodies of attachments, and the time until the next change. While a scenario
/// waits for its link to be attached, that time is at most [`RETRY`].
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
