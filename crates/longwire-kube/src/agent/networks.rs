//! The parts of networks that run on this node.
//!
//! A separate task manages them, because the node answers a change only after the network's
//! previous process has ended, and links must not wait for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::slices::{SliceKey, Slices, hindrance_of, set_counters, set_hindrance};
use super::texts::for_users;
use super::{AgentSettings, COUNTERS_EVERY, DEBOUNCE, RETRY, RunCounters, is_ours, send};
use crate::api::{NodeStatus, Reason};
use crate::network::{LABEL, PlacedNetwork};
use crate::node::{Counters, NETWORKS, NetworkState, NetworkView, NodeClient, NodeError};
use crate::plan::{Hindrance, network_name};
use crate::slice::ResourceKind;
use crate::watch::{Task, Watch, Watcher, all};

/// Maximum number of concurrent requests; each may wait for a process to end.
const AT_ONCE: usize = 8;

/// Starts the task that manages the node's networks. Also returns a receiver of the networks'
/// slices.
pub(super) fn start(
    watcher: &Watcher,
    settings: &AgentSettings,
    node: NodeClient,
) -> (Task, watch::Receiver<Option<Slices>>) {
    let changed = Arc::<Notify>::default();
    let watcher = Watcher {
        changed: Arc::clone(&changed),
        ..watcher.clone()
    };
    let secrets = Api::namespaced(watcher.client.clone(), &settings.namespace);
    let of_networks = all().labels(&format!("{LABEL}=true"));
    let secrets = watcher.start(secrets, of_networks, |secret: Secret| {
        PlacedNetwork::of(&secret)
    });
    let (sender, slices) = watch::channel(None);
    let name = settings.node.clone();
    let task = Task::start(work(name, node, secrets, changed, sender));
    (task, slices)
}

/// Keeps the node's networks up to date with the secrets; never returns.
async fn work(
    name: String,
    node: NodeClient,
    secrets: Watch<Option<PlacedNetwork>>,
    changed: Arc<Notify>,
    slices: watch::Sender<Option<Slices>>,
) {
    let mut parts = NetworkParts::default();
    let mut wait = RETRY;
    loop {
        tokio::select! {
            () = changed.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(wait) => {}
        }
        wait = RETRY;
        let Some(networks) = secrets.cache.objects() else {
            continue;
        };
        let networks: Vec<PlacedNetwork> = networks.into_iter().flatten().collect();
        let found = parts.apply(&node, &name, &networks).await;
        if parts.has_failed {
            tracing::warn!("some networks of the node could not be reconciled");
        } else {
            wait = COUNTERS_EVERY;
        }
        send(&slices, found);
    }
}

/// The parts of networks on a node.
#[derive(Debug, Default)]
pub(super) struct NetworkParts {
    /// Body of each network's last successful request, kept for comparisons, because responses omit
    /// the key.
    asked: BTreeMap<String, Value>,
    counters: RunCounters,
    /// Whether a request of the last comparison failed.
    has_failed: bool,
}

/// A desired network.
#[derive(Debug)]
struct WantedNetwork<'a> {
    name: String,
    network: &'a PlacedNetwork,
    body: Value,
}

/// Result of the last request for a network, or the network's view.
#[derive(Debug)]
struct NetworkAttempt {
    /// Network before the request was sent.
    before: Option<NetworkView>,
    result: Result<NetworkView, NodeError>,
}

impl NetworkAttempt {
    /// Returns whether the network carries frames. After a refused change, it still runs the
    /// previous topology.
    fn is_running(&self) -> bool {
        match &self.result {
            Ok(view) => view.is_running(),
            Err(NodeError::Refused { .. }) => {
                self.before.as_ref().is_some_and(NetworkView::is_running)
            }
            Err(_) => false,
        }
    }
}

