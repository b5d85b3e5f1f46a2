//! Writes a node's slices to the status of its resources.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::slices::{SliceKey, Slices};
use crate::api::{Link, Network, NodeStatus};
use crate::metrics::Metrics;
use crate::plan::ResourceKey;
use crate::slice::{ResourceKind, apply_slice};
use crate::watch::{Backoff, Task};

/// Minimum interval between writes.
const ROUND: Duration = Duration::from_millis(500);

/// Minimum interval between writes of a slice in which only counters differ.
const COUNTERS: Duration = Duration::from_secs(5);

/// Interval at which slices are read back: the controller may have removed one in the agent's name
/// while the node was missing from the controller's cache.
const READ_BACK: Duration = Duration::from_secs(120);

/// Starts the task that writes slices.
pub(super) fn start(
    client: Client,
    node: &str,
    mut latest: [watch::Receiver<Option<Slices>>; 2],
    metrics: Metrics,
) -> Task {
    let mut writer = Writer::new(client, node, metrics);
    Task::start(async move {
        let mut wait = READ_BACK;
        loop {
            let [links, networks] = &mut latest;
            let is_open = tokio::select! {
                changed = links.changed() => changed.is_ok(),
                changed = networks.changed() => changed.is_ok(),
                () = sleep(wait) => true,
            };
            if !is_open {
                return;
            }
            let slices = [links, networks].map(|one| one.borrow_and_update().clone());
            wait = writer.write(slices).await.unwrap_or(READ_BACK);
            sleep(ROUND).await;
        }
    })
}

/// Written slices, and the times at which they were written.
type SliceRecords = BTreeMap<SliceKey, (NodeStatus, Instant)>;

/// Latest slices of links and of networks; `None` until known.
type LatestSlices = [Option<Slices>; 2];

struct Writer {
    client: Client,
    node: String,
    /// Written slices; `None` until read back.
    written: Option<SliceRecords>,
    read_at: Instant,
    backoff: Backoff,
    metrics: Metrics,
}

impl Writer {
    fn new(client: Client, node: &str, metrics: Metrics) -> Writer {
        Writer {
            client,
            node: node.to_owned(),
            written: None,
            read_at: Instant::now(),
            backoff: Backoff::default(),
            metrics,
        }
    }

    /// Writes the slices that differ. Returns the remaining delay of postponed slices.
    async fn write(&mut self, slices: LatestSlices) -> Option<Duration> {
        match self.round(slices).await {
            Ok(rest) => {
                kube::runtime::utils::Backoff::reset(&mut self.backoff);
                rest
            }
            Err(error) => {
                tracing::warn!(%error, "status was not written");
                self.backoff.next()
            }
        }
    }

    async fn round(&mut self, slices: LatestSlices) -> Result<Option<Duration>, kube::Error> {
        let written = self.written.take();
        let is_recent = self.read_at.elapsed() < READ_BACK;
        let mut written = match written.filter(|_| is_recent) {
            Some(written) => written,
            None => {
                let found = self.read_slices().await?;
                self.read_at = Instant::now();
                found
            }
        };
        let result = self.write_into(&mut written, slices).await;
        self.written = Some(written);
        result
    }

