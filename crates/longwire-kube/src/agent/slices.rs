//! The node's slices of resource status.

use std::collections::{BTreeMap, BTreeSet};

use super::texts::{ResourceOf, for_users, names_resource, remedy_for_users};
use crate::api::{NodeStatus, Reason};
use crate::node::{AttachmentView, Counters, NodeError};
use crate::plan::{Hindrance, Plan, ResourceKey};
use crate::slice::ResourceKind;

/// A resource with slices.
pub(super) type SliceKey = (ResourceKind, ResourceKey);

/// The node's slices, by resource.
pub(super) type Slices = BTreeMap<SliceKey, NodeStatus>;

/// Note for unused `down` options: of two pods that are both in `from` and `to`, each shapes the
/// traffic that it sends to the other.
const DOWN_UNUSED: &str = "down options do not apply between pods that are in both from and to: \
                           each pod shapes what it sends, with up";

/// State of the node, as read by the agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeState<'a> {
    /// Attachments created by agents.
    pub views: &'a BTreeMap<String, AttachmentView>,
    /// Errors of failed requests, by attachment.
    pub errors: &'a BTreeMap<String, NodeError>,
    /// Counters by attachment.
    pub counters: &'a BTreeMap<String, Counters>,
    /// Error if the node does not answer.
    pub node_error: Option<&'a NodeError>,
}

impl NodeState<'_> {
    /// State of a node that has not been read yet.
    pub const EMPTY: NodeState<'static> = NodeState {
        views: &BTreeMap::new(),
        errors: &BTreeMap::new(),
        counters: &BTreeMap::new(),
        node_error: None,
    };
}

/// Name and pod of an attachment that belongs to a link.
type LinkAttachment<'a> = (&'a String, &'a str);

pub(super) fn slices(node: &str, plan: &Plan, state: &NodeState<'_>) -> Slices {
    let mut by_link: BTreeMap<&ResourceKey, Vec<LinkAttachment<'_>>> = BTreeMap::new();
    let wanted = plan
        .attachments
        .iter()
        .map(|(name, wanted)| (&wanted.link, name, wanted.pod.as_str()));
    // Skip kept names that do not exist: a pod has one attachment or two.
    let kept = plan
        .kept
        .iter()
        .filter(|(name, _)| state.views.contains_key(*name))
        .map(|(name, kept)| (&kept.link, name, kept.pod.as_str()));
    for (link, name, pod) in wanted.chain(kept) {
        by_link.entry(link).or_default().push((name, pod));
    }
    let resource_of = |name: &str| {
        let wanted = plan.attachments.get(name).map(|wanted| &wanted.link);
        let link = wanted.or_else(|| Some(&plan.kept.get(name)?.link));
        link.map(|link| format!("Link {link}"))
    };
    let slices = plan.links.iter().map(|(key, link)| {
        let parts = by_link.get(key).map(Vec::as_slice).unwrap_or_default();
        let mut slice = NodeStatus {
            node: node.to_owned(),
            observed_generation: link.generation,
            pods: count(link.pods.len()),
            ..NodeStatus::default()
        };
        let mut hindrances = link.hindrances.clone();
        count_pods(&mut slice, parts, state, &resource_of, &mut hindrances);
        let counters = parts.iter();
        let counters = counters.filter_map(|(name, _)| state.counters.get(*name));
        set_counters(&mut slice, counters.copied().sum());
        if let Some(hindrance) = gravest(hindrances) {
            set_hindrance(&mut slice, hindrance);
        } else if link.is_down_unused {
            // Set a message without a reason, because nothing hinders the link.
            slice.message = Some(DOWN_UNUSED.to_owned());
            slice.pointer = Some("/link/down".to_owned());
        }
        ((ResourceKind::Link, key.clone()), slice)
    });
    slices.collect()
}

pub(super) fn set_counters(slice: &mut NodeStatus, counters: Counters) {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    slice.carried = number(counters.carried);
    slice.dropped = number(counters.dropped);
    slice.artifacts = number(counters.artifacts);
    slice.lateness_p99_us = number(counters.lateness_p99_us);
}

