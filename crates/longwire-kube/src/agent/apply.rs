//! Sends requests to the node, with retries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::Value;

use crate::agent::{RETRY, is_ours};
use crate::metrics::{Metrics, NodeRequest};
use crate::node::{ATTACHMENTS, AttachmentView, NETWORKS, NodeClient, NodeError};
use crate::plan::KeptAttachment;

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// Retry delay after a failed request.
const REPEAT: Duration = Duration::from_secs(2);

/// Retry delay after a refused request. A retry may succeed, because a file or the node's version
/// may have changed.
const REPEAT_REFUSED: Duration = Duration::from_secs(30);

/// Failed requests by attachment.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failed: BTreeMap<String, FailedPut>,
    /// Errors of the last requests.
    pub errors: BTreeMap<String, NodeError>,
    /// Whether a removal failed; the next comparison will find the attachment again.
    has_failed_removal: bool,
}

#[derive(Debug)]
struct FailedPut {
    body: Value,
    next: Instant,
}

impl Attempts {
    /// Sends requests that remove the differences; returns all attachments afterwards.
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
            let removed = node.delete(ATTACHMENTS, name).await;
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
        let is_due = |name: &&String| self.is_due(name, &wanted[*name], now);
        let puts = put.iter().filter(is_due).map(|name| {
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

    /// Returns the time until the next retry.
    pub fn retry_after(&self) -> Option<Duration> {
        let next = self.failed.values().map(|failed| failed.next).min();
        let put = next.map(|next| next.saturating_duration_since(Instant::now()));
        let removal = self.has_failed_removal.then_some(RETRY);
        [put, removal].into_iter().flatten().min()
    }

    /// Drops the errors of attachments that are no longer desired or no longer differ.
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

/// Puts an attachment. Replaces it if its place has changed, because the node refuses such a
/// change.
async fn put_or_replace(
    node: &NodeClient,
    name: &str,
    body: &Value,
    exists: bool,
) -> Result<AttachmentView, NodeError> {
    match node.put(name, body).await {
        Err(NodeError::Conflict(_)) if exists => {
            node.delete(ATTACHMENTS, name).await?;
            node.put(name, body).await
        }
        result => result,
    }
}

/// Removes all attachments and networks created by agents from a node. Returns their names.
///
/// # Errors
/// If the node does not answer, or fails to remove one.
pub async fn remove_all(node: &NodeClient) -> Result<Vec<String>, NodeError> {
    let views = node.attachments().await?;
    let names = views.into_iter().map(|view| view.name);
    let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
    for name in &names {
        node.delete(ATTACHMENTS, name).await?;
    }
    let networks = node.supported_networks().await?;
    let of_networks = networks.into_iter().map(|view| view.name);
    for name in of_networks.filter(|name| is_ours(name)) {
        node.delete(NETWORKS, &name).await?;
        names.push(name);
    }
    Ok(names)
}

/// Requests needed to remove the differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Attachments of agents that are not desired. They are removed first, because new attachments
    /// may need their interfaces.
    pub remove: Vec<String>,
    /// Desired attachments that are missing or different.
    pub put: Vec<String>,
}

/// Compares attachments. Ignores those to keep, and those not created by an agent.
pub(super) fn differences(
    wanted: &BTreeMap<String, Value>,
    kept: &BTreeMap<String, KeptAttachment>,
    views: &[AttachmentView],
) -> Differences {
    let existing = |name: &str| views.iter().find(|view| view.name == name);
    let names = views.iter().map(|view| &view.name);
    let is_unwanted =
        |name: &&String| is_ours(name) && !wanted.contains_key(*name) && !kept.contains_key(*name);
    let differs = |(name, body): &(&String, &Value)| {
        existing(name).is_none_or(|view| !is_same(&view.spec, body))
    };
    let different = wanted.iter().filter(differs);
    Differences {
        remove: names.filter(is_unwanted).cloned().collect(),
        put: different.map(|(name, _)| name.clone()).collect(),
    }
}

/// Returns whether an attachment matches its request. The node may add defaults.
fn is_same(spec: &Value, body: &Value) -> bool {
    let defaults = [
        ("direction", Value::from("both")),
        ("priority", Value::Null),
        ("fail", Value::from("open")),
        ("host_network", Value::from(false)),
    ];
    let normal = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            fields.retain(|name, value| {
                let is_default =
                    |(field, default): &(&str, Value)| field == name && default == value;
                !value.is_null() && !defaults.iter().any(is_default)
            });
        }
        value
    };
    normal(spec) == normal(body)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::plan::ResourceKey;

    fn view(name: &str, spec: Value) -> AttachmentView {
        let view = json!({ "name": name, "state": "attached", "spec": spec });
        from_value(view).expect("a view")
    }

    #[test]
    fn only_attachments_of_an_agent_are_removed() {
        let views = [view("web", json!({})), view("kube-shop-x-1", json!({}))];
        let found = differences(&BTreeMap::new(), &BTreeMap::new(), &views);
        assert_eq!(found.remove, ["kube-shop-x-1"]);
        assert!(found.put.is_empty());
    }

    #[test]
    fn equal_attachments_are_left_alone() {
        let body = json!({ "target": { "pod": "shop/a" }, "link": { "delay": "1ms" } });
        let with = |fields: Value| {
            let mut spec = body.clone();
            let all = spec.as_object_mut().expect("an object");
            all.extend(fields.as_object().expect("an object").clone());
            spec
        };
        let names = ["kube-a", "kube-b", "kube-c", "kube-d"];
        let wanted = names.map(|name| (name.to_owned(), body.clone())).into();
        let defaults = json!({ "direction": "both", "priority": null, "seed": null });
        let views = [
            view("kube-a", with(defaults)),
            view("kube-b", with(json!({ "link": {} }))),
            view("kube-c", with(json!({ "direction": "up" }))),
        ];
        let found = differences(&wanted, &BTreeMap::new(), &views);
        assert!(found.remove.is_empty());
        assert_eq!(found.put, ["kube-b", "kube-c", "kube-d"]);
    }

    #[test]
    fn attachments_to_keep_are_neither_removed_nor_changed() {
        let kept = KeptAttachment {
            link: ResourceKey::new("shop", "x"),
            pod: "shop/a".to_owned(),
        };
        let kept = BTreeMap::from([("kube-a".to_owned(), kept)]);
        let spec = json!({ "target": { "pod": "shop/a" }, "link": { "delay": "1ms" } });
        let views = [view("kube-a", spec.clone()), view("kube-b", spec)];
        let found = differences(&BTreeMap::new(), &kept, &views);
        assert_eq!(found.remove, ["kube-b"]);
        assert!(found.put.is_empty());
    }
}