impl NetworkParts {
    /// Updates the node's networks. Returns their slices.
    pub async fn apply(
        &mut self,
        node: &NodeClient,
        name: &str,
        networks: &[PlacedNetwork],
    ) -> Slices {
        let wanted = networks.iter().filter_map(|network| {
            Some(WantedNetwork {
                name: network_name(&network.resource()),
                network,
                body: network.body(name)?,
            })
        });
        let wanted: Vec<WantedNetwork<'_>> = wanted.collect();
        let views = match node.supported_networks().await {
            Ok(views) => views,
            Err(error) => {
                self.has_failed = true;
                return unreachable(name, networks, &error);
            }
        };
        let is_wanted = |name: &String| wanted.iter().any(|one| one.name == *name);
        self.asked.retain(|name, _| is_wanted(name));
        self.counters.by_name.retain(|name, _| is_wanted(name));
        let unwanted = views.iter().map(|view| &view.name);
        let unwanted = unwanted.filter(|name| is_ours(name) && !is_wanted(name));
        // Remove networks first, because a new one may reuse a UDP port.
        let are_removed = remove(node, unwanted.cloned().collect()).await;
        let attempts = self.bring_up(node, &wanted, &views).await;
        self.has_failed = !are_removed || attempts.iter().any(|attempt| attempt.result.is_err());
        let running = wanted.iter().zip(&attempts);
        let running = running.filter(|(_, attempt)| attempt.is_running());
        let running = running.map(|(one, _)| one.name.as_str());
        self.counters.update(node, NETWORKS, running).await;
        let slices = wanted.iter().zip(attempts).map(|(one, attempt)| {
            let counters = self.counters.by_name.get(&one.name).copied();
            let counters = counters.unwrap_or_default();
            let key = (ResourceKind::Network, one.network.resource());
            (key, slice(name, one.network, &attempt, counters))
        });
        slices.collect()
    }

