//! The slices of a node in the status of links.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{NodeStatus, Reason};
use crate::node::{AttachmentView, Counters, NodeError};
use crate::plan::{Hindrance, Plan, ResourceKey, WantedAttachment};
use crate::slice::ResourceKind;

/// A resource with slices.
pub(super) type SliceKey = (ResourceKind, ResourceKey);

/// The slice of the node in each resource that has a part there.
pub(super) type Slices = BTreeMap<SliceKey, NodeStatus>;

/// The state of the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'a> {
    /// The agents' attachments.
    pub views: &'a BTreeMap<String, AttachmentView>,
    /// Why requests failed, by the attachment's name.
    pub errors: &'a BTreeMap<String, NodeError>,
    /// The counters of attachments.
    pub counters: &'a BTreeMap<String, Counters>,
    /// Why the node does not answer.
    pub node_error: Option<&'a NodeError>,
}

impl<'a> Observed<'a> {
    /// The state of a node that does not answer.
    pub fn unreachable(error: &'a NodeError) -> Observed<'a> {
        static NO_VIEWS: BTreeMap<String, AttachmentView> = BTreeMap::new();
        static NO_ERRORS: BTreeMap<String, NodeError> = BTreeMap::new();
        static NO_COUNTERS: BTreeMap<String, Counters> = BTreeMap::new();
        Observed {
            views: &NO_VIEWS,
            errors: &NO_ERRORS,
            counters: &NO_COUNTERS,
            node_error: Some(error),
        }
    }
}

/// Returns the slices of a node.
pub(super) fn slices(node: &str, plan: &Plan, observed: &Observed<'_>) -> Slices {
    let mut by_link: BTreeMap<&ResourceKey, Vec<(&String, &WantedAttachment)>> = BTreeMap::new();
    for (name, wanted) in &plan.attachments {
        by_link
            .entry(&wanted.link)
            .or_default()
            .push((name, wanted));
    }
    let slices = plan.links.iter().map(|(key, link)| {
        let wanted = by_link.get(key).map(Vec::as_slice).unwrap_or_default();
        let mut slice = NodeStatus {
            node: node.to_owned(),
            observed_generation: link.generation,
            pods: count(link.pods.len()),
            ..NodeStatus::default()
        };
        let mut hindrances = link.hindrances.clone();
        count_pods(&mut slice, wanted, observed, &mut hindrances);
        let mut sum = Counters::default();
        let counters = wanted
            .iter()
            .filter_map(|(name, _)| observed.counters.get(*name));
        counters.for_each(|counters| sum.add(*counters));
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        slice.carried = number(sum.carried);
        slice.dropped = number(sum.dropped);
        slice.artifacts = number(sum.artifacts);
        slice.lateness_p99_us = number(sum.lateness_p99_us);
        // The gravest one; of equal ones the first, so that the message stays the same.
        let mut gravest: Option<Hindrance> = None;
        for hindrance in hindrances {
            if gravest
                .as_ref()
                .is_none_or(|other| other.reason < hindrance.reason)
            {
                gravest = Some(hindrance);
            }
        }
        if let Some(hindrance) = gravest {
            slice.reason = Some(hindrance.reason);
            slice.message = Some(hindrance.message);
            slice.pointer = hindrance.pointer;
            slice.remedy = hindrance.remedy;
        }
        ((ResourceKind::Link, key.clone()), slice)
    });
    slices.collect()
}

/// Counts the pods whose attachments are all attached, and those with one that waits.
fn count_pods(
    slice: &mut NodeStatus,
    wanted: &[(&String, &WantedAttachment)],
    observed: &Observed<'_>,
    hindrances: &mut Vec<Hindrance>,
) {
    let pods: BTreeSet<&str> = wanted
        .iter()
        .map(|(_, wanted)| wanted.pod.as_str())
        .collect();
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for (name, wanted) in wanted {
        let view = observed.views.get(*name);
        if let Some(error) = observed.errors.get(*name) {
            hindrances.push(hindrance_of(&wanted.pod, error));
        }
        match view {
            Some(view) if view.is_attached() => {}
            Some(view) => {
                waiting.insert(&wanted.pod);
                // The rest of the node's text is about files of the machine.
                let reason = view.reason.as_deref().and_then(|text| text.lines().next());
                let reason = reason.unwrap_or("it waits");
                let message = format!("{}: {reason}", wanted.pod);
                hindrances.push(Hindrance::new(Reason::Waiting, message));
            }
            None => {
                missing.insert(&wanted.pod);
            }
        }
    }
    if let Some(error) = observed.node_error {
        hindrances.push(Hindrance::new(Reason::NodeUnavailable, error.to_string()));
    }
    slice.waiting = count(waiting.len());
    slice.attached = count(pods.len() - waiting.union(&missing).count());
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Returns the hindrance of an error. The first problem has the pointer; the message has
/// all of them.
pub(super) fn hindrance_of(pod: &str, error: &NodeError) -> Hindrance {
    let reason = match error {
        NodeError::Unavailable { .. } => Reason::NodeUnavailable,
        NodeError::Conflict(_) => Reason::Conflict,
        NodeError::Failed(_) | NodeError::Missing(_) => Reason::Failed,
        NodeError::Refused { .. } => Reason::Refused,
    };
    let mut hindrance = Hindrance::new(reason, format!("{pod}: {error}"));
    if let NodeError::Refused { problems, .. } = error
        && let Some(first) = problems.first()
    {
        let all = problems.iter().map(|problem| {
            let field = match problem.field.as_str() {
                "" => String::new(),
                field => format!("{field}: "),
            };
            format!("{field}{}", problem.reason)
        });
        let all: Vec<String> = all.collect();
        hindrance.message = all.join("; ");
        hindrance.pointer = Some(first.pointer.clone());
        hindrance.remedy = Some(first.remedy.clone()).filter(|remedy| !remedy.is_empty());
    }
    hindrance
}
