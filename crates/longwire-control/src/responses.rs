//! Response bodies; the schemas of the OpenAPI document derive from them.

use std::borrow::Cow;

use longwire_client::ProblemBody;
use longwire_engine::Nanos;
use longwire_network::{ChangeRecord, LinkView, PathView, RuleView, SentChange};
pub use longwire_network::{ChangeResult, Totals};
use longwire_runtime::RunReport;
pub use longwire_runtime::RunReport as Report;
use longwire_runtime::deciding::{LinkTotals, PortReport};
use longwire_topology::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::view::fidelity::Fidelity;
pub use crate::view::flows::Flows;
pub use crate::view::history::{Columns, HistoryEvent};
pub use crate::view::table::{TablePage, TableRow};

/// Converts a problem. Omits file and line, which mean nothing to a client.
pub fn problem_body(problem: Problem) -> ProblemBody {
    ProblemBody {
        pointer: problem.pointer,
        field: problem.field,
        reason: problem.reason,
        remedy: problem.remedy,
    }
}

/// Overview of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// Always `longwire`.
    #[schemars(extend("const" = "longwire"))]
    pub program: Cow<'static, str>,
    /// Version of the program.
    pub version: Cow<'static, str>,
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of links.
    pub links: usize,
    /// Number of paths.
    pub paths: usize,
    /// Whether the request's token allows changes.
    #[serde(default)]
    pub may_change: bool,
    /// Whether the run has a live view, which records its history from the start.
    #[serde(default)]
    pub view: bool,
    /// Progress of a replay, whose links cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayProgress>,
}

/// Progress of a replay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayProgress {
    /// Fraction sent; null if the length is unknown.
    pub sent: Option<f64>,
    /// Inputs: traces, or a generator.
    pub inputs: Vec<ReplayedInput>,
}

/// Input of a replay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedInput {
    /// Name.
    pub name: String,
    /// Fraction read, which is ahead of the fraction sent; null if the length is unknown.
    pub read: Option<f64>,
    /// Maximum delay of reading a frame after its due time, in microseconds.
    pub behind_max_us: f64,
}

impl ReplayProgress {
    /// Returns the progress of a replay.
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
    /// Links, ordered by name.
    pub links: Vec<LinkView>,
    /// Parameter `after` of the next page.
    pub next: Option<String>,
}

/// A page of rules.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Rules, in rule order.
    pub rules: Vec<RuleView>,
    /// Parameter `skip` of the next page.
    pub next: Option<usize>,
}

/// All paths.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Paths {
    /// Paths.
    pub paths: Vec<PathView>,
}

/// All ports.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ports {
    /// Ports.
    pub ports: Vec<PortReport>,
}

/// Changes of the run, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Changes.
    pub changes: Vec<ChangeRecord>,
    /// Number of older changes, which are no longer kept.
    pub forgotten: u64,
    /// Parameter `skip` of the previous page.
    #[serde(default)]
    pub next: Option<usize>,
}

/// Upcoming events of the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Upcoming {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Lead of the scenario over the run because of skips, in seconds.
    pub skipped_s: f64,
    /// Next events. Events due within 2 s are listed as changes instead.
    pub events: Vec<ScenarioEvent>,
}

/// Event of the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioEvent {
    /// Time since the start of the run, in nanoseconds.
    pub at_ns: u64,
    /// The change; for a ramp, as in the scenario file.
    #[schemars(with = "serde_json::Value")]
    pub change: SentChange,
}

/// Event to which the scenario has skipped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Time of the event since the start of the run, in nanoseconds; null if no event was left.
    pub at_ns: Option<u64>,
}

/// Counters, summed over links.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Number of links; a link with separate directions counts twice.
    pub links: usize,
    /// Sums.
    pub totals: Totals,
}

/// Counters at one time. All rates are null in the first event; the rates of sums are also null
/// after links were added or removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsEvent {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Time since the previous event, in seconds; 0 in the first event.
    pub interval_s: f64,
    /// Number of links; a link with separate directions counts twice.
    pub links: usize,
    /// Sums.
    pub totals: Totals,
    /// Rates of the sums.
    pub rates: Option<Rates>,
    /// Individual links, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Vec<StatsRow>>,
}

/// A link, or one direction of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsRow {
    /// Name, with `.up` or `.down` for a separate direction.
    pub name: String,
    /// Counters.
    pub totals: Totals,
    /// Rates of the counters.
    pub rates: Option<Rates>,
}

/// Mean rates since the previous event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Offered frames/s.
    pub packets_in_per_s: f64,
    /// Offered bit/s.
    pub bits_in_per_s: f64,
    /// Delivered frames/s.
    pub packets_out_per_s: f64,
    /// Delivered bit/s.
    pub bits_out_per_s: f64,
    /// Dropped frames/s.
    pub drops_per_s: f64,
}

impl Rates {
    /// Returns the mean rates from `before` to `now`; `None` if no time has passed, or if a counter
    /// has decreased because links were replaced.
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
    use longwire_runtime::counters::Traffic;

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
    fn rates_are_per_second() {
        let (before, mut now) = (totals(10, 1000, 0), totals(30, 3500, 4));
        now.drops[DropReason::Mtu] = 2;
        let rates = Rates::between(&before, &now, Nanos::from_millis(500)).expect("it grew");
        assert_eq!(rates.packets_in_per_s, 40.0);
        assert_eq!(rates.bits_in_per_s, 40_000.0);
        assert_eq!(rates.packets_out_per_s, 8.0);
        assert_eq!(rates.drops_per_s, 4.0);
        // A link that is removed and added again starts at 0.
        assert_eq!(Rates::between(&now, &before, Nanos::from_secs(1)), None);
        assert_eq!(Rates::between(&before, &now, Nanos::ZERO), None);
    }
}
