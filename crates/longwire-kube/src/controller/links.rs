//! Status of links: sums, conditions and events.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Client, Resource};
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::MANAGER;
use super::events::EventPublisher;
use super::sums::{conditions, notices, sums, verdicts};
use crate::api::{Link, LinkStatus, NodeStatus};
use crate::metrics::Metrics;
use crate::plan::ResourceKey;
use crate::slice::{ResourceKind, apply_slice, apply_status};

/// Minimum interval between writes in which only counters differ.
const COUNTERS: Duration = Duration::from_secs(5);

/// Written status of all links.
pub(super) struct LinkStatuses {
    client: Client,
    events: EventPublisher,
    metrics: Metrics,
    seen: BTreeMap<ResourceKey, SeenLink>,
    /// Whether a round has completed. Until then, slices may predate this controller.
    has_begun: bool,
}

#[derive(Default)]
struct SeenLink {
    uid: Option<String>,
    slices: Vec<NodeStatus>,
    written_at: Option<Instant>,
}

impl LinkStatuses {
    pub fn new(client: Client, events: EventPublisher, metrics: Metrics) -> LinkStatuses {
        LinkStatuses {
            client,
            events,
            metrics,
            seen: BTreeMap::new(),
            has_begun: false,
        }
    }

    /// Writes the status of every link for which it differs. Returns the remaining delay of
    /// postponed counters, if any.
    ///
    /// # Errors
    /// If the API server fails.
    pub async fn update(
        &mut self,
        links: &[Link],
        nodes: &BTreeSet<String>,
    ) -> Result<Option<Duration>, kube::Error> {
        let mut rest: Option<Duration> = None;
        let mut keys = BTreeSet::new();
        for link in links {
            let key = ResourceKey::of(link);
            self.drop_lost_nodes(&key, link, nodes).await?;
            let wait = self.update_link(&key, link).await?;
            rest = [rest, wait].into_iter().flatten().min();
            keys.insert(key);
        }
        self.seen.retain(|key, _| keys.contains(key));
        self.has_begun = true;
        Ok(rest)
    }

    /// Removes slices of lost nodes, in the name of the nodes' agents.
    async fn drop_lost_nodes(
        &self,
        key: &ResourceKey,
        link: &Link,
        nodes: &BTreeSet<String>,
    ) -> Result<(), kube::Error> {
        let slices = link.status.iter().flat_map(|status| &status.nodes);
        for slice in slices.filter(|slice| !nodes.contains(&slice.node)) {
            tracing::info!(link = %key, node = slice.node, "node is gone");
            apply_slice(&self.client, ResourceKind::Link, key, &slice.node, None).await?;
        }
        Ok(())
    }

    async fn update_link(
        &mut self,
        key: &ResourceKey,
        link: &Link,
    ) -> Result<Option<Duration>, kube::Error> {
        let empty = LinkStatus::default();
        let status = link.status.as_ref().unwrap_or(&empty);
        let seen = self.seen.entry(key.clone()).or_default();
        if seen.uid != link.metadata.uid {
            *seen = SeenLink {
                uid: link.metadata.uid.clone(),
                ..SeenLink::default()
            };
            // A link created later starts unattached; a link that predates this controller may have
            // any state.
            if !self.has_begun {
                seen.slices.clone_from(&status.nodes);
            }
        }
        let notices = notices(&seen.slices, &status.nodes);
        seen.slices.clone_from(&status.nodes);
        let wanted = wanted(link, status);
        let differs = wanted != without_slices(status);
        let are_counters = differs && without_counters(&wanted) == without_counters(status);
        let passed = seen.written_at.map(|at| at.elapsed());
        let wait = passed.map_or(Duration::ZERO, |passed| COUNTERS.saturating_sub(passed));
        if are_counters && !wait.is_zero() {
            return Ok(Some(wait));
        }
        if differs {
            seen.written_at = Some(Instant::now());
            self.metrics.count_status_write("Link");
            apply_status::<Link>(&self.client, key, MANAGER, json!(wanted)).await?;
        }
        let reference = link.object_ref(&());
        for notice in notices {
            self.events.publish(&reference, notice).await?;
        }
        Ok(None)
    }
}

/// Returns the controller's part of a status.
fn wanted(link: &Link, status: &LinkStatus) -> LinkStatus {
    let generation = link.metadata.generation.unwrap_or_default();
    let sums = sums(&status.nodes);
    let verdicts = verdicts(generation, &status.nodes);
    LinkStatus {
        observed_generation: Some(generation),
        pods: Some(sums.pods),
        attached: Some(sums.attached),
        carried: Some(sums.carried),
        dropped: Some(sums.dropped),
        artifacts: Some(sums.artifacts),
        lateness_p99_us: Some(sums.lateness_p99_us),
        conditions: conditions(generation, verdicts, &status.conditions),
        nodes: Vec::new(),
    }
}

fn without_slices(status: &LinkStatus) -> LinkStatus {
    LinkStatus {
        nodes: Vec::new(),
        ..status.clone()
    }
}

fn without_counters(status: &LinkStatus) -> LinkStatus {
    LinkStatus {
        carried: None,
        dropped: None,
        artifacts: None,
        lateness_p99_us: None,
        ..without_slices(status)
    }
}
