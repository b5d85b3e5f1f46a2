//! Sums and conditions of a resource, computed from its slices.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::api::{NodeStatus, Reason};

/// Returns the sums of the pods and counters in the slices of a resource.
pub(super) fn sums(slices: &[NodeStatus]) -> NodeStatus {
    let mut sums = NodeStatus::default();
    for slice in slices {
        sums.pods += slice.pods;
        sums.attached += slice.attached;
        sums.carried += slice.carried;
        sums.dropped += slice.dropped;
        sums.artifacts += slice.artifacts;
        sums.lateness_p99_us = sums.lateness_p99_us.max(slice.lateness_p99_us);
    }
    sums
}

/// A condition without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub kind: &'static str,
    /// `None` if unknown.
    pub is_true: Option<bool>,
    pub reason: &'static str,
    pub message: String,
}

impl Verdict {
    pub fn new(
        kind: &'static str,
        is_true: Option<bool>,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Verdict {
        Verdict {
            kind,
            is_true,
            reason,
            message: message.into(),
        }
    }

    fn into_condition(self, generation: i64, before: &[Condition], now: Timestamp) -> Condition {
        let status = match self.is_true {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let before = before.iter().find(|before| before.type_ == self.kind);
        let time = before
            .filter(|before| before.status == status)
            .map_or(Time(now), |before| before.last_transition_time.clone());
        Condition {
            type_: self.kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message,
            observed_generation: Some(generation),
            last_transition_time: time,
        }
    }
}

/// Converts verdicts to conditions. Unchanged conditions keep their time.
pub(super) fn conditions(
    generation: i64,
    verdicts: Vec<Verdict>,
    before: &[Condition],
) -> Vec<Condition> {
    let now = Timestamp::now();
    let verdicts = verdicts.into_iter();
    let conditions = verdicts.map(|verdict| verdict.into_condition(generation, before, now));
    conditions.collect()
}

/// Message for a resource without slices. Only nodes with selected pods have slices.
const NOT_READ: &str = "no node has read it: no pod is selected, or no agent runs";

/// Returns the conditions of a link: `Accepted`, `Attached` and `Faithful`.
pub(super) fn verdicts(generation: i64, slices: &[NodeStatus]) -> Vec<Verdict> {
    let sums = sums(slices);
    vec![
        accepted(generation, slices),
        attached(generation, &sums, slices),
        faithful(&sums, slices),
    ]
}

fn accepted(generation: i64, slices: &[NodeStatus]) -> Verdict {
    const KIND: &str = "Accepted";
    let is_current = |slice: &&NodeStatus| slice.observed_generation == generation;
    let mut current = slices.iter().filter(is_current);
    let is_refused = |slice: &&NodeStatus| slice.reason == Some(Reason::Refused);
    if let Some(slice) = current.clone().find(is_refused) {
        return Verdict::new(KIND, Some(false), "Refused", refusal(slice));
    }
    let is_unknown = |slice: &NodeStatus| slice.reason == Some(Reason::NodeUnavailable);
    if current.clone().all(is_unknown) {
        return Verdict::new(KIND, None, "NotRead", NOT_READ);
    }
    let advice = current.find(|slice| is_advice(slice));
    let advice = advice.map(|slice| format!("; {}", refusal(slice)));
    let message = format!("the spec is valid{}", advice.unwrap_or_default());
    Verdict::new(KIND, Some(true), "Valid", message)
}

/// Returns whether a slice's message is a note about an unused value, not the message of a reason.
fn is_advice(slice: &NodeStatus) -> bool {
    slice.reason.is_none() && slice.pointer.is_some()
}

/// Returns the message that explains why a pod has no link.
fn why(slice: &NodeStatus) -> Option<&str> {
    slice.message.as_deref().filter(|_| !is_advice(slice))
}

/// Returns the message for a refused spec: place, reason and remedy.
pub(super) fn refusal(slice: &NodeStatus) -> String {
    let pointer = slice.pointer.as_ref();
    let place = pointer.map(|pointer| format!("spec{pointer}: "));
    let reason = slice.message.as_deref().unwrap_or("refused");
    format!("{}{reason}{}", place.unwrap_or_default(), remedy(slice))
}

/// Returns the remedy of a slice, preceded by a semicolon.
fn remedy(slice: &NodeStatus) -> String {
    let remedy = slice.remedy.as_deref().map(|remedy| format!("; {remedy}"));
    remedy.unwrap_or_default()
}

fn attached(generation: i64, sums: &NodeStatus, slices: &[NodeStatus]) -> Verdict {
    const KIND: &str = "Attached";
    if sums.pods == 0 {
        let is_current = |slice: &NodeStatus| slice.observed_generation == generation;
        if !slices.iter().any(is_current) {
            return Verdict::new(KIND, None, "NotRead", NOT_READ);
        }
        return Verdict::new(KIND, Some(false), "NoPods", "no pod is selected");
    }
    let message = format!("{} of {} pods", sums.attached, sums.pods);
    if sums.attached >= sums.pods {
        return Verdict::new(KIND, Some(true), "AllPods", message);
    }
    let hindered = slices.iter().filter(|slice| slice.attached < slice.pods);
    let gravest = hindered.max_by_key(|slice| (slice.reason, std::cmp::Reverse(&slice.node)));
    let cause = gravest.and_then(|slice| {
        let text = why(slice)?;
        Some(format!("; {}: {text}{}", slice.node, remedy(slice)))
    });
    let reason = gravest.and_then(|slice| slice.reason);
    let reason = reason.map_or("Pending", name_of);
    let message = message + &cause.unwrap_or_default();
    Verdict::new(KIND, Some(false), reason, message)
}

fn faithful(sums: &NodeStatus, slices: &[NodeStatus]) -> Verdict {
    const KIND: &str = "Faithful";
    if sums.artifacts > 0 {
        let worst = slices.iter().max_by_key(|slice| slice.artifacts);
        let worst = worst.map_or("", |slice| &slice.node);
        let message = format!("failures of the emulator, most on {worst}");
        return Verdict::new(KIND, Some(false), "Artifacts", message);
    }
    if sums.attached == 0 {
        return Verdict::new(KIND, None, "NoLinks", "no attached links");
    }
    Verdict::new(KIND, Some(true), "NoArtifacts", "no failures")
}

/// Returns the name of a reason in the status.
pub(super) fn name_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Waiting => "Waiting",
        Reason::NoPeers => "NoPeers",
        Reason::HostNetwork => "HostNetwork",
        Reason::Conflict => "Conflict",
        Reason::NodeUnavailable => "NodeUnavailable",
        Reason::Failed => "Failed",
        Reason::Refused => "Refused",
    }
}

