//! Plan of a node: the desired attachments, as a pure function of the cluster's state and the time.

mod name;
mod peers;
mod timeline;

use std::collections::BTreeMap;

use kube::ResourceExt;
pub use name::{PREFIX, Part, attachment_name, attachment_seed, network_name, resource_hash};
pub use peers::Selection;
use peers::{Ends, Peering};
use serde_json::{Value, json};
pub use timeline::{Timeline, TimelineError, parse_duration};

use crate::api::{FailMode, Link, LinkSpec, Reason, Scenario};
use crate::facts::{Labels, PodFacts};
pub use crate::plan::timeline::merge;

/// Maximum number of prefixes per attachment, limited by the node's BPF programs.
pub const PREFIXES_MAX: usize = 512;

/// Parts of the cluster's state that affect a plan.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// Name of the node.
    pub node: String,
    /// All links.
    pub links: Vec<Link>,
    /// All scenarios.
    pub scenarios: Vec<Scenario>,
    /// Pods of the node, or of all nodes if a link selects peers by label.
    pub pods: Vec<PodFacts>,
    /// Labels of all namespaces.
    pub namespaces: BTreeMap<String, Labels>,
}

/// Namespaced name of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// Namespace of the resource.
    pub namespace: String,
    /// Name of the resource.
    pub name: String,
}

impl ResourceKey {
    /// Creates a key.
    pub fn new(namespace: &str, name: &str) -> ResourceKey {
        ResourceKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the name of an object.
    pub fn of(object: &impl ResourceExt) -> ResourceKey {
        ResourceKey {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }
}

impl std::fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A desired attachment.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedAttachment {
    /// Link that requests the attachment.
    pub link: ResourceKey,
    /// Pod, such as `shop/cart-0`.
    pub pod: String,
    /// Body of the request to the node, with the options before the first step of the scenario.
    pub body: Value,
    /// Changes over time.
    pub timeline: Option<Timeline>,
}

/// An attachment that is left unchanged, if it exists, because the new spec is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAttachment {
    /// Link that requested the attachment.
    pub link: ResourceKey,
    /// Pod, such as `shop/cart-0`.
    pub pod: String,
}

/// An obstacle to attaching a link to some or all of its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    /// Kind of obstacle.
    pub reason: Reason,
    /// Message, a sentence.
    pub message: String,
    /// JSON pointer (RFC 6901) from `spec` to the invalid value.
    pub pointer: Option<String>,
    /// How to remove the obstacle.
    pub remedy: Option<String>,
}

impl Hindrance {
    /// Creates a hindrance that is not caused by a value in the spec.
    pub fn new(reason: Reason, message: impl Into<String>) -> Hindrance {
        Hindrance {
            reason,
            message: message.into(),
            pointer: None,
            remedy: None,
        }
    }

    /// Creates a hindrance caused by an invalid value in the spec.
    pub(crate) fn refused(pointer: &str, message: impl Into<String>, remedy: &str) -> Hindrance {
        Hindrance {
            pointer: Some(pointer.to_owned()),
            remedy: (!remedy.is_empty()).then(|| remedy.to_owned()),
            ..Hindrance::new(Reason::Refused, message)
        }
    }
}

/// The plan of a link on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkPlan {
    /// Generation of the link's spec.
    pub generation: i64,
    /// Selected pods of the node, such as `shop/cart-0`.
    pub pods: Vec<String>,
    /// Obstacles to the attachments of pods.
    pub hindrances: Vec<Hindrance>,
    /// Whether options of `down` are unused: two pods that are both in `from` and `to` each shape
    /// the traffic that they send.
    pub is_down_unused: bool,
}

/// A node's plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Attachments by name.
    pub attachments: BTreeMap<String, WantedAttachment>,
    /// Attachments to keep, by name; disjoint from `attachments`.
    pub kept: BTreeMap<String, KeptAttachment>,
    /// Links that select pods of the node.
    pub links: BTreeMap<ResourceKey, LinkPlan>,
}

/// Returns whether a plan depends on pods of other nodes.
pub fn needs_peers(links: &[Link]) -> bool {
    links.iter().any(|link| {
        let to = link.spec.to.as_ref();
        to.is_some_and(|to| to.pod_selector.is_some() || to.namespace_selector.is_some())
    })
}

/// Returns the plan of a node.
pub fn plan(state: &ClusterState) -> Plan {
    let mut plan = Plan::default();
    for link in &state.links {
        // Skip deleted links, even if a finalizer keeps them.
        if link.metadata.deletion_timestamp.is_none() {
            plan_link(state, link, &mut plan);
        }
    }
    plan
}

