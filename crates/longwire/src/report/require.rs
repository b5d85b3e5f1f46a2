//! `--require`: what a run must have been, as an expression such as
//! `lateness.p99<50us,artifacts=0`.
//!
//! Clauses are separated by commas and must all hold. A clause is a name, a
//! comparison and a value; it holds for every link, or for one when a link's
//! name stands in front: `up.lateness.p99<50us`.

use std::collections::BTreeMap;
use std::str::FromStr;

use longwire_engine::units::{UnitError, parse_count};
use longwire_engine::{DropReason, Nanos};
use longwire_runtime::{Lateness, LinkReport, RunReport};

use super::artifacts::ARTIFACTS;
use super::received::ReceivedClause;
use crate::receiving::require::ReceiveRequireError;

/// What a run must have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    clauses: Vec<Clause>,
    received: Vec<ReceivedClause>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clause {
    /// As its user wrote it.
    text: String,
    /// The link it is about; `None` is every link.
    link: Option<String>,
    measure: Measure,
    comparison: Comparison,
    /// In nanoseconds for lateness and gaps, else a count.
    value: u64,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Measure {
    Lateness(LatenessMeasure),
    /// Of the gaps between a replay's departures.
    GapError(LatenessMeasure),
    /// Of send stamps.
    Sent(LatenessMeasure),
    /// Of one kind, or all of them.
    Artifacts(Option<String>),
    /// For one reason, or all of them.
    Drops(Option<String>),
    PacketsIn,
    PacketsOut,
    BytesIn,
    BytesOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatenessMeasure {
    P50,
    P99,
    P999,
    Max,
    Mean,
    Stddev,
}

/// Their names, as in the JSON report.
const LATENESS: [(&str, LatenessMeasure); 6] = [
    ("p50", LatenessMeasure::P50),
    ("p99", LatenessMeasure::P99),
    ("p999", LatenessMeasure::P999),
    ("max", LatenessMeasure::Max),
    ("mean", LatenessMeasure::Mean),
    ("stddev", LatenessMeasure::Stddev),
];

/// Names of measures that are plain counts of a link.
const COUNTS: [(&str, Measure); 4] = [
    ("packets_in", Measure::PacketsIn),
    ("packets_out", Measure::PacketsOut),
    ("bytes_in", Measure::BytesIn),
    ("bytes_out", Measure::BytesOut),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// How comparisons are written; those of two characters come first, so that
/// `<=` is not read as `<`.
const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// Links that a run may have.
const LINKS: [&str; 4] = ["up", "down", "ab", "ba"];

/// Whether a link may be called so.
fn is_link(name: &str) -> bool {
    LINKS.contains(&name) || is_output(name)
}

/// Whether a replay may call an output so: `out`, `out1`, `out2`, …
fn is_output(name: &str) -> bool {
    let number = name.strip_prefix("out");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Why a requirement was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RequireError {
    #[error("nothing is required; write for example lateness.p99<50us,artifacts=0")]
    Empty,
    #[error("'{clause}' compares nothing; write a name, one of < <= = >= > and a value")]
    NoComparison { clause: String },
    #[error("'{name}' is not known; known are {known}")]
    UnknownName { name: String, known: String },
    #[error("'{clause}': {source}")]
    Value { clause: String, source: UnitError },
    #[error("'{clause}': {source}")]
    Received {
        clause: String,
        source: ReceiveRequireError,
    },
}

impl FromStr for Requirement {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Requirement, RequireError> {
        let clauses = text.split(',').map(str::trim).filter(|c| !c.is_empty());
        let mut required = Requirement {
            clauses: Vec::new(),
            received: Vec::new(),
        };
        for clause in clauses {
            match ReceivedClause::parse(clause, is_link) {
                Some(received) => required.received.push(received?),
                None => required.clauses.push(clause.parse()?),
            }
        }
        if required.clauses.is_empty() && required.received.is_empty() {
            return Err(RequireError::Empty);
        }
        Ok(required)
    }
}

impl FromStr for Clause {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Clause, RequireError> {
        let missing = || RequireError::NoComparison {
            clause: text.to_owned(),
        };
        let at = text.find(['<', '>', '=']).ok_or_else(missing)?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(missing)?;
        let (link, measure) = parse_name(name.trim())?;
        let value = rest[sign.len()..].trim();
        let value = match measure {
            Measure::Lateness(_) | Measure::GapError(_) | Measure::Sent(_) => {
                value.parse().map(Nanos::as_nanos)
            }
            _ => parse_count(value),
        };
        Ok(Clause {
            text: text.to_owned(),
            link,
            measure,
            comparison,
            value: value.map_err(|source| RequireError::Value {
                clause: text.to_owned(),
                source,
            })?,
        })
    }
}

/// Splits a name into its link, if one stands in front, and its measure.
fn parse_name(name: &str) -> Result<(Option<String>, Measure), RequireError> {
    let (link, rest) = match name.split_once('.') {
        Some((link, rest)) if is_link(link) => (Some(link.to_owned()), rest),
        _ => (None, name),
    };
    Ok((link, parse_measure(rest)?))
}

fn parse_measure(name: &str) -> Result<Measure, RequireError> {
    let unknown = |known: String| RequireError::UnknownName {
        name: name.to_owned(),
        known,
    };
    if let Some((_, measure)) = COUNTS.into_iter().find(|(known, _)| *known == name) {
        return Ok(measure);
    }
    match name.split_once('.') {
        None if name == "artifacts" => Ok(Measure::Artifacts(None)),
        None if name == "drops" => Ok(Measure::Drops(None)),
        Some((of @ ("lateness" | "gap" | "sent"), part)) => LATENESS
            .into_iter()
            .find(|(known, _)| *known == part)
            .map(|(_, measure)| match of {
                "lateness" => Measure::Lateness(measure),
                "gap" => Measure::GapError(measure),
                _ => Measure::Sent(measure),
            })
            .ok_or_else(|| unknown(prefixed(of, LATENESS.map(|(name, _)| name)))),
        Some(("artifacts", kind)) if ARTIFACTS.iter().any(|known| known.name == kind) => {
            Ok(Measure::Artifacts(Some(kind.to_owned())))
        }
        Some(("artifacts", _)) => Err(unknown(prefixed("artifacts", ARTIFACTS.map(|k| k.name)))),
        Some(("drops", reason)) if DropReason::ALL.iter().any(|r| r.name() == reason) => {
            Ok(Measure::Drops(Some(reason.to_owned())))
        }
        Some(("drops", _)) => Err(unknown(prefixed(
            "drops",
            DropReason::ALL.map(|r| r.name()),
        ))),
        _ => Err(unknown(known_names())),
    }
}

fn known_names() -> String {
    let lateness = prefixed("lateness", LATENESS.map(|(name, _)| name));
    let gap = prefixed("gap", LATENESS.map(|(name, _)| name));
    let sent = prefixed("sent", LATENESS.map(|(name, _)| name));
    let drops = prefixed("drops", DropReason::ALL.map(|reason| reason.name()));
    let artifacts = prefixed("artifacts", ARTIFACTS.map(|kind| kind.name));
    let counts = COUNTS.map(|(name, _)| name).join(", ");
    format!(
        "{lateness}, {gap}, {sent}, artifacts, {artifacts}, drops, {drops}, {counts}, \
         received.NAME of what `receive --require` knows, \
         each also of one link as in up.artifacts"
    )
}

fn prefixed<const N: usize>(prefix: &str, names: [&str; N]) -> String {
    names.map(|name| format!("{prefix}.{name}")).join(", ")
}

impl Requirement {
    /// What of it the run did not meet: a sentence for each clause and link.
    pub fn unmet(&self, report: &RunReport) -> Vec<String> {
        let mut unmet = Vec::new();
        for clause in &self.clauses {
            let about =
                |link: &&LinkReport| clause.link.as_ref().is_none_or(|l| same(l, &link.name));
            let mut links = report.links.iter().filter(about).peekable();
            if links.peek().is_none() {
                unmet.push(format!("{}: the run had no such link", clause.text));
            }
            unmet.extend(links.filter_map(|link| clause.unmet(link)));
        }
        for clause in &self.received {
            unmet.extend(clause.unmet(&report.links));
        }
        unmet
    }
}

/// Whether two names mean the same direction: `up` is `ab`, `down` is `ba`.
pub(super) fn same(one: &str, other: &str) -> bool {
    let direction = |name| match name {
        "ab" => "up",
        "ba" => "down",
        other => other,
    };
    direction(one) == direction(other)
}

impl Clause {
    fn unmet(&self, link: &LinkReport) -> Option<String> {
        let Some(found) = self.measure.of(link) else {
            return Some(format!("{}: {} has no send stamps", self.text, link.name));
        };
        if self.comparison.holds(found, self.value as f64) {
            return None;
        }
        let found = self.measure.show(found);
        Some(format!("{}: {} had {found}", self.text, link.name))
    }
}

impl Comparison {
    fn holds(self, found: f64, wanted: f64) -> bool {
        match self {
            Comparison::Less => found < wanted,
            Comparison::LessOrEqual => found <= wanted,
            Comparison::Equal => found == wanted,
            Comparison::GreaterOrEqual => found >= wanted,
            Comparison::Greater => found > wanted,
        }
    }
}

impl LatenessMeasure {
    fn of(self, lateness: &Lateness) -> f64 {
        match self {
            LatenessMeasure::P50 => lateness.p50,
            LatenessMeasure::P99 => lateness.p99,
            LatenessMeasure::P999 => lateness.p999,
            LatenessMeasure::Max => lateness.max,
            LatenessMeasure::Mean => lateness.mean,
            LatenessMeasure::Stddev => lateness.stddev,
        }
    }
}

impl Measure {
    /// Its value: nanoseconds or a count. What never happened may be missing
    /// from a report, and counts as zero; `None` where nothing was measured.
    fn of(&self, link: &LinkReport) -> Option<f64> {
        let sum = |counts: &BTreeMap<&str, u64>, kind: &Option<String>| match kind {
            Some(kind) => counts.get(kind.as_str()).copied().unwrap_or(0),
            None => counts.values().sum(),
        };
        let count = match self {
            // The report gives microseconds, rounded nowhere.
            Measure::Lateness(measure) => return Some(measure.of(&link.lateness_us) * 1e3),
            // Without gaps there is nothing to be wrong.
            Measure::GapError(measure) => {
                let departures = link.departures.as_ref();
                return Some(departures.map_or(0.0, |of| measure.of(&of.gap_error_us)) * 1e3);
            }
            Measure::Sent(measure) => {
                let stamps = link.send_stamps.as_ref().filter(|found| found.count > 0);
                return stamps.map(|found| measure.of(&found.lateness_us) * 1e3);
            }
            Measure::Artifacts(kind) => sum(&link.artifacts, kind),
            Measure::Drops(reason) => sum(&link.drops, reason),
            Measure::PacketsIn => link.packets_in,
            Measure::PacketsOut => link.packets_out,
            Measure::BytesIn => link.bytes_in,
            Measure::BytesOut => link.bytes_out,
        };
        Some(count as f64)
    }

    fn show(&self, value: f64) -> String {
        match self {
            Measure::Lateness(_) | Measure::GapError(_) | Measure::Sent(_) => {
                Nanos::from_nanos(value as u64).to_string()
            }
            _ => format!("{value}"),
        }
    }
}

#[cfg(test)]
#[path = "require_tests.rs"]
mod tests;