/// Sets the reason, message, pointer and remedy of a slice from a hindrance.
pub(super) fn set_hindrance(slice: &mut NodeStatus, hindrance: Hindrance) {
    slice.reason = Some(hindrance.reason);
    slice.message = Some(hindrance.message);
    slice.pointer = hindrance.pointer;
    slice.remedy = hindrance.remedy;
}

/// Returns the most severe hindrance; the first wins ties, so that the message is stable.
fn gravest(hindrances: Vec<Hindrance>) -> Option<Hindrance> {
    // Of equal elements, the last is the maximum.
    let hindrances = hindrances.into_iter().rev();
    hindrances.max_by_key(|hindrance| hindrance.reason)
}

/// Counts pods with all attachments attached, and pods with a waiting attachment.
fn count_pods(
    slice: &mut NodeStatus,
    parts: &[LinkAttachment<'_>],
    state: &NodeState<'_>,
    resource_of: ResourceOf<'_>,
    hindrances: &mut Vec<Hindrance>,
) {
    let pods: BTreeSet<&str> = parts.iter().map(|(_, pod)| *pod).collect();
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for (name, pod) in parts {
        let view = state.views.get(*name);
        if let Some(error) = state.errors.get(*name) {
            hindrances.push(hindrance_of(pod, error, resource_of));
        }
        match view {
            Some(view) if view.is_attached() => {}
            Some(view) => {
                waiting.insert(pod);
                // Use only the first line, because the rest refers to files on the machine.
                let reason = view.reason.as_deref().and_then(|text| text.lines().next());
                let reason = reason.unwrap_or("waiting");
                let message = format!("{pod}: {}", for_users(reason, resource_of));
                let mut hindrance = Hindrance::new(Reason::Waiting, message);
                if view.taken {
                    hindrance.reason = Reason::Conflict;
                    hindrance.remedy = Some(OTHER_LINK.to_owned());
                }
                hindrances.push(hindrance);
            }
            None => {
                missing.insert(pod);
            }
        }
    }
    if let Some(error) = state.node_error {
        hindrances.push(Hindrance::new(Reason::NodeUnavailable, error.to_string()));
    }
    // If the selector is refused, only pods with attachments are known.
    slice.pods = slice.pods.max(count(pods.len()));
    slice.waiting = count(waiting.len());
    slice.attached = count(pods.len() - waiting.union(&missing).count());
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Remedy for links that select the same traffic.
const SAME_TRAFFIC: &str = "remove one, or give each part of the traffic with `to` or `filter`";

/// Remedy for an interface used by another link or port.
const OTHER_LINK: &str = "remove the other Link for all traffic, remove the pod from the Network, \
                          or detach the link on the machine";

/// Converts an error to a hindrance, with the messages of all problems and the pointer of the first
/// one.
pub(super) fn hindrance_of(pod: &str, error: &NodeError, resource_of: ResourceOf<'_>) -> Hindrance {
    let reason = match error {
        NodeError::Unavailable { .. } => Reason::NodeUnavailable,
        NodeError::Conflict(_) => Reason::Conflict,
        NodeError::Failed(_) | NodeError::Missing(_) => Reason::Failed,
        NodeError::Refused { .. } => Reason::Refused,
    };
    let text = error.to_string();
    let message = format!("{pod}: {}", for_users(&text, resource_of));
    let mut hindrance = Hindrance::new(reason, message);
    if reason == Reason::Conflict && names_resource(&text, resource_of) {
        hindrance.remedy = Some(SAME_TRAFFIC.to_owned());
    }
    if let NodeError::Refused { problems, .. } = error
        && let Some(first) = problems.first()
    {
        let all = problems.iter().map(|problem| {
            let field = match problem.field.as_str() {
                "" => String::new(),
                field => format!("{field}: "),
            };
            format!("{field}{}", for_users(&problem.reason, resource_of))
        });
        let all: Vec<String> = all.collect();
        hindrance.message = all.join("; ");
        hindrance.pointer = Some(first.pointer.clone());
        hindrance.remedy = remedy_for_users(&first.remedy);
    }
    hindrance
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::{KeptAttachment, LinkPlan, WantedAttachment};

    fn key(name: &str) -> ResourceKey {
        ResourceKey::new("shop", name)
    }

    fn with_link(name: &str, link: LinkPlan) -> Plan {
        Plan {
            links: [(key(name), link)].into(),
            ..Plan::default()
        }
    }

    fn kept(link: &str) -> KeptAttachment {
        KeptAttachment {
            link: key(link),
            pod: "shop/a".to_owned(),
        }
    }

    fn views(view: Value) -> BTreeMap<String, AttachmentView> {
        let view: AttachmentView = serde_json::from_value(view).expect("a view");
        [(view.name.clone(), view)].into()
    }

    fn slice_of(link: &str, plan: &Plan, state: &NodeState<'_>) -> NodeStatus {
        slices("n0", plan, state)[&(ResourceKind::Link, key(link))].clone()
    }

    #[test]
    fn a_kept_attachment_counts_while_its_spec_is_refused() {
        let mut link = LinkPlan::default();
        link.hindrances.push(Hindrance::new(Reason::Refused, "no"));
        let mut plan = with_link("slow", link);
        for name in ["kube-a", "kube-a-up"] {
            plan.kept.insert(name.to_owned(), kept("slow"));
        }
        let counters = Counters {
            carried: 9,
            ..Counters::default()
        };
        let state = NodeState {
            views: &views(json!({ "name": "kube-a", "state": "attached", "spec": {} })),
            counters: &[("kube-a".to_owned(), counters)].into(),
            ..NodeState::EMPTY
        };
        let slice = slice_of("slow", &plan, &state);
        assert_eq!((slice.pods, slice.attached, slice.carried), (1, 1, 9));
        assert_eq!(slice.reason, Some(Reason::Refused));
    }

    #[test]
    fn foreign_links_are_conflicts() {
        let mut plan = with_link("slow", LinkPlan::default());
        plan.kept.insert("kube-a".to_owned(), kept("slow"));
        for (taken, reason) in [(true, Reason::Conflict), (false, Reason::Waiting)] {
            let view = json!({
                "name": "kube-a", "state": "waiting", "taken": taken, "spec": {},
                "reason": "'eth0' has a link of Longwire already",
            });
            let state = NodeState {
                views: &views(view),
                ..NodeState::EMPTY
            };
            let slice = slice_of("slow", &plan, &state);
            assert_eq!((slice.waiting, slice.reason), (1, Some(reason)));
            assert_eq!(slice.remedy.is_some(), taken);
        }
    }

    #[test]
    fn options_that_are_not_used_have_a_message_without_a_reason() {
        let link = LinkPlan {
            is_down_unused: true,
            ..LinkPlan::default()
        };
        let slice = slice_of("mesh", &with_link("mesh", link), &NodeState::EMPTY);
        assert_eq!(slice.reason, None);
        assert_eq!(slice.pointer.as_deref(), Some("/link/down"));
        assert_eq!(slice.message.as_deref(), Some(DOWN_UNUSED));
        assert!(!DOWN_UNUSED.contains("  "), "{DOWN_UNUSED}");
    }

    #[test]
    fn a_conflict_names_the_other_link() {
        let mut plan = with_link("far", LinkPlan::default());
        for (name, link) in [("kube-shop-ts-1", "ts"), ("kube-shop-far-1", "far")] {
            let wanted = WantedAttachment {
                link: key(link),
                pod: "shop/a".to_owned(),
                body: json!({}),
                timeline: None,
            };
            plan.attachments.insert(name.to_owned(), wanted);
        }
        let text = "'kube-shop-ts-1' already has this traffic; change it (`longwire attach set \
            kube-shop-ts-1`), or remove it";
        let error = NodeError::Conflict(text.to_owned());
        let state = NodeState {
            errors: &[("kube-shop-far-1".to_owned(), error)].into(),
            ..NodeState::EMPTY
        };
        let slice = slice_of("far", &plan, &state);
        assert_eq!(slice.reason, Some(Reason::Conflict));
        assert_eq!(
            slice.message.as_deref(),
            Some("shop/a: Link shop/ts already has this traffic")
        );
        assert_eq!(slice.remedy.as_deref(), Some(SAME_TRAFFIC));
    }
}
