//! Requests to the node, with retries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::Value;

use super::differences::{Differences, differences};
use super::{RETRY, is_ours};
use crate::metrics::{Metrics, NodeRequest};
use crate::node::{AttachmentView, NodeClient, NodeError};
use crate::plan::KeptAttachment;

/// Maximum concurrent requests.
const AT_ONCE: usize = 8;

/// Retry delay of a failed request.
const REPEAT: Duration = Duration::from_secs(2);

/// Retry delay of a refused request: a file or the node's version may have changed.
const REPEAT_REFUSED: Duration = Duration::from_secs(30);

/// Failed requests by attachment.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failed: BTreeMap<String, FailedPut>,
    errors: BTreeMap<String, NodeError>,
    /// Whether a removal failed; the next comparison finds it again.
    has_failed_removal: bool,
}

#[derive(Debug)]
struct FailedPut {
    body: Value,
    next: Instant,
}

impl Attempts {
    /// Sends requests to remove the differences; returns the resulting attachments.
    pub async fn apply(
        &mut self,
        node: &NodeClient,
        wanted: &BTreeMap<String, Value>,
        kept: &BTreeMap<String, KeptAttachment>,
        views: Vec<AttachmentView>,
        metrics: &Metrics,
    ) -> BTreeMap<String, AttachmentView> {
        let Differences { remove, put } = differences(wanted, kept, &views);
        let exists = |name: &str| views.iter().any(|view| view.name == name);
        let now = Instant::now();
        self.forget(wanted, &put);
        let removals = remove.iter().map(|name| async move {
            let removed = node.delete(name).await;
            metrics.count_request(NodeRequest::Delete, &removed);
            match &removed {
                Ok(()) => tracing::info!(name, "detached"),
                Err(error) => tracing::warn!(name, %error, "not detached"),
            }
            removed.is_ok()
        });
        let removals = stream::iter(removals).buffer_unordered(AT_ONCE);
        let removed: Vec<bool> = removals.collect().await;
        self.has_failed_removal = removed.contains(&false);
        let due = put
            .iter()
            .filter(|name| self.is_due(name, &wanted[*name], now));
        let puts = due.map(|name| {
            let is_there = exists(name);
            async move {
                let result = put_or_replace(node, name, &wanted[name], is_there).await;
                metrics.count_request(NodeRequest::Put, &result);
                (name.clone(), result)
            }
        });
        let puts: Vec<_> = puts.collect();
        let results: Vec<_> = stream::iter(puts).buffer_unordered(AT_ONCE).collect().await;
        let rest = views
            .into_iter()
            .filter(|view| is_ours(&view.name) && !remove.contains(&view.name));
        let mut views: BTreeMap<_, _> = rest.map(|view| (view.name.clone(), view)).collect();
        for (name, result) in results {
            match result {
                Ok(view) => {
                    tracing::info!(name, state = ?view.state, "put");
                    self.failed.remove(&name);
                    self.errors.remove(&name);
                    views.insert(name, view);
                }
                Err(error) => self.note(name, wanted, error),
            }
        }
        views
    }

    /// Returns the errors of the last requests by attachment.
    pub fn errors(&self) -> &BTreeMap<String, NodeError> {
        &self.errors
    }

    /// Returns the time until the next retry.
    pub fn retry_after(&self) -> Option<Duration> {
        let next = self.failed.values().map(|failed| failed.next).min();
        let put = next.map(|next| next.saturating_duration_since(Instant::now()));
        let removal = self.has_failed_removal.then_some(RETRY);
        [put, removal].into_iter().flatten().min()
    }

    /// Forgets attachments that are no longer desired, or no longer differ.
    fn forget(&mut self, wanted: &BTreeMap<String, Value>, put: &[String]) {
        let differs = |name: &String| wanted.contains_key(name) && put.contains(name);
        self.failed.retain(|name, _| differs(name));
        self.errors.retain(|name, _| differs(name));
    }

    fn is_due(&self, name: &str, body: &Value, now: Instant) -> bool {
        let failed = self.failed.get(name);
        failed.is_none_or(|failed| failed.body != *body || failed.next <= now)
    }

    fn note(&mut self, name: String, wanted: &BTreeMap<String, Value>, error: NodeError) {
        tracing::warn!(name, %error, "not attached");
        let after = match error {
            NodeError::Refused { .. } => REPEAT_REFUSED,
            _ => REPEAT,
        };
        let failed = FailedPut {
            body: wanted[&name].clone(),
            next: Instant::now() + after,
        };
        self.failed.insert(name.clone(), failed);
        self.errors.insert(name, error);
    }
}

/// Puts an attachment. One at another place cannot be changed, and is replaced.
async fn put_or_replace(
    node: &NodeClient,
    name: &str,
    body: &Value,
    exists: bool,
) -> Result<AttachmentView, NodeError> {
    match node.put(name, body).await {
        Err(NodeError::Conflict(_)) if exists => {
            node.delete(name).await?;
            node.put(name, body).await
        }
        result => result,
    }
}

/// Removes all attachments and networks of agents from a node. Returns their names.
///
/// # Errors
/// If the node does not answer, or fails to remove one.
pub async fn remove_all(node: &NodeClient) -> Result<Vec<String>, NodeError> {
    let views = node.attachments().await?;
    let names = views.into_iter().map(|view| view.name);
    let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
    for name in &names {
        node.delete(name).await?;
    }
    let networks = match node.networks().await {
        Ok(networks) => networks,
        // An earlier version of the node has no networks.
        Err(NodeError::Missing(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let of_networks = networks.into_iter().map(|view| view.name);
    for name in of_networks.filter(|name| is_ours(name)) {
        node.delete_network(&name).await?;
        names.push(name);
    }
    Ok(names)
}
