//! The parts of networks that a node runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::is_ours;
use super::slices::{SliceKey, Slices, hindrance_of};
use crate::api::{NodeStatus, Reason};
use crate::network::SecretNetwork;
use crate::node::{Counters, NetworkView, NodeClient, NodeError};
use crate::plan::{Hindrance, network_name};
use crate::slice::ResourceKind;

/// The parts of networks on a node.
#[derive(Debug, Default)]
pub(super) struct NetworkParts {
    /// The body of the last request of each that succeeded: an answer has no key.
    asked: BTreeMap<String, Value>,
    counters: BTreeMap<String, Counters>,
}

impl NetworkParts {
    /// Makes the networks of a node those of the secrets. Returns their slices.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn apply(
        &mut self,
        node: &NodeClient,
        name: &str,
        secrets: &[SecretNetwork],
        are_counters_due: bool,
    ) -> Result<Slices, NodeError> {
        let wanted: BTreeMap<String, (&SecretNetwork, Value)> = secrets
            .iter()
            .filter_map(|secret| {
                let body = secret.network.body(name, &secret.key)?;
                Some((network_name(&secret.network.key()), (secret, body)))
            })
            .collect();
        let views = match node.networks().await {
            Ok(views) => views,
            // A node of an earlier version has no networks.
            Err(NodeError::Missing(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        self.asked.retain(|name, _| wanted.contains_key(name));
        self.counters.retain(|name, _| wanted.contains_key(name));
        let ours = views.iter().filter(|view| is_ours(&view.name));
        for view in ours.filter(|view| !wanted.contains_key(&view.name)) {
            node.delete_network(&view.name).await?;
            tracing::info!(name = view.name, "network removed");
        }
        let mut slices = Slices::new();
        for (network, (secret, body)) in &wanted {
            let view = views.iter().find(|view| view.name == *network);
            let result = self.bring_up(node, network, body, view).await;
            if are_counters_due && result.as_ref().is_ok_and(NetworkView::is_running) {
                match node.network_counters(network).await {
                    Ok(counters) => {
                        self.counters.insert(network.clone(), counters);
                    }
                    Err(error) => tracing::debug!(network, %error, "no counters"),
                }
            }
            let counters = self.counters.get(network).copied().unwrap_or_default();
            let key = (ResourceKind::Network, secret.network.key());
            slices.insert(key, slice(name, secret, &result, counters));
        }
        Ok(slices)
    }

    async fn bring_up(
        &mut self,
        node: &NodeClient,
        name: &str,
        body: &Value,
        view: Option<&NetworkView>,
    ) -> Result<NetworkView, NodeError> {
        if let Some(view) = view
            && self.asked.get(name) == Some(body)
        {
            return Ok(view.clone());
        }
        let view = node.put_network(name, body).await.inspect_err(|error| {
            tracing::warn!(name, %error, "network not run");
        })?;
        tracing::info!(name, state = ?view.state, "network put");
        self.asked.insert(name.to_owned(), body.clone());
        Ok(view)
    }
}

fn slice(
    node: &str,
    secret: &SecretNetwork,
    result: &Result<NetworkView, NodeError>,
    counters: Counters,
) -> NodeStatus {
    let pods = secret.network.pods_of(node);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut slice = NodeStatus {
        node: node.to_owned(),
        observed_generation: secret.network.generation,
        pods: number(pods.len() as u64),
        carried: number(counters.carried),
        dropped: number(counters.dropped),
        artifacts: number(counters.artifacts),
        lateness_p99_us: number(counters.lateness_p99_us),
        ..NodeStatus::default()
    };
    let hindrance = match result {
        Ok(view) if view.is_running() => {
            slice.attached = slice.pods;
            return slice;
        }
        Ok(view) => {
            slice.waiting = slice.pods;
            let reason = view.reason.as_deref().and_then(|text| text.lines().next());
            Hindrance::new(Reason::Waiting, reason.unwrap_or("it starts"))
        }
        Err(error) => hindrance_of("the network", error),
    };
    slice.reason = Some(hindrance.reason);
    slice.message = Some(hindrance.message);
    slice.pointer = hindrance
        .pointer
        .map(|pointer| match pointer.strip_prefix("/file") {
            Some(rest) => format!("/topology{rest}"),
            None => pointer,
        });
    slice.remedy = hindrance.remedy;
    slice
}

/// Returns the slices of a node whose emulator does not answer.
pub(super) fn unreachable(node: &str, secrets: &[SecretNetwork], error: &NodeError) -> Slices {
    let here = secrets
        .iter()
        .filter(|secret| !secret.network.pods_of(node).is_empty());
    let slices = here.map(|secret| -> (SliceKey, NodeStatus) {
        let slice = NodeStatus {
            node: node.to_owned(),
            observed_generation: secret.network.generation,
            pods: secret.network.pods_of(node).len() as i64,
            reason: Some(Reason::NodeUnavailable),
            message: Some(error.to_string()),
            ..NodeStatus::default()
        };
        ((ResourceKind::Network, secret.network.key()), slice)
    });
    slices.collect()
}
