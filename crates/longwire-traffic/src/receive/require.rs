//! `receive --require`: requirements on received frames, such as
//! `lost=0,gap_error.p99<10us,drift<1`.
//!
//! All clauses, separated by commas, must hold. If a report has several values for a measure (per
//! stream, or for a trace and an expected gap), the maximum counts.

use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_runtime::Spread;
use longwire_runtime::counters::RECEIVED;
use longwire_units::{parse_count, parse_real};

use super::report::{ReceiveReport, SequenceReport, Timing, TraceReport};
use crate::require::RequireError;
use crate::require::grammar::{self, Comparator, SplitClause};

/// A conjunction of requirements on a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiveRequirement {
    clauses: Vec<ReceiveCondition>,
}

#[derive(Clone, Debug, PartialEq)]
struct ReceiveCondition {
    /// Text of the clause.
    text: String,
    measure: ReceiveMeasure,
    comparison: Comparator,
    /// Bound: a count, microseconds or parts per million.
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveMeasure {
    /// Index in [`COUNTS`].
    Count(usize),
    /// Index in [`SPREADS`], and in [`RECEIVED`].
    Spread(usize, usize),
    Jitter,
    Drift,
}

/// Name and accessor of a count.
type Count = (&'static str, fn(&ReceiveReport) -> u64);

const COUNTS: [Count; 10] = [
    ("packets", |report| report.packets),
    ("bytes", |report| report.bytes),
    ("lost", |report| {
        let of_trace = |trace: &TraceReport| trace.lost + trace.behind_last;
        sum(report, |sequence| sequence.lost, of_trace)
    }),
    ("duplicates", |report| {
        sum(report, |sent| sent.duplicates, |trace| trace.duplicates)
    }),
    ("reordered", |report| {
        sum(report, |sent| sent.reordered, |trace| trace.reordered)
    }),
    ("changed", |report| {
        sum(report, |_| 0, |trace| trace.changed)
    }),
    ("foreign", |report| {
        sum(report, |_| 0, |trace| trace.foreign)
    }),
    ("matched", |report| {
        sum(report, |_| 0, |trace| trace.matched)
    }),
    ("streams", |report| report.streams.len() as u64),
    ("unseen", |report| report.unseen.total()),
];

/// Sums a count over all streams and the trace.
fn sum(
    report: &ReceiveReport,
    of_stream: fn(&SequenceReport) -> u64,
    of_trace: fn(&TraceReport) -> u64,
) -> u64 {
    let streams = report.streams.iter();
    let streams = streams.map(|stream| of_stream(&stream.sequence));
    streams.sum::<u64>() + report.trace.as_ref().map_or(0, of_trace)
}

/// Name and accessor of a set of time distributions.
type Spreads = (&'static str, fn(&ReceiveReport) -> Vec<Spread>);

const SPREADS: [Spreads; 4] = [
    ("gap", |report| vec![report.gap_us]),
    ("gap_error", |report| {
        let timings = timings(report);
        timings.iter().map(|timing| timing.gap_error_us).collect()
    }),
    ("delay", |report| {
        let streams = report.streams.iter().map(|stream| stream.delay_us);
        let delay = report.delay.map(|delay| delay.one_way_us);
        streams.chain(delay).collect()
    }),
    ("offset", |report| {
        let timings = timings(report);
        timings.iter().map(|timing| timing.offset_us).collect()
    }),
];

/// An example expression, shown in messages.
const EXAMPLE: &str = "lost=0,gap_error.p99<10us";

impl FromStr for ReceiveRequirement {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<ReceiveRequirement, RequireError> {
        let clauses = grammar::clauses(text, EXAMPLE)?.into_iter();
        let clauses = clauses.map(parse_clause).collect::<Result<_, _>>()?;
        Ok(ReceiveRequirement { clauses })
    }
}

fn parse_clause(text: &str) -> Result<ReceiveCondition, RequireError> {
    let split = SplitClause::of(text)?;
    let measure = parse_name(split.name)?;
    let value = split.value;
    let value = match measure {
        ReceiveMeasure::Count(_) => parse_count(value).map(|count| count as f64),
        ReceiveMeasure::Drift => parse_real(value),
        ReceiveMeasure::Spread(..) | ReceiveMeasure::Jitter => {
            value.parse().map(|time: Nanos| time.as_micros_f64())
        }
    };
    Ok(ReceiveCondition {
        text: text.to_owned(),
        measure,
        comparison: split.comparison,
        value: value.map_err(|source| RequireError::Value {
            clause: text.to_owned(),
            source,
        })?,
    })
}

fn parse_name(name: &str) -> Result<ReceiveMeasure, RequireError> {
    if let Some(count) = COUNTS.iter().position(|known| known.0 == name) {
        return Ok(ReceiveMeasure::Count(count));
    }
    let parts = |(spread, figure)| {
        let spread = SPREADS.iter().position(|known| known.0 == spread)?;
        let figure = RECEIVED.iter().position(|known| known.name == figure)?;
        Some(ReceiveMeasure::Spread(spread, figure))
    };
    let found = match name {
        "drift" => Some(ReceiveMeasure::Drift),
        "jitter" => Some(ReceiveMeasure::Jitter),
        _ => name.split_once('.').and_then(parts),
    };
    found.ok_or_else(|| RequireError::UnknownReceived {
        name: name.to_owned(),
        known: known_names(),
    })
}

fn known_names() -> String {
    let counts = COUNTS.map(|(name, _)| name).join(", ");
    let spreads = SPREADS.map(|(name, _)| name).join(", ");
    let figures = RECEIVED.each_ref();
    let figures = figures.map(|figure| format!(".{}", figure.name)).join(" ");
    format!("{counts}, drift (ppm), jitter (a time), and {spreads}, each with {figures} (times)")
}

/// Returns all comparisons with schedules.
fn timings(report: &ReceiveReport) -> Vec<Timing> {
    let streams = report.streams.iter().map(|stream| stream.timing);
    let trace = report.trace.as_ref().map(|trace| trace.timing);
    streams.chain(trace).chain(report.expected_gap).collect()
}

impl ReceiveRequirement {
    /// Returns a message for each unmet clause.
    pub fn unmet(&self, report: &ReceiveReport) -> Vec<String> {
        let clauses = self.clauses.iter();
        clauses.filter_map(|clause| clause.unmet(report)).collect()
    }
}

impl ReceiveCondition {
    fn unmet(&self, report: &ReceiveReport) -> Option<String> {
        let Some(found) = self.measure.of(report) else {
            return Some(format!("{}: not measured", self.text));
        };
        if self.comparison.holds(found, self.value) {
            return None;
        }
        let unit = match self.measure {
            ReceiveMeasure::Count(_) => "",
            ReceiveMeasure::Drift => " ppm",
            ReceiveMeasure::Spread(..) | ReceiveMeasure::Jitter => " us",
        };
        Some(format!("{}: was {found}{unit}", self.text))
    }
}

impl ReceiveMeasure {
    /// Returns the maximum value, if there is any.
    fn of(self, report: &ReceiveReport) -> Option<f64> {
        match self {
            ReceiveMeasure::Count(count) => Some(COUNTS[count].1(report) as f64),
            ReceiveMeasure::Spread(spread, figure) => {
                let spreads = SPREADS[spread].1(report);
                let spreads = spreads.iter().filter(|spread| spread.count > 0);
                spreads
                    .map(|spread| (RECEIVED[figure].of)(spread))
                    .max_by(f64::total_cmp)
            }
            ReceiveMeasure::Jitter => {
                let streams = report.streams.iter().map(|stream| stream.jitter_us);
                let jitters = streams.chain(report.delay.map(|delay| delay.jitter_us));
                jitters.max_by(f64::total_cmp)
            }
            ReceiveMeasure::Drift => {
                let drifts = timings(report).into_iter();
                let drifts = drifts.filter_map(|timing| timing.drift);
                drifts.map(|drift| drift.ppm.abs()).max_by(f64::total_cmp)
            }
        }
    }
}

#[cfg(test)]
#[path = "require_tests.rs"]
mod tests;