    /// Puts the networks that differ. Returns an attempt per network, in the order of `wanted`.
    async fn bring_up(
        &mut self,
        node: &NodeClient,
        wanted: &[WantedNetwork<'_>],
        views: &[NetworkView],
    ) -> Vec<NetworkAttempt> {
        let asked = &self.asked;
        let puts = wanted.iter().map(|one| async move {
            let before = views.iter().find(|view| view.name == one.name).cloned();
            let result = match &before {
                Some(view) if asked.get(&one.name) == Some(&one.body) => Ok(view.clone()),
                _ => put(node, one).await,
            };
            NetworkAttempt { before, result }
        });
        let puts: Vec<_> = puts.collect();
        let attempts: Vec<NetworkAttempt> = stream::iter(puts).buffered(AT_ONCE).collect().await;
        for (one, attempt) in wanted.iter().zip(&attempts) {
            if attempt.result.is_ok() {
                self.asked.insert(one.name.clone(), one.body.clone());
            }
        }
        attempts
    }
}

/// Removes networks; returns whether all were removed.
async fn remove(node: &NodeClient, names: Vec<String>) -> bool {
    let removals = names.into_iter().map(|name| async move {
        let removed = node.delete(NETWORKS, &name).await;
        match &removed {
            Ok(()) => tracing::info!(name, "network removed"),
            Err(error) => tracing::warn!(name, %error, "network not removed"),
        }
        removed.is_ok()
    });
    let removals = stream::iter(removals).buffer_unordered(AT_ONCE);
    let removed: Vec<bool> = removals.collect().await;
    !removed.contains(&false)
}

async fn put(node: &NodeClient, wanted: &WantedNetwork<'_>) -> Result<NetworkView, NodeError> {
    let name = &wanted.name;
    let result = node.put_network(name, &wanted.body).await;
    match &result {
        Ok(view) => tracing::info!(name, state = ?view.state, "network put"),
        Err(error) => tracing::warn!(name, %error, "network not run"),
    }
    result
}

fn slice(
    node: &str,
    network: &PlacedNetwork,
    attempt: &NetworkAttempt,
    counters: Counters,
) -> NodeStatus {
    let mut slice = part(node, network);
    set_counters(&mut slice, counters);
    if attempt.is_running() {
        slice.attached = slice.pods;
    }
    let key = network.resource();
    let is_own = |name: &str| name == network_name(&key);
    let resource_of = |name: &str| is_own(name).then(|| format!("Network {key}"));
    let mut hindrance = match &attempt.result {
        Ok(view) if view.is_running() => return slice,
        Ok(view) => {
            slice.waiting = slice.pods;
            let text = view.reason.as_deref().and_then(|text| text.lines().next());
            let text = for_users(text.unwrap_or("starting"), &resource_of);
            if view.state == NetworkState::Starting {
                // Omit the reason, because the network is about to run.
                slice.message = Some(text);
                return slice;
            }
            Hindrance::new(Reason::Waiting, text)
        }
        Err(error) => hindrance_of("the network", error, &resource_of),
    };
    if let Some(pointer) = &mut hindrance.pointer
        && let Some(rest) = pointer.strip_prefix("/file")
    {
        *pointer = format!("/topology{rest}");
    }
    set_hindrance(&mut slice, hindrance);
    slice
}

/// Returns a node's slice for a network whose state is not known yet.
fn part(node: &str, network: &PlacedNetwork) -> NodeStatus {
    NodeStatus {
        node: node.to_owned(),
        observed_generation: network.generation,
        pods: network.pods_of(node).len() as i64,
        ..NodeStatus::default()
    }
}

/// Returns the slices for a node that does not answer.
fn unreachable(node: &str, networks: &[PlacedNetwork], error: &NodeError) -> Slices {
    let here = networks.iter().filter(|it| !it.pods_of(node).is_empty());
    let slices = here.map(|network| -> (SliceKey, NodeStatus) {
        let slice = NodeStatus {
            reason: Some(Reason::NodeUnavailable),
            message: Some(error.to_string()),
            ..part(node, network)
        };
        ((ResourceKind::Network, network.resource()), slice)
    });
    slices.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::PortPlacement;

    fn network() -> PlacedNetwork {
        let port = |port: &str| PortPlacement {
            port: port.to_owned(),
            pod: format!("shop/{port}"),
            node: "m1".to_owned(),
        };
        PlacedNetwork {
            namespace: "shop".to_owned(),
            name: "wan".to_owned(),
            ports: vec![port("a"), port("b")],
            ..PlacedNetwork::default()
        }
    }

    fn view(state: NetworkState) -> NetworkView {
        let view = json!({ "name": "kube-shop-wan", "state": state, "spec": {} });
        serde_json::from_value(view).expect("a view")
    }

    fn refused() -> NodeError {
        NodeError::Refused {
            message: "no".to_owned(),
            problems: Vec::new(),
        }
    }

    fn slice_of(before: Option<NetworkView>, result: Result<NetworkView, NodeError>) -> NodeStatus {
        let attempt = NetworkAttempt { before, result };
        slice("m1", &network(), &attempt, Counters::default())
    }

    #[test]
    fn a_network_that_refuses_a_file_is_attached_while_it_runs() {
        let running = view(NetworkState::Running);
        let kept = slice_of(Some(running.clone()), Err(refused()));
        assert_eq!((kept.attached, kept.reason), (2, Some(Reason::Refused)));
        let new = slice_of(None, Err(refused()));
        assert_eq!((new.attached, new.reason), (0, Some(Reason::Refused)));
        // After any other failure, the network's state is unknown.
        let failed = NodeError::Failed("no space".to_owned());
        assert_eq!(slice_of(Some(running), Err(failed)).attached, 0);
    }

    #[test]
    fn a_network_that_starts_has_no_hindrance() {
        let starting = slice_of(None, Ok(view(NetworkState::Starting)));
        assert_eq!((starting.waiting, starting.reason), (2, None));
        assert_eq!(starting.message.as_deref(), Some("starting"));
        let waiting = slice_of(None, Ok(view(NetworkState::Waiting)));
        assert_eq!(
            (waiting.waiting, waiting.reason),
            (2, Some(Reason::Waiting))
        );
    }
}
