//! The caches of an agent.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;

use crate::api::{Link, Scenario};
use crate::facts::{Labels, PodFacts};
use crate::metrics::Metrics;
use crate::network::{LABEL, SecretNetwork};
use crate::plan::{ClusterState, needs_peers};
use crate::watch::{Watch, all, start};

/// Copies of what a plan follows from.
pub(super) struct Caches {
    client: Client,
    changed: Arc<Notify>,
    metrics: Metrics,
    links: Watch<Link>,
    /// The networks that the controller has placed.
    secrets: Watch<Option<SecretNetwork>>,
    scenarios: Watch<Scenario>,
    namespaces: Watch<(String, Labels)>,
    /// The pods of the node.
    own: Watch<PodFacts>,
    /// The pods of all nodes, from the first link on that selects peers by labels.
    peers: Option<Watch<PodFacts>>,
}

impl Caches {
    pub fn start(
        client: &Client,
        node: &str,
        namespace: &str,
        changed: &Arc<Notify>,
        metrics: &Metrics,
    ) -> Caches {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        let of_networks = all().labels(&format!("{LABEL}=true"));
        let here = all().fields(&format!("spec.nodeName={node}"));
        let pods = Api::<Pod>::all(client.clone());
        Caches {
            secrets: start(secrets, of_networks, network_of, changed, metrics),
            links: start(
                Api::all(client.clone()),
                all(),
                spec_of_link,
                changed,
                metrics,
            ),
            scenarios: start(
                Api::all(client.clone()),
                all(),
                spec_of_scenario,
                changed,
                metrics,
            ),
            namespaces: start(Api::all(client.clone()), all(), labels_of, changed, metrics),
            own: start(pods, here, facts_of, changed, metrics),
            peers: None,
            client: client.clone(),
            changed: Arc::clone(changed),
            metrics: metrics.clone(),
        }
    }

    /// Returns the networks that are placed, or `None` while the cache is not complete.
    pub fn networks(&self) -> Option<Vec<SecretNetwork>> {
        let secrets = self.secrets.cache.objects()?;
        Some(secrets.into_iter().flatten().collect())
    }

    /// Returns the state of the cluster, or `None` while any cache that it needs is not
    /// complete.
    pub fn state(&mut self, node: &str) -> Option<ClusterState> {
        let links = self.links.cache.objects()?;
        if self.peers.is_none() && needs_peers(&links) {
            let pods = Api::<Pod>::all(self.client.clone());
            let watch = start(pods, all(), facts_of, &self.changed, &self.metrics);
            self.peers = Some(watch);
        }
        let mut pods = self.own.cache.objects()?;
        if let Some(peers) = &self.peers {
            // Of pods of this node, the watch of the node is the one that counts.
            let elsewhere = |pod: &PodFacts| pod.node.as_deref() != Some(node);
            let peers = peers.cache.objects()?;
            pods.extend(peers.into_iter().filter(elsewhere));
        }
        Some(ClusterState {
            node: node.to_owned(),
            links,
            scenarios: self.scenarios.cache.objects()?,
            pods,
            namespaces: self.namespaces.cache.objects()?.into_iter().collect(),
        })
    }
}

fn network_of(secret: Secret) -> Option<SecretNetwork> {
    SecretNetwork::of(&secret)
}

fn facts_of(pod: Pod) -> PodFacts {
    PodFacts::of(&pod)
}

fn labels_of(namespace: Namespace) -> (String, Labels) {
    (namespace.name_any(), namespace.labels().clone())
}

/// Keeps what a plan needs: a change of the status is no reason for a new one.
fn spec_of_link(link: Link) -> Link {
    Link {
        metadata: identity(link.metadata),
        spec: link.spec,
        status: None,
    }
}

fn spec_of_scenario(scenario: Scenario) -> Scenario {
    Scenario {
        metadata: identity(scenario.metadata),
        spec: scenario.spec,
    }
}

fn identity(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    }
}
