//! Caches of an agent.

use kube::api::ObjectMeta;
use kube::{Api, Resource};

use crate::api::{Link, Scenario};
use crate::facts::{Labels, PodFacts, labels_of};
use crate::plan::{ClusterState, needs_peers};
use crate::watch::{Watch, Watcher, all};

/// Local copies of the resources on which a plan depends.
pub(super) struct Caches {
    watcher: Watcher,
    links: Watch<Link>,
    scenarios: Watch<Scenario>,
    namespaces: Watch<(String, Labels)>,
    /// Pods of the node.
    own: Watch<PodFacts>,
    /// Pods of all nodes; present once a link selects peers by label.
    peers: Option<Watch<PodFacts>>,
}

impl Caches {
    pub fn start(watcher: Watcher, node: &str) -> Caches {
        let client = &watcher.client;
        let here = all().fields(&format!("spec.nodeName={node}"));
        Caches {
            links: watcher.start(Api::all(client.clone()), all(), spec_of_link),
            scenarios: watcher.start(Api::all(client.clone()), all(), with_identity),
            namespaces: watcher.start(Api::all(client.clone()), all(), labels_of),
            own: watcher.start(Api::all(client.clone()), here, PodFacts::of),
            peers: None,
            watcher,
        }
    }

    /// Returns the state of the cluster; `None` while a required cache is incomplete.
    pub fn state(&mut self, node: &str) -> Option<ClusterState> {
        let links = self.links.cache.objects()?;
        if self.peers.is_none() && needs_peers(&links) {
            let pods = Api::all(self.watcher.client.clone());
            self.peers = Some(self.watcher.start(pods, all(), PodFacts::of));
        }
        let mut pods = self.own.cache.objects()?;
        if let Some(peers) = &self.peers {
            // This node's watch is the authority on its pods.
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

/// Drops the status, so that status changes do not trigger a new plan.
fn spec_of_link(mut link: Link) -> Link {
    link.status = None;
    with_identity(link)
}

/// Drops the metadata that does not affect a plan.
fn with_identity<K: Resource>(mut object: K) -> K {
    let metadata = std::mem::take(object.meta_mut());
    *object.meta_mut() = ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    };
    object
}