/// An event about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub node: String,
    pub is_warning: bool,
    pub reason: &'static str,
    pub note: String,
}

/// Returns the events for a change of the slices.
pub(super) fn notices(before: &[NodeStatus], now: &[NodeStatus]) -> Vec<Notice> {
    let none = NodeStatus::default();
    let changes = now.iter().flat_map(|slice| {
        let old = before.iter().find(|old| old.node == slice.node);
        notices_of(old.unwrap_or(&none), slice)
    });
    changes.collect()
}

/// Returns the events for a change of a node's slice.
fn notices_of(old: &NodeStatus, slice: &NodeStatus) -> Vec<Notice> {
    let notice = |is_warning, reason, note| Notice {
        node: slice.node.clone(),
        is_warning,
        reason,
        note,
    };
    let (attached, pods, node) = (slice.attached, slice.pods, &slice.node);
    let place = format!("{attached} of {pods} pods on {node}");
    let why = why(slice).unwrap_or("unknown reason");
    let mut notices = Vec::new();
    if slice.attached > old.attached {
        notices.push(notice(false, "Attached", place.clone()));
    }
    let is_new = (old.reason, &old.message) != (slice.reason, &slice.message);
    match slice.reason.filter(|_| is_new) {
        Some(Reason::Refused) => notices.push(notice(true, "Refused", refusal(slice))),
        Some(Reason::Conflict) => {
            let note = format!("{place}: {why}{}", remedy(slice));
            notices.push(notice(true, "Conflict", note));
        }
        _ => {}
    }
    // Only a remaining pod can lose its link. A waiting pod without a reason is about to be
    // attached.
    let starts = slice.waiting > 0 && slice.reason.is_none();
    if slice.attached < old.attached && slice.attached < slice.pods && !starts {
        notices.push(notice(true, "Lost", format!("{place}: {why}")));
    }
    notices
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn slice(node: &str, pods: i64, attached: i64) -> NodeStatus {
        NodeStatus {
            node: node.to_owned(),
            observed_generation: 2,
            pods,
            attached,
            ..NodeStatus::default()
        }
    }

    fn states(slices: &[NodeStatus]) -> Vec<(Option<bool>, &'static str)> {
        let verdicts = verdicts(2, slices).into_iter();
        verdicts.map(|it| (it.is_true, it.reason)).collect()
    }

    #[test]
    fn conditions_depend_on_slices_of_this_generation() {
        let working = states(&[slice("n0", 2, 2), slice("n1", 1, 1)]);
        let all = ["Valid", "AllPods", "NoArtifacts"];
        assert_eq!(working, all.map(|reason| (Some(true), reason)));
        let none = [(None, "NotRead"), (None, "NotRead"), (None, "NoLinks")];
        assert_eq!(states(&[]), none);
        let mut old = slice("n0", 0, 0);
        old.observed_generation = 1;
        assert_eq!(states(from_ref(&old)), none);
        let without_pods = states(&[slice("n0", 0, 0)]);
        assert_eq!(without_pods[1], (Some(false), "NoPods"));
    }

    #[test]
    fn a_refused_spec_has_its_place_and_remedy() {
        let mut wrong = slice("n1", 1, 0);
        wrong.reason = Some(Reason::Refused);
        wrong.message = Some("'soon' is not a time".to_owned());
        wrong.pointer = Some("/link/delay".to_owned());
        wrong.remedy = Some("write 20ms".to_owned());
        let verdict = &verdicts(2, &[slice("n0", 1, 1), wrong.clone()])[0];
        assert_eq!(verdict.is_true, Some(false));
        assert_eq!(
            verdict.message,
            "spec/link/delay: 'soon' is not a time; write 20ms"
        );
        // Slices for an earlier generation are ignored.
        wrong.observed_generation = 1;
        assert_eq!(
            states(&[slice("n0", 1, 1), wrong])[0],
            (Some(true), "Valid")
        );
    }

    #[test]
    fn a_value_that_is_not_used_is_in_the_message_of_accepted_alone() {
        let mut mesh = slice("n1", 2, 1);
        mesh.message = Some("options of down are not used".to_owned());
        mesh.pointer = Some("/link/down".to_owned());
        let verdicts = verdicts(2, from_ref(&mesh));
        assert_eq!(verdicts[0].is_true, Some(true));
        assert_eq!(
            verdicts[0].message,
            "the spec is valid; spec/link/down: options of down are not used"
        );
        assert_eq!(verdicts[1].message, "1 of 2 pods");
    }

    #[test]
    fn artifacts_make_a_link_unfaithful() {
        let mut bad = slice("n1", 1, 1);
        bad.artifacts = 3;
        let verdict = &verdicts(2, &[slice("n0", 1, 1), bad])[2];
        assert_eq!(verdict.is_true, Some(false));
        assert!(verdict.message.ends_with("n1"), "{}", verdict.message);
    }

    #[test]
    fn events_are_about_changes() {
        let reasons = |before: Option<&NodeStatus>, now: &NodeStatus| {
            let before: Vec<NodeStatus> = before.into_iter().cloned().collect();
            let notices = notices(&before, from_ref(now)).into_iter();
            notices.map(|it| it.reason).collect::<Vec<_>>()
        };
        let (none, one, two) = (slice("n0", 2, 0), slice("n0", 2, 1), slice("n0", 2, 2));
        assert_eq!(reasons(None, &two), ["Attached"]);
        assert!(reasons(Some(&two), &two).is_empty());
        assert_eq!(reasons(Some(&two), &one), ["Lost"]);
        // One of the pods was removed.
        assert!(reasons(Some(&two), &slice("n0", 1, 1)).is_empty());
        let mut starting = slice("n0", 2, 0);
        starting.waiting = 2;
        starting.message = Some("starting".to_owned());
        assert!(reasons(Some(&two), &starting).is_empty());
        starting.reason = Some(Reason::Waiting);
        assert_eq!(reasons(Some(&two), &starting), ["Lost"]);
        let mut conflict = none.clone();
        conflict.reason = Some(Reason::Conflict);
        assert_eq!(reasons(None, &conflict), ["Conflict"]);
        assert!(reasons(Some(&conflict), &conflict).is_empty());
        let mut refused = none;
        refused.reason = Some(Reason::Refused);
        assert_eq!(reasons(None, &refused), ["Refused"]);
        assert!(reasons(Some(&refused), &refused).is_empty());
    }

    #[test]
    fn a_starting_network_is_pending() {
        let mut starting = slice("n0", 2, 0);
        starting.waiting = 2;
        starting.message = Some("starting".to_owned());
        let verdict = &verdicts(2, &[starting])[1];
        assert_eq!((verdict.is_true, verdict.reason), (Some(false), "Pending"));
        assert_eq!(verdict.message, "0 of 2 pods; n0: starting");
    }

    #[test]
    fn an_unchanged_condition_keeps_its_time() {
        let verdict = || accepted(2, &[slice("n0", 1, 1)]);
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let first = verdict().into_condition(2, &[], early);
        let second = verdict().into_condition(2, from_ref(&first), late);
        assert_eq!(first, second);
        let changed = Verdict {
            is_true: None,
            ..verdict()
        };
        let third = changed.into_condition(2, &[first], late);
        assert_eq!(third.last_transition_time, Time(late));
    }
}
