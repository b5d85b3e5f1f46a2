//! The selected traffic of an attachment, for lists.

use longwire_client::node::{AttachmentSpec, DirectionSpec};
use serde::{Deserialize, Serialize};

/// The packets of an interface that cross the link, as option values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SelectedTraffic {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    #[serde(default, skip_serializing_if = "DirectionSpec::is_both")]
    pub direction: DirectionSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

impl SelectedTraffic {
    /// Returns the traffic of an attachment of the node.
    pub(super) fn of_spec(spec: &AttachmentSpec) -> SelectedTraffic {
        SelectedTraffic {
            to: spec.to.clone(),
            filter: spec.filter.clone(),
            direction: spec.direction,
            priority: spec.priority,
        }
    }

    /// Refuses a direction that the link does not have.
    ///
    /// # Errors
    /// The direction that it has.
    pub(super) fn check(&self, direction: &str) -> Result<(), String> {
        let only = match self.direction {
            DirectionSpec::Both => return Ok(()),
            DirectionSpec::Up => "up",
            DirectionSpec::Down => "down",
        };
        if direction == only {
            return Ok(());
        }
        Err(format!(
            "the link has one direction, {only}: another one has to be attached for the other"
        ))
    }

    /// Formats the traffic as a table cell.
    pub(super) fn words(&self, fails_closed: bool) -> String {
        let mut words = Vec::new();
        if !self.to.is_empty() {
            words.push(format!("to {}", self.to.join(" ")));
        }
        if let Some(filter) = &self.filter {
            words.push(format!("filter '{filter}'"));
        }
        match self.direction {
            DirectionSpec::Both => {}
            DirectionSpec::Up => words.push("up only".to_owned()),
            DirectionSpec::Down => words.push("down only".to_owned()),
        }
        if let Some(priority) = self.priority {
            words.push(format!("priority {priority}"));
        }
        if words.is_empty() {
            words.push("all".to_owned());
        }
        if fails_closed {
            words.push("fails closed".to_owned());
        }
        words.join("; ")
    }
}