    async fn write_into(
        &self,
        written: &mut SliceRecords,
        [links, networks]: LatestSlices,
    ) -> Result<Option<Duration>, kube::Error> {
        let is_gone = |key: &&SliceKey| {
            // Slices of an earlier agent remain until the slices of their kind are known.
            let slices = match key.0 {
                ResourceKind::Link => &links,
                ResourceKind::Network => &networks,
            };
            slices.as_ref().is_some_and(|it| !it.contains_key(*key))
        };
        let gone: Vec<SliceKey> = written.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.apply(&key, None).await?;
            written.remove(&key);
        }
        let slices = [links, networks].into_iter().flatten().flatten();
        let mut rest: Option<Duration> = None;
        for (key, slice) in slices {
            if let Some((before, at)) = written.get(&key) {
                if *before == slice {
                    continue;
                }
                let until = COUNTERS.saturating_sub(at.elapsed());
                if differ_in_counters_alone(before, &slice) && !until.is_zero() {
                    rest = [rest, Some(until)].into_iter().flatten().min();
                    continue;
                }
            }
            self.apply(&key, Some(&slice)).await?;
            written.insert(key, (slice, Instant::now()));
        }
        Ok(rest)
    }

    /// Reads the node's slices from the API server.
    async fn read_slices(&self) -> Result<SliceRecords, kube::Error> {
        let mut found = SliceRecords::new();
        let mut add = |kind, key: ResourceKey, slices: Option<Vec<NodeStatus>>| {
            let mut slices = slices.into_iter().flatten();
            if let Some(own) = slices.find(|slice| slice.node == self.node) {
                found.insert((kind, key), (own, Instant::now()));
            }
        };
        let all = ListParams::default();
        for link in Api::<Link>::all(self.client.clone()).list(&all).await? {
            let key = ResourceKey::of(&link);
            add(ResourceKind::Link, key, link.status.map(|it| it.nodes));
        }
        for network in Api::<Network>::all(self.client.clone()).list(&all).await? {
            let key = ResourceKey::of(&network);
            add(
                ResourceKind::Network,
                key,
                network.status.map(|it| it.nodes),
            );
        }
        Ok(found)
    }

    /// Writes or removes a slice.
    async fn apply(
        &self,
        (kind, key): &SliceKey,
        slice: Option<&NodeStatus>,
    ) -> Result<(), kube::Error> {
        self.metrics.count_status_write(kind.as_str());
        apply_slice(&self.client, *kind, key, &self.node, slice).await
    }
}

fn differ_in_counters_alone(one: &NodeStatus, other: &NodeStatus) -> bool {
    let without = |slice: &NodeStatus| NodeStatus {
        carried: 0,
        dropped: 0,
        artifacts: 0,
        lateness_p99_us: 0,
        ..slice.clone()
    };
    without(one) == without(other)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fake_api::{Change, FakeApi};

    const LINKS: &str = "/apis/longwire.dev/v1alpha1/links";
    const NETWORKS: &str = "/apis/longwire.dev/v1alpha1/networks";

    fn link(slices: Value) -> Value {
        json!({ "metadata": { "name": "slow", "namespace": "shop" },
                "spec": { "from": { "podSelector": {} } }, "status": { "nodes": slices } })
    }

    fn slices() -> (NodeStatus, LatestSlices) {
        let slice = NodeStatus {
            node: "n1".to_owned(),
            pods: 1,
            attached: 1,
            ..NodeStatus::default()
        };
        let key = ResourceKey::new("shop", "slow");
        let links = Slices::from([((ResourceKind::Link, key), slice.clone())]);
        (slice, [Some(links), None])
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_slice_is_restored() {
        let api = FakeApi::default();
        api.set(LINKS, vec![link(json!([]))]);
        let mut writer = Writer::new(api.client(), "n1", Metrics::default());
        let (slice, latest) = slices();
        writer.write(latest.clone()).await;
        assert_eq!(api.changes().len(), 1);
        // The slice is not written again while the API server has it.
        api.set(LINKS, vec![link(json!([slice]))]);
        sleep(READ_BACK + ROUND).await;
        writer.write(latest.clone()).await;
        assert_eq!(api.changes().len(), 1);
        api.set(LINKS, vec![link(json!([]))]);
        writer.write(latest.clone()).await;
        assert_eq!(api.changes().len(), 1, "it is not read in each round");
        sleep(READ_BACK).await;
        writer.write(latest).await;
        assert_eq!(api.changes().len(), 2);
        assert_eq!(api.changes()[1].body["status"]["nodes"][0]["attached"], 1);
    }

    #[tokio::test(start_paused = true)]
    async fn slices_of_a_kind_stay_until_the_agent_knows_them() {
        let api = FakeApi::default();
        let own = json!([{ "node": "n1" }]);
        let network = json!({ "metadata": { "name": "wan", "namespace": "shop" },
            "spec": { "topology": {}, "ports": {} }, "status": { "nodes": own } });
        api.set(NETWORKS, vec![network]);
        let mut writer = Writer::new(api.client(), "n1", Metrics::default());
        let (_, [links, _]) = slices();
        writer.write([links.clone(), None]).await;
        let is_of = |part: &'static str| move |change: &Change| change.path.contains(part);
        assert!(api.changes().iter().all(is_of("/links/")));
        writer.write([links, Some(Slices::new())]).await;
        assert!(api.changes().iter().any(is_of("/networks/wan/")));
    }
}
