//! Record of a run's changes. A ramp counts as one change.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};

use longwire_engine::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::json;
use super::plan::PreparedCommand;
use longwire_topology::{Command, RampStep};

/// Time since the start of the run at which a change took effect, set by the deciding thread.
pub(super) type EffectTime = Arc<OnceLock<Nanos>>;

/// A change that was applied or is scheduled.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Done")]
pub struct ChangeRecord {
    /// Time of the change since the start of the run, in nanoseconds.
    pub at_ns: u64,
    /// Time of a ramp's last step since the start of the run, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// Origin of the change.
    pub by: Origin,
    /// The change as sent; for a ramp, as in the scenario file.
    #[schemars(schema_with = "change_schema")]
    pub change: SentChange,
    /// Number of links whose options or state were set in at least one direction.
    pub links: usize,
    /// Error that prevented the change, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Last step of a ramp so far.
    #[serde(skip)]
    pub(super) ramp: Option<RampStep>,
    /// Overrides `at_ns` once set.
    #[serde(skip)]
    pub(super) effect: EffectTime,
}

/// Origin of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Origin {
    /// The run's scenario.
    Scenario,
    /// The control API.
    Control,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Scenario => "scenario",
            Origin::Control => "control",
        })
    }
}

/// Returns the schema of a [`SentChange`]: a `Change`, or a ramp from the scenario.
fn change_schema(_: &mut SchemaGenerator) -> Schema {
    let ramp = json!({
        "type": "object",
        "description": "A ramp of the scenario, by names of links.",
        "properties": { "ramp": { "type": "object" } },
        "required": ["ramp"],
    });
    json_schema!({ "anyOf": [{ "$ref": "#/components/schemas/Change" }, ramp] })
}

/// A change as JSON text, which takes much less memory than a value tree.
#[derive(Clone, Debug)]
pub struct SentChange(Arc<RawValue>);

impl From<&Value> for SentChange {
    fn from(change: &Value) -> SentChange {
        // Serializing a value cannot fail.
        let text = to_raw_value(change).unwrap_or_default();
        SentChange(text.into())
    }
}

impl SentChange {
    /// Returns a command's change; for the first step of a ramp, the whole ramp.
    pub(super) fn of_command(command: &Command) -> SentChange {
        SentChange::from(&match &command.ramp {
            Some(step) if step.step == 0 => ramp_in_json(step),
            _ => json::change(&command.actions),
        })
    }
}

impl fmt::Display for SentChange {
    /// Formats the change, such as `set core rate=4mbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = serde_json::from_str(self.0.get()).unwrap_or_default();
        f.write_str(&json::change_in_words(&change))
    }
}

impl Serialize for SentChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SentChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SentChange, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(SentChange(text.into()))
    }
}

/// Maximum number of changes kept, and their maximum total bytes. Older changes are only counted.
const REMEMBERED_MAX: usize = 10_000;
const REMEMBERED_BYTES_MAX: usize = 32 << 20;

/// Maximum number of changes searched backwards for the ramp of a step.
const LOOKED_AT_MAX: usize = 1_000;

/// A run's changes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Changes {
    /// The most recent changes.
    pub made: VecDeque<ChangeRecord>,
    /// Number of older changes, which are not kept.
    pub forgotten: u64,
    /// Total bytes of `made`.
    #[serde(skip)]
    bytes: usize,
}

impl Changes {
    /// Adds a change, or extends the ramp to which it belongs.
    pub fn remember(&mut self, done: ChangeRecord) {
        if let Some(step) = &done.ramp
            && step.step > 0
            && let Some(ramp) = self.ramp_of(step)
        {
            ramp.until_ns = Some(done.at_ns);
            ramp.error = ramp.error.take().or(done.error);
            ramp.ramp = done.ramp;
            return;
        }
        self.bytes += done.change.0.get().len();
        self.made.push_back(done);
        while self.made.len() > REMEMBERED_MAX || self.bytes > REMEMBERED_BYTES_MAX {
            let Some(oldest) = self.made.pop_front() else {
                return;
            };
            self.bytes -= oldest.change.0.get().len();
            self.forgotten += 1;
        }
    }

    fn ramp_of(&mut self, step: &RampStep) -> Option<&mut ChangeRecord> {
        let mut last = self.made.iter_mut().rev().take(LOOKED_AT_MAX);
        let is_same = |done: &ChangeRecord| done.ramp.as_ref().is_some_and(|of| of.id == step.id);
        last.find(|done| is_same(done))
    }

