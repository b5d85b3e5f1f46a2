//! Writes the slices of a node to the status of links.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::slices::{SliceKey, Slices};
use crate::api::{Link, Network, NodeStatus};
use crate::backoff::Backoff;
use crate::metrics::Metrics;
use crate::plan::ResourceKey;
use crate::slice::{ResourceKind, apply_slice, field_manager};

/// The shortest time between two rounds of writes.
const ROUND: Duration = Duration::from_millis(500);

/// The shortest time between two writes of a slice in which only counters differ.
const COUNTERS: Duration = Duration::from_secs(5);

/// The task that writes. It ends with this.
#[derive(Debug)]
pub(super) struct StatusWriter(JoinHandle<()>);

impl Drop for StatusWriter {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl StatusWriter {
    pub fn start(
        client: Client,
        node: &str,
        mut latest: watch::Receiver<Option<Slices>>,
        metrics: Metrics,
    ) -> StatusWriter {
        let node = node.to_owned();
        let task = tokio::spawn(async move {
            let mut writer = Writer {
                client,
                manager: field_manager(&node),
                node,
                written: None,
                backoff: Backoff::default(),
                metrics,
            };
            while latest.changed().await.is_ok() {
                loop {
                    let slices = latest.borrow_and_update().clone();
                    let Some(wait) = writer.write(slices.unwrap_or_default()).await else {
                        break;
                    };
                    sleep(wait).await;
                }
                sleep(ROUND).await;
            }
        });
        StatusWriter(task)
    }
}

/// Slices as they were written, and when.
type Written = BTreeMap<SliceKey, (NodeStatus, tokio::time::Instant)>;

struct Writer {
    client: Client,
    node: String,
    manager: String,
    /// Slices as they were written, and when; `None` before the first round.
    written: Option<Written>,
    backoff: Backoff,
    metrics: Metrics,
}

impl Writer {
    /// Writes what differs. Returns the time after which the rest is written; `None` if
    /// there is none.
    async fn write(&mut self, slices: Slices) -> Option<Duration> {
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

    async fn round(&mut self, slices: Slices) -> Result<Option<Duration>, kube::Error> {
        let mut written = match self.written.take() {
            Some(written) => written,
            None => self.find_leftovers().await?,
        };
        let result = self.write_into(&mut written, slices).await;
        self.written = Some(written);
        result
    }

    async fn write_into(
        &self,
        written: &mut Written,
        slices: Slices,
    ) -> Result<Option<Duration>, kube::Error> {
        let gone: Vec<SliceKey> = written
            .keys()
            .filter(|key| !slices.contains_key(key))
            .cloned()
            .collect();
        for key in gone {
            self.apply(&key, None).await?;
            written.remove(&key);
        }
        let mut rest: Option<Duration> = None;
        for (key, slice) in slices {
            if let Some((before, at)) = written.get(&key) {
                if *before == slice {
                    continue;
                }
                let until = COUNTERS.saturating_sub(at.elapsed());
                if differ_in_counters_alone(before, &slice) && !until.is_zero() {
                    rest = Some(rest.map_or(until, |rest| rest.min(until)));
                    continue;
                }
            }
            self.apply(&key, Some(&slice)).await?;
            written.insert(key, (slice, tokio::time::Instant::now()));
        }
        Ok(rest)
    }

    /// Finds slices that an earlier agent of the node has left.
    async fn find_leftovers(&self) -> Result<Written, kube::Error> {
        let mut found = Written::new();
        let mut add = |kind, metadata: ObjectMeta, slices: Vec<NodeStatus>| {
            let key = ResourceKey {
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            };
            let own = slices.into_iter().find(|slice| slice.node == self.node);
            if let Some(own) = own {
                found.insert((kind, key), (own, tokio::time::Instant::now()));
            }
        };
        let all = ListParams::default();
        for link in Api::<Link>::all(self.client.clone()).list(&all).await? {
            let slices = link.status.unwrap_or_default().nodes;
            add(ResourceKind::Link, link.metadata, slices);
        }
        for network in Api::<Network>::all(self.client.clone()).list(&all).await? {
            let slices = network.status.unwrap_or_default().nodes;
            add(ResourceKind::Network, network.metadata, slices);
        }
        Ok(found)
    }

    /// Writes a slice, or takes it away.
    async fn apply(
        &self,
        (kind, key): &SliceKey,
        slice: Option<&NodeStatus>,
    ) -> Result<(), kube::Error> {
        self.metrics.count_status_write(kind.as_str());
        apply_slice(&self.client, *kind, key, &self.manager, slice).await
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
