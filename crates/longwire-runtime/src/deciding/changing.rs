//! Adding, changing and removing links, paths and rules.

use std::sync::Arc;

use longwire_engine::{
    Link, LinkChange, LinkId, Nanos, PathId, QueueLengths, RemovedLink, ReplacedParts,
};
use longwire_packet::classify::{Matcher, RuleError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::core::Core;
use super::frames::Frame;
use super::state::Target;
use crate::counters::LinkCells;

/// Objects that a change replaced. Drop them outside the data path, because models may hold
/// traces of many megabytes.
#[derive(Debug)]
#[must_use = "drop it off the hot path"]
pub struct DeferredDrop(#[allow(dead_code, reason = "it is only dropped")] ReplacedObjects);

#[derive(Debug)]
#[allow(dead_code, reason = "they are only dropped")]
#[allow(
    clippy::large_enum_variant,
    reason = "boxing would allocate on the hot path"
)]
enum ReplacedObjects {
    Models(ReplacedParts),
    Link(RemovedLink<Frame>, Arc<LinkCells>),
}

/// Occupancy of a link's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct Occupancy {
    /// Frames in the queue.
    pub packets: u64,
    /// Bytes in the queue.
    pub bytes: u64,
    /// The maximum number of frames so far.
    pub packets_max: u64,
    /// The maximum number of bytes so far.
    pub bytes_max: u64,
    /// The limit in frames, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_limit: Option<u64>,
    /// The limit in bytes, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_limit: Option<u64>,
}

/// Returns the maximum time by which a link's decisions may lag: zero for a router, because its
/// ICMP errors leave immediately.
fn slack_of(link: &Link) -> Nanos {
    if link.is_router() {
        Nanos::ZERO
    } else {
        link.poll_slack()
    }
}

impl Core {
    /// Returns the occupancy of a link's queue; `None` if the link does not exist.
    pub fn occupancy(&self, id: LinkId) -> Option<Occupancy> {
        let lengths = self.shards.occupancy(id, self.advanced)?;
        let QueueLengths {
            now: (packets, bytes),
            max: (packets_max, bytes_max),
            limit,
        } = lengths;
        Some(Occupancy {
            packets: packets.0,
            bytes: bytes.0,
            packets_max: packets_max.0,
            bytes_max: bytes_max.0,
            packets_limit: limit.packets.map(|packets| packets.0),
            bytes_limit: limit.bytes.map(|bytes| bytes.0),
        })
    }

    /// Adds a link with its counters. Link numbers are not reused.
    pub fn add_link(&mut self, id: LinkId, link: Link, cells: Arc<LinkCells>) {
        self.carriers.changed = true;
        self.slack = self.slack.min(slack_of(&link));
        self.shards.add_link(id, link, cells);
    }

    pub(super) fn link(&self, id: LinkId) -> Option<&Link> {
        self.shards.link(id)
    }

    /// Removes a link. Returns `None` if a path crosses it or it holds frames.
    pub fn remove_link(&mut self, id: LinkId) -> Option<DeferredDrop> {
        if self.shards.first.state.cells_of(id)?.totals().held() > 0 {
            return None;
        }
        let (removed, cells) = self.shards.remove_link(id)?;
        Some(DeferredDrop(ReplacedObjects::Link(removed, cells)))
    }

    /// Changes a link at the order's time `at` and returns the replaced objects; `None` if the link
    /// does not exist.
    pub fn change_link(
        &mut self,
        id: LinkId,
        at: Nanos,
        change: LinkChange,
    ) -> Option<DeferredDrop> {
        self.carriers.changed |= change.state.is_some();
        let replaced = self.shards.change(id, at, change)?;
        if let Some(link) = self.link(id) {
            self.slack = self.slack.min(slack_of(link));
        }
        Some(DeferredDrop(ReplacedObjects::Models(replaced)))
    }

    /// Adds a path of existing links. Returns `false` if a link does not exist. Path
    /// numbers are not reused.
    pub fn add_path(&mut self, id: PathId, links: &[LinkId]) -> bool {
        self.shards.add_path(id, links)
    }

    /// Removes a path. Returns `false` while frames are on it.
    pub fn remove_path(&mut self, id: PathId) -> bool {
        self.shards.remove_path(id)
    }

    /// Adds a rule after the existing ones. The caller chooses `number`, which must be unused; the
    /// initial rules are numbered from 0.
    ///
    /// # Errors
    /// No frame can match, or there are too many rules.
    pub fn add_rule(
        &mut self,
        number: u32,
        matcher: Matcher,
        target: Target,
    ) -> Result<(), RuleError> {
        let id = self.classifier.insert(matcher, target, 0)?;
        let index = number as usize;
        if index >= self.rules.len() {
            self.rules.resize(index + 1, None);
        }
        self.rules[index] = Some(id);
        Ok(())
    }

    /// Removes a rule if it exists.
    pub fn remove_rule(&mut self, number: u32) {
        let place = self.rules.get_mut(number as usize);
        if let Some(id) = place.and_then(Option::take) {
            // Every listed rule is in the classifier.
            let _ = self.classifier.remove(id);
        }
    }

    /// Changes the target of frames that match no rule.
    pub fn set_unmatched(&mut self, target: Target) {
        self.classifier.set_unmatched(target);
    }

    /// Changes a rule's target if the rule exists.
    pub fn set_target(&mut self, number: u32, target: Target) {
        if let Some(Some(id)) = self.rules.get(number as usize) {
            let _ = self.classifier.set_target(*id, target);
        }
    }
}
