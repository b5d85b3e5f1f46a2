//! The bodies of responses: the server writes them, a client reads them, and the schemas
//! of the OpenAPI document follow from them.

use std::borrow::Cow;
use std::fmt;

use longwire_engine::Nanos;
use longwire_fabric::{Done, LinkView, PathView, RuleView, SentChange};
use longwire_runtime::RunReport;
use longwire_runtime::fabric::{LinkTotals, PortReport};
use longwire_topology::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::view::columns::{Columns, HistoryEvent};
pub use crate::view::fidelity::Fidelity;
pub use crate::view::flows::Flows;
pub use crate::view::table::{TablePage, TableRow};
pub use longwire_fabric::{Changed, Totals};
pub use longwire_runtime::RunReport as Report;

/// The reason for which a request is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// In one line.
    pub error: String,
    /// Everything that is wrong with a change.
    #[serde(default)]
    pub problems: Vec<Wrong>,
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Wrong {
    /// The pointer (RFC 6901) to the value in the request's body; empty for the body as a
    /// whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// The field or option, as in `set.adsl*.rate`.
    pub field: String,
    /// The reason.
    pub reason: String,
    /// The remedy; empty if there is none.
    pub remedy: String,
}

impl From<Problem> for Wrong {
    fn from(problem: Problem) -> Wrong {
        Wrong {
            pointer: problem.pointer,
            field: problem.field,
            reason: problem.reason,
            remedy: problem.remedy,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.reason)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

/// The run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// The program: `longwire`.
    #[schemars(extend("const" = "longwire"))]
    pub program: Cow<'static, str>,
    /// The program's version.
    pub version: Cow<'static, str>,
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// The seed of all random streams.
    pub seed: u64,
    /// Links by name.
    pub links: usize,
    /// Paths of several links.
    pub paths: usize,
    /// Whether the token of the request allows changes.
    #[serde(default)]
    pub may_change: bool,
    /// Whether the run has a page, and keeps its history from the start.
    #[serde(default)]
    pub view: bool,
    /// The replay, if this is one: its links cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayProgress>,
}

/// How far a replay is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayProgress {
    /// The share that has been sent, from 0 to 1; null if the length is not known.
    pub sent: Option<f64>,
    /// The inputs: traces, or a generator.
    pub inputs: Vec<ReplayedInput>,
}

/// An input of a replay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedInput {
    /// Its name.
    pub name: String,
    /// The share that has been read, from 0 to 1, ahead of its time; null if the length is
    /// not known.
    pub read: Option<f64>,
    /// By how much frames were read after they were due, at most, in microseconds.
    pub behind_max_us: f64,
}

impl ReplayProgress {
    /// Returns how far a replay is.
    pub fn of(report: &RunReport) -> ReplayProgress {
        let inputs = report.inputs.iter().map(|input| ReplayedInput {
            name: input.name.clone(),
            read: input.fraction,
            behind_max_us: input.behind_max_us,
        });
        ReplayProgress {
            sent: report.progress(),
            inputs: inputs.collect(),
        }
    }
}

/// A page of links.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Links {
    /// The links, in the order of their names.
    pub links: Vec<LinkView>,
    /// The parameter `after` of the next page.
    pub next: Option<String>,
}

/// A page of rules.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// The rules, in their order.
    pub rules: Vec<RuleView>,
    /// The parameter `skip` of the next page.
    pub next: Option<usize>,
}

/// All paths.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Paths {
    /// The paths.
    pub paths: Vec<PathView>,
}

/// All ports.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ports {
    /// The ports.
    pub ports: Vec<PortReport>,
}

/// Changes, the oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The changes.
    pub changes: Vec<Done>,
    /// Earlier changes that are not kept.
    pub forgotten: u64,
    /// The parameter `skip` for the changes before these.
    #[serde(default)]
    pub next: Option<usize>,
}

/// The events of the scenario that are still to come.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Upcoming {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// By how much the scenario is ahead of the run, because events were skipped to.
    pub skipped_s: f64,
    /// The next events that are not among the changes yet: those of the next 2 s are.
    pub events: Vec<ScenarioEvent>,
}

/// An event of the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioEvent {
    /// When it will happen since the start of the run, in nanoseconds.
    pub at_ns: u64,
    /// The change; of a ramp, as the file has it.
    #[schemars(with = "serde_json::Value")]
    pub change: SentChange,
}

/// The event that was skipped to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// When it happens since the start of the run, in nanoseconds; null if there was none.
    pub at_ns: Option<u64>,
}

/// Sums over links.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// The number of links; directions count separately.
    pub links: usize,
    /// The sums.
    pub totals: Totals,
}

/// Counters at one time. Rates are null in the first event, and those of the sum when
/// links were added or removed since the last one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsEvent {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Time since the last event, in seconds; 0 in the first one.
    pub interval_s: f64,
    /// The number of links; directions count separately.
    pub links: usize,
    /// The sums.
    pub totals: Totals,
    /// The growth of the sums.
    pub rates: Option<Rates>,
    /// Each link, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Vec<StatsRow>>,
}

/// A link; its direction follows its name where they are separate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsRow {
    /// The name.
    pub name: String,
    /// The counters.
    pub totals: Totals,
    /// Their growth.
    pub rates: Option<Rates>,
}

/// Growth of counters per second, since the last event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Frames that arrived.
    pub packets_in_per_s: f64,
    /// Their bits.
    pub bits_in_per_s: f64,
    /// Frames delivered.
    pub packets_out_per_s: f64,
    /// Their bits.
    pub bits_out_per_s: f64,
    /// Frames dropped.
    pub drops_per_s: f64,
}

impl Rates {
    /// Returns the growth from `before` to `now`, a second. `None` if a counter became
    /// less or no time passed: then these are not the same links.
    pub fn between(before: &LinkTotals, now: &LinkTotals, passed: Nanos) -> Option<Rates> {
        let seconds = passed.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let rate = |before: u64, now: u64| Some(now.checked_sub(before)? as f64 / seconds);
        let (sent, seen) = (&before.traffic, &now.traffic);
        Some(Rates {
            packets_in_per_s: rate(sent.packets_in, seen.packets_in)?,
            bits_in_per_s: 8.0 * rate(sent.bytes_in, seen.bytes_in)?,
            packets_out_per_s: rate(sent.packets_out, seen.packets_out)?,
            bits_out_per_s: 8.0 * rate(sent.bytes_out, seen.bytes_out)?,
            drops_per_s: rate(before.drops.total(), now.drops.total())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::DropReason;
    use longwire_runtime::ledger::Traffic;

    use super::*;

    fn totals(packets_in: u64, bytes_in: u64, packets_out: u64) -> LinkTotals {
        LinkTotals {
            traffic: Traffic {
                packets_in,
                bytes_in,
                packets_out,
                bytes_out: 0,
            },
            ..LinkTotals::default()
        }
    }

    #[test]
    fn rates_are_over_the_time_that_passed() {
        let (before, mut now) = (totals(10, 1000, 0), totals(30, 3500, 4));
        now.drops[DropReason::Mtu] = 2;
        let rates = Rates::between(&before, &now, Nanos::from_millis(500)).expect("it grew");
        assert_eq!(rates.packets_in_per_s, 40.0);
        assert_eq!(rates.bits_in_per_s, 40_000.0);
        assert_eq!(rates.packets_out_per_s, 8.0);
        assert_eq!(rates.drops_per_s, 4.0);
        // A link that was removed and made again has counted less.
        assert_eq!(Rates::between(&now, &before, Nanos::from_secs(1)), None);
        assert_eq!(Rates::between(&before, &now, Nanos::ZERO), None);
    }
}
