//! Prometheus metrics of the agent and the controller.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestKind {
    request: NodeRequest,
    outcome: Outcome,
}

/// A request to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(missing_docs)]
pub enum NodeRequest {
    List,
    Put,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Outcome {
    Done,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateKind {
    state: &'static str,
}

/// Metrics of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    watch_errors: Family<Kind, Counter>,
    requests: Family<RequestKind, Counter>,
    attachments: Family<StateKind, Gauge>,
    status_writes: Family<Kind, Counter>,
    reaction: Histogram,
    leader: Gauge,
    synced: Gauge,
    turns: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("longwire_kube");
        let watch_errors = Family::default();
        registry.register("watch_errors", "Broken watches", watch_errors.clone());
        let requests = Family::default();
        registry.register("node_requests", "Requests to the node", requests.clone());
        let attachments = Family::default();
        let help = "Attachments of this node by state";
        registry.register("attachments", help, attachments.clone());
        let status_writes = Family::default();
        let help = "Writes of status to the API server";
        registry.register("status_writes", help, status_writes.clone());
        let buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
        let reaction = Histogram::new(buckets);
        let help = "Seconds from a cache change to its application";
        registry.register("reaction_seconds", help, reaction.clone());
        let leader = Gauge::default();
        registry.register("leader", "1 for the leading controller", leader.clone());
        let synced = Gauge::default();
        let help = "1 once all caches are complete";
        registry.register("synced", help, synced.clone());
        let turns = Counter::default();
        registry.register("turns", "Reconciliations", turns.clone());
        Metrics {
            registry: Arc::new(registry),
            watch_errors,
            requests,
            attachments,
            status_writes,
            reaction,
            leader,
            synced,
            turns,
        }
    }
}

impl Metrics {
    /// Returns the counter of broken watches for a kind.
    pub fn watch_errors(&self, kind: &str) -> Counter {
        let kind = kind.to_owned();
        self.watch_errors.get_or_create(&Kind { kind }).clone()
    }

    /// Counts a request to the node.
    pub fn count_request<T, E>(&self, request: NodeRequest, result: &Result<T, E>) {
        let outcome = if result.is_ok() {
            Outcome::Done
        } else {
            Outcome::Failed
        };
        let kind = RequestKind { request, outcome };
        self.requests.get_or_create(&kind).inc();
    }

    /// Sets the numbers of attached and waiting attachments.
    pub fn set_attachments(&self, attached: usize, waiting: usize) {
        for (state, count) in [("attached", attached), ("waiting", waiting)] {
            let gauge = self.attachments.get_or_create(&StateKind { state });
            gauge.set(count as i64);
        }
    }

    /// Counts a write of the status of a kind.
    pub fn count_status_write(&self, kind: &str) {
        let kind = kind.to_owned();
        self.status_writes.get_or_create(&Kind { kind }).inc();
    }

    /// Records the time from a change to its application.
    pub fn observe_reaction(&self, time: Duration) {
        self.reaction.observe(time.as_secs_f64());
    }

    /// Sets whether this controller leads.
    pub fn set_leader(&self, is_leader: bool) {
        self.leader.set(i64::from(is_leader));
    }

    /// Counts a comparison with complete caches.
    pub fn count_turn(&self) {
        self.synced.set(1);
        self.turns.inc();
    }

    /// Returns all metrics as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        encode(&mut text, &self.registry).unwrap_or_default();
        text
    }
}