    /// Returns the changes sorted by effect time, which may differ from the order of preparation.
    pub fn in_order(mut self) -> Changes {
        for done in &mut self.made {
            done.at_ns = done.effect.get().map_or(done.at_ns, |at| at.as_nanos());
        }
        self.made.make_contiguous().sort_by_key(|done| done.at_ns);
        self
    }

    /// Drops changes after `time`.
    pub fn until(mut self, time: Nanos) -> Changes {
        self.made.retain(|done| done.at_ns <= time.as_nanos());
        for done in &mut self.made {
            done.cut(time);
        }
        self
    }
}

impl ChangeRecord {
    /// Creates the record of a scenario command.
    pub fn of_scenario(command: &Command, prepared: &PreparedCommand) -> ChangeRecord {
        ChangeRecord {
            at_ns: command.at.unwrap_or(Nanos::ZERO).as_nanos(),
            until_ns: None,
            by: Origin::Scenario,
            change: SentChange::of_command(command),
            links: prepared.links,
            error: None,
            ramp: command.ramp.clone(),
            effect: EffectTime::default(),
        }
    }

    /// Moves the end of a ramp back to its last step by `time`.
    fn cut(&mut self, time: Nanos) {
        let (Some(step), Some(until)) = (&mut self.ramp, &mut self.until_ns) else {
            return;
        };
        while *until > time.as_nanos() && step.step > 0 {
            step.step -= 1;
            *until = self.at_ns + step.of.after(step.step).as_nanos();
        }
    }
}

/// Returns a ramp as JSON, with the keys of a scenario file.
fn ramp_in_json(step: &RampStep) -> Value {
    let ramp = &step.of;
    let [from, to] = &ramp.ends;
    json!({ "ramp": { ramp.pattern.clone(): {
        "option": ramp.option,
        "from": from,
        "to": to,
        "time": ramp.time.to_string(),
        "steps": ramp.steps,
    } } })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use longwire_topology::Topology;

    const NETWORK: &str = "[ports]\na = \"packet:a\"\nb = \"packet:b\"\n\
        [[link]]\nname = \"x\"\nmatch = \"src=10.0.0.1\"\n\
        [[at]]\ntime = \"1s\"\nevery = \"10s\"\ntimes = 2\noff = \"x\"\n\
        ramp = { x = { option = \"delay\", from = \"1ms\", to = \"9ms\", time = \"4s\", steps = 4 } }\n";

    fn changes() -> Changes {
        let topology = Topology::parse("net.toml", NETWORK, Path::new("")).expect("a topology");
        let mut changes = Changes::default();
        for command in topology.timeline.commands() {
            // Each change sets one link.
            let prepared = PreparedCommand {
                links: 1,
                ..PreparedCommand::default()
            };
            changes.remember(ChangeRecord::of_scenario(&command, &prepared));
        }
        changes
    }

    fn facts(changes: &Changes) -> Vec<(u64, Option<u64>, usize, bool)> {
        const MS: u64 = 1_000_000;
        let facts = changes.made.iter().map(|done| {
            let until = done.until_ns.map(|until| until / MS);
            (
                done.at_ns / MS,
                until,
                done.links,
                sent(done)["ramp"].is_object(),
            )
        });
        facts.collect()
    }

    fn sent(done: &ChangeRecord) -> Value {
        serde_json::from_str(done.change.0.get()).expect("JSON")
    }

    #[test]
    fn a_ramp_is_one_change() {
        let changes = changes();
        assert_eq!(
            facts(&changes),
            [
                (1_000, None, 1, false),
                (1_000, Some(5_000), 1, true),
                (11_000, None, 1, false),
                (11_000, Some(15_000), 1, true),
            ]
        );
        assert_eq!(sent(&changes.made[1])["ramp"]["x"]["to"], "9ms");
    }

    #[test]
    fn steps_that_were_not_made_are_not_counted() {
        let until = changes().until(Nanos::from_millis(13_500));
        assert_eq!(facts(&until)[3], (11_000, Some(13_000), 1, true));
        let until = changes().until(Nanos::from_millis(11_000));
        assert_eq!(facts(&until)[3], (11_000, Some(11_000), 1, true));
        assert_eq!(changes().until(Nanos::from_millis(5_000)).made.len(), 2);
    }

    #[test]
    fn changes_are_told_in_order_of_time() {
        let mut changes = changes();
        let mut late = changes.made[0].clone();
        late.at_ns = 2_000_000_000;
        changes.remember(late);
        let order = changes.in_order();
        assert!(order.made.iter().is_sorted_by_key(|done| done.at_ns));
        assert_eq!(order.made[2].at_ns, 2_000_000_000);
    }
}
