//! Controller: one replica leads, and sums up the reports of all agents.

mod events;
mod lease;
mod links;
mod networks;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::runtime::events::Reporter;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::agent::{AgentError, end_signal};
use crate::api::Link;
use crate::controller::events::EventPublisher;
use crate::controller::lease::{Candidate, RENEW_DEADLINE, RETRY};
use crate::controller::links::LinkStatuses;
use crate::controller::networks::Networks;
use crate::metrics::{Health, Metrics, serve};
use crate::watch::{Watch, Watcher, all};

/// Field manager of the controller, and its name in events.
const MANAGER: &str = "longwire-controller";

/// Delay to collect changes before a round.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Maximum time between rounds.
const RESYNC: Duration = Duration::from_secs(30);

/// Retry delay after a failed round.
const REPEAT: Duration = Duration::from_secs(2);

/// Settings of a controller.
#[derive(Clone, Debug, clap::Args)]
pub struct ControllerSettings {
    /// Namespace of the lease
    #[arg(long, env = "POD_NAMESPACE", default_value = "longwire-system")]
    pub namespace: String,
    /// Name of this replica
    #[arg(long, env = "POD_NAME")]
    pub identity: String,
    /// Listening address for /metrics, /healthz and /readyz
    #[arg(long, default_value = "0.0.0.0:9472")]
    pub listen: SocketAddr,
}

/// Runs a controller until SIGTERM or SIGINT.
///
/// # Errors
/// If the metrics address cannot be bound.
pub async fn run(settings: ControllerSettings, client: Client) -> Result<(), AgentError> {
    let (address, metrics, health) = serve(settings.listen).await?;
    tracing::info!(identity = settings.identity, %address, "controller starts");
    let end = end_signal()?;
    let (namespace, identity) = (&settings.namespace, &settings.identity);
    let mut candidate = Candidate::new(client.clone(), namespace, identity);
    tokio::select! {
        () = campaign(&mut candidate, &settings, &client, &metrics, &health) => {}
        () = end => {}
    }
    metrics.set_leader(false);
    // If this fails, the next leader waits for the lease to expire.
    let released = timeout(RETRY, candidate.release()).await;
    tracing::info!(
        is_released = matches!(released, Ok(Ok(()))),
        "controller ends"
    );
    Ok(())
}

/// Competes for the lease, and leads while it holds the lease.
async fn campaign(
    candidate: &mut Candidate,
    settings: &ControllerSettings,
    client: &Client,
    metrics: &Metrics,
    health: &Health,
) {
    loop {
        if candidate.owner.is_none() {
            match owner(client, &settings.namespace).await {
                Ok(found) => candidate.owner = found,
                Err(error) => tracing::warn!(%error, "cannot look up this controller's Deployment"),
            }
        }
        let attempt = candidate.attempt().await;
        health.beat(attempt.is_ok());
        match attempt {
            Ok(true) => {
                tracing::info!("leads");
                metrics.set_leader(true);
                let owner = candidate.owner.clone();
                let leader = Leader::new(settings, client.clone(), owner, metrics.clone());
                tokio::select! {
                    () = leader.work() => {}
                    () = keep(candidate, health) => {}
                }
                metrics.set_leader(false);
                tracing::warn!("no longer leads");
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "cannot acquire the lease"),
        }
        sleep(RETRY).await;
    }
}

/// Renews the lease. Returns when the lease is lost or the renewal deadline has passed.
async fn keep(candidate: &mut Candidate, health: &Health) {
    let mut renewed = Instant::now();
    loop {
        sleep(RETRY).await;
        let left = RENEW_DEADLINE.saturating_sub(renewed.elapsed());
        match timeout(left, candidate.attempt()).await {
            Ok(Ok(true)) => {
                renewed = Instant::now();
                health.beat(true);
            }
            Ok(Ok(false)) => return,
            Ok(Err(error)) => tracing::warn!(%error, "the lease was not renewed"),
            Err(_) => {}
        }
        if renewed.elapsed() >= RENEW_DEADLINE {
            return;
        }
    }
}

/// State of the leading replica.
struct Leader {
    links: Watch<Link>,
    nodes: Watch<String>,
    changed: Arc<Notify>,
    statuses: LinkStatuses,
    networks: Networks,
    metrics: Metrics,
}

impl Leader {
    fn new(
        settings: &ControllerSettings,
        client: Client,
        owner: Option<OwnerReference>,
        metrics: Metrics,
    ) -> Leader {
        let watcher = Watcher {
            client: client.clone(),
            changed: Arc::default(),
            metrics: metrics.clone(),
        };
        let reporter = Reporter {
            controller: MANAGER.to_owned(),
            instance: Some(settings.identity.clone()),
        };
        let events = EventPublisher::new(client.clone(), reporter);
        Leader {
            links: watcher.start(Api::all(client.clone()), all(), without_version),
            nodes: watcher.start(Api::all(client.clone()), all(), |node: Node| {
                node.name_any()
            }),
            statuses: LinkStatuses::new(client, events.clone(), metrics.clone()),
            changed: Arc::clone(&watcher.changed),
            networks: Networks::new(watcher, &settings.namespace, owner, events),
            metrics,
        }
    }

    async fn work(mut self) {
        let mut wait = RESYNC;
        loop {
            tokio::select! {
                () = self.changed.notified() => sleep(DEBOUNCE).await,
                () = sleep(wait) => {}
            }
            wait = match self.round().await {
                Ok(next) => next.unwrap_or(RESYNC).min(RESYNC),
                Err(error) => {
                    tracing::warn!(%error, "incomplete round");
                    REPEAT
                }
            };
        }
    }

    async fn round(&mut self) -> Result<Option<Duration>, kube::Error> {
        let (Some(links), Some(nodes)) = (self.links.cache.objects(), self.nodes.cache.objects())
        else {
            return Ok(None);
        };
        self.metrics.count_turn();
        let nodes: BTreeSet<String> = nodes.into_iter().collect();
        let next = self.statuses.update(&links, &nodes).await?;
        self.networks.update(&nodes).await?;
        Ok(next)
    }
}

/// Drops the version, which differs after each write.
fn without_version<K: ResourceExt>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object.meta_mut().resource_version = None;
    object
}

/// Name of the controller's Deployment.
const DEPLOYMENT: &str = "longwire-controller";

/// Returns a reference to the controller's Deployment, which owns the secrets and the lease, so
/// that the cluster garbage-collects them. `None` for a controller outside the cluster.
///
/// # Errors
/// If the API server fails.
async fn owner(client: &Client, namespace: &str) -> Result<Option<OwnerReference>, kube::Error> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(DEPLOYMENT).await?;
    Ok(deployment.and_then(|deployment| deployment.owner_ref(&())))
}