fn plan_link(state: &ClusterState, link: &Link, plan: &mut Plan) {
    let key = ResourceKey::of(link);
    let mut link_plan = LinkPlan {
        generation: link.metadata.generation.unwrap_or_default(),
        ..LinkPlan::default()
    };
    let here = state.pods.iter().filter(|pod| pod.is_on(&state.node));
    let ends = match Ends::of(&key.namespace, &link.spec) {
        Ok(ends) => ends,
        Err(hindrance) => {
            link_plan.hindrances.push(hindrance);
            // The selection is unknown, so the link's attachments are kept.
            here.for_each(|pod| plan.keep(&key, pod));
            plan.links.insert(key, link_plan);
            return;
        }
    };
    let is_selected = |pod: &&PodFacts| ends.from.selects(pod, &state.namespaces);
    let pods: Vec<&PodFacts> = here.filter(is_selected).collect();
    if pods.is_empty() {
        return;
    }
    link_plan.pods = pods.iter().map(|pod| pod.target()).collect();
    link_plan.pods.sort();
    match timeline(state, &key, &link.spec) {
        Err(hindrance) => {
            link_plan.hindrances.push(hindrance);
            pods.into_iter().for_each(|pod| plan.keep(&key, pod));
        }
        Ok(timeline) => {
            for pod in pods {
                match plan_pod(state, &key, &link.spec, &ends, pod) {
                    Ok(bodies) => {
                        link_plan.is_down_unused |= is_down_unused(&link.spec, &bodies);
                        let wanted = |body| WantedAttachment {
                            link: key.clone(),
                            pod: pod.target(),
                            body,
                            timeline: timeline.clone(),
                        };
                        let all = bodies.into_iter();
                        let all = all.map(|(name, body)| (name, wanted(body)));
                        plan.attachments.extend(all);
                    }
                    Err(hindrance) => {
                        if hindrance.reason == Reason::Refused {
                            plan.keep(&key, pod);
                        }
                        link_plan.hindrances.push(hindrance);
                    }
                }
            }
        }
    }
    plan.links.insert(key, link_plan);
}

impl Plan {
    /// Keeps the attachments of a pod for a link, if any.
    fn keep(&mut self, link: &ResourceKey, pod: &PodFacts) {
        for part in [Part::Both, Part::Up] {
            let name = attachment_name(link, &pod.uid, part);
            let kept = KeptAttachment {
                link: link.clone(),
                pod: pod.target(),
            };
            self.kept.insert(name, kept);
        }
    }
}

/// Returns whether an attachment ignores the options in `down`.
fn is_down_unused(spec: &LinkSpec, bodies: &[(String, Value)]) -> bool {
    let down = spec.link.get("down").and_then(Value::as_object);
    let is_up_only = |body: &Value| body.get("direction") == Some(&json!("up"));
    down.is_some_and(|down| !down.is_empty()) && bodies.iter().any(|(_, body)| is_up_only(body))
}

fn timeline(
    state: &ClusterState,
    key: &ResourceKey,
    spec: &LinkSpec,
) -> Result<Option<Timeline>, Hindrance> {
    let Some(name) = &spec.scenario else {
        return Ok(None);
    };
    let mut scenarios = state.scenarios.iter();
    let scenario = scenarios.find(|scenario| {
        scenario.metadata.namespace.as_ref() == Some(&key.namespace)
            && scenario.metadata.name.as_ref() == Some(name)
    });
    let scenario = scenario.ok_or_else(|| {
        let message = format!("no Scenario '{name}' in {}", key.namespace);
        Hindrance::refused("/scenario", message, "create it, or name another")
    })?;
    let timeline = Timeline::read(&scenario.spec, spec.start_at.as_deref());
    timeline
        .map(Some)
        .map_err(|error| Hindrance::refused("/scenario", format!("Scenario '{name}': {error}"), ""))
}

/// Returns a pod's attachments for a link, by name.
fn plan_pod(
    state: &ClusterState,
    key: &ResourceKey,
    spec: &LinkSpec,
    ends: &Ends,
    pod: &PodFacts,
) -> Result<Vec<(String, Value)>, Hindrance> {
    if pod.is_host_network {
        let message = format!(
            "{} is on the host network (hostNetwork), where links cannot attach",
            pod.target()
        );
        return Err(Hindrance::new(Reason::HostNetwork, message));
    }
    let name = |part| attachment_name(key, &pod.uid, part);
    let seed = |part| attachment_seed(spec.seed.unwrap_or(1), key, &pod.target(), part);
    let body = |to: &[String], part| body(spec, pod, to, part, seed(part));
    match ends.peers_of(pod, state) {
        Peering::All => Ok(vec![(name(Part::Both), body(&[], Part::Both))]),
        Peering::Prefixes { both, up } => {
            let parts = [(Part::Both, both), (Part::Up, up)].into_iter();
            let parts = parts.filter(|(_, to)| !to.is_empty());
            let mut wanted = Vec::new();
            for (part, to) in parts {
                check_count(pod, to.len())?;
                wanted.push((name(part), body(&to, part)));
            }
            if wanted.is_empty() {
                let message = format!("no peer of {} has an address", pod.target());
                return Err(Hindrance::new(Reason::NoPeers, message));
            }
            Ok(wanted)
        }
    }
}

/// Refuses more prefixes than an attachment can have.
fn check_count(pod: &PodFacts, count: usize) -> Result<(), Hindrance> {
    if count <= PREFIXES_MAX {
        return Ok(());
    }
    let message = format!(
        "{} has {count} peer addresses; a link takes at most {PREFIXES_MAX}",
        pod.target()
    );
    let remedy = "select fewer pods, or list prefixes in `to.cidrs`";
    Err(Hindrance::refused("/to", message, remedy))
}

/// Returns the body of the request to the node, without empty fields.
fn body(spec: &LinkSpec, pod: &PodFacts, to: &[String], part: Part, seed: u64) -> Value {
    let mut body = json!({
        "target": { "pod": pod.target() },
        "interface": spec.interface,
        "to": (!to.is_empty()).then_some(to),
        "filter": spec.filter,
        "link": spec.link,
        "seed": seed,
        "direction": (part == Part::Up).then_some("up"),
        "priority": spec.priority,
        "fail": spec.fail.filter(|fail| *fail == FailMode::Closed),
        "wait": true,
        // Refuse files: the node reads them as root, but the user may have permission only to
        // create Links.
        "files": false,
    });
    if let Value::Object(fields) = &mut body {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

#[cfg(test)]
mod tests;
