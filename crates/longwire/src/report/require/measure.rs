//! Measures of `--require`: values of a link's or a run's report.

use std::collections::BTreeMap;

use longwire_engine::{DropReason, Nanos};
use longwire_runtime::{Lateness, LinkReport, Pauses, RunReport};

use super::RequireError;
use crate::report::artifacts::{ARTIFACTS, is_lost, is_own};

/// A measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Lateness(LatenessMeasure),
    /// Lateness without frames that a witnessed pause or the start made late.
    LatenessOwn(LatenessMeasure),
    /// Error of the gaps between a replay's departures.
    GapError(LatenessMeasure),
    /// Lateness of send stamps.
    Sent(LatenessMeasure),
    /// Artifacts of one kind, or all of them.
    Artifacts(Option<String>),
    /// Artifacts of all kinds that are the emulator's own.
    ArtifactsOwn,
    /// Artifacts of all kinds that are frames lost by the emulator.
    ArtifactsLost,
    /// Drops for one reason, or all of them.
    Drops(Option<String>),
    /// Pauses of the machine.
    Pauses(PauseMeasure),
    /// Stops of the process.
    Stops(PauseMeasure),
    PacketsIn,
    PacketsOut,
    BytesIn,
    BytesOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatenessMeasure {
    P50,
    P99,
    P999,
    Max,
    Mean,
    Stddev,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseMeasure {
    Count,
    Max,
    Total,
}

/// Statistics of lateness by name, as in the JSON report.
const LATENESS: [(&str, LatenessMeasure); 6] = [
    ("p50", LatenessMeasure::P50),
    ("p99", LatenessMeasure::P99),
    ("p999", LatenessMeasure::P999),
    ("max", LatenessMeasure::Max),
    ("mean", LatenessMeasure::Mean),
    ("stddev", LatenessMeasure::Stddev),
];

const PAUSES: [(&str, PauseMeasure); 3] = [
    ("count", PauseMeasure::Count),
    ("max", PauseMeasure::Max),
    ("total", PauseMeasure::Total),
];

/// Families of times, by name.
type Times = (&'static str, fn(LatenessMeasure) -> Measure);

const TIMES: [Times; 4] = [
    ("lateness", Measure::Lateness),
    ("lateness-own", Measure::LatenessOwn),
    ("gap", Measure::GapError),
    ("sent", Measure::Sent),
];

/// Names of measures that are plain counts of a link.
const COUNTS: [(&str, Measure); 8] = [
    ("artifacts", Measure::Artifacts(None)),
    ("artifacts-own", Measure::ArtifactsOwn),
    ("artifacts-lost", Measure::ArtifactsLost),
    ("drops", Measure::Drops(None)),
    ("packets_in", Measure::PacketsIn),
    ("packets_out", Measure::PacketsOut),
    ("bytes_in", Measure::BytesIn),
    ("bytes_out", Measure::BytesOut),
];

/// Parses a measure's name.
///
/// # Errors
/// If there is none: with the closest names.
pub(super) fn parse(name: &str) -> Result<Measure, RequireError> {
    let unknown = |known: String| RequireError::UnknownName {
        name: name.to_owned(),
        known,
    };
    if let Some((_, measure)) = COUNTS.into_iter().find(|(known, _)| *known == name) {
        return Ok(measure);
    }
    let Some((family, part)) = name.split_once('.') else {
        return Err(unknown(known_names()));
    };
    if let Some((_, measure)) = TIMES.into_iter().find(|(known, _)| *known == family) {
        let named = LATENESS.into_iter().find(|(known, _)| *known == part);
        let known = || unknown(prefixed(family, &LATENESS.map(|(name, _)| name)));
        return named.map(|(_, of)| measure(of)).ok_or_else(known);
    }
    match family {
        "artifacts" if ARTIFACTS.iter().any(|kind| kind.name == part) => {
            Ok(Measure::Artifacts(Some(part.to_owned())))
        }
        "artifacts" => Err(unknown(prefixed(
            "artifacts",
            &ARTIFACTS.map(|kind| kind.name),
        ))),
        "drops" if DropReason::ALL.iter().any(|reason| reason.name() == part) => {
            Ok(Measure::Drops(Some(part.to_owned())))
        }
        "drops" => Err(unknown(prefixed(
            "drops",
            &DropReason::ALL.map(DropReason::name),
        ))),
        "pauses" | "stops" => {
            let named = PAUSES.into_iter().find(|(known, _)| *known == part);
            let known = || unknown(prefixed(family, &PAUSES.map(|(name, _)| name)));
            let of = named.map(|(_, of)| of).ok_or_else(known)?;
            Ok(match family {
                "pauses" => Measure::Pauses(of),
                _ => Measure::Stops(of),
            })
        }
        _ => Err(unknown(known_names())),
    }
}

/// Whether a name belongs to an existing family: `drops.lost`.
pub(super) fn is_family(name: &str) -> bool {
    let family = name.split_once('.').map_or(name, |(family, _)| family);
    let counted = COUNTS.iter().any(|(known, _)| *known == family);
    let timed = TIMES.iter().any(|(known, _)| *known == family);
    counted || timed || ["pauses", "stops"].contains(&family)
}

fn known_names() -> String {
    let times = TIMES.map(|(family, _)| prefixed(family, &LATENESS.map(|(name, _)| name)));
    let pauses = ["pauses", "stops"].map(|of| prefixed(of, &PAUSES.map(|(name, _)| name)));
    let drops = prefixed("drops", &DropReason::ALL.map(DropReason::name));
    let artifacts = prefixed("artifacts", &ARTIFACTS.map(|kind| kind.name));
    let counts = COUNTS.map(|(name, _)| name).join(", ");
    format!(
        "{counts}, {artifacts}, {drops}, {}, {}, \
         received.NAME of what `receive --require` knows, \
         each also of one link as in up.artifacts, and of a network's as in adsl7.down.drops",
        times.join(", "),
        pauses.join(", "),
    )
}

fn prefixed(prefix: &str, names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("{prefix}.{name}"));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the frames of which shares are taken: those that entered or those
/// that left, the larger number of both, and those that an input port lost.
pub fn frames(link: &LinkReport) -> u64 {
    let lost_at_port = ["ring_full", "too_long"]
        .iter()
        .filter_map(|kind| link.artifacts.get(kind));
    link.packets_in.max(link.packets_out) + lost_at_port.sum::<u64>()
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

impl PauseMeasure {
    /// Returns a count, or nanoseconds.
    fn of(self, pauses: &Pauses) -> f64 {
        match self {
            PauseMeasure::Count => pauses.count as f64,
            PauseMeasure::Max => pauses.max_us * 1e3,
            PauseMeasure::Total => pauses.total_us * 1e3,
        }
    }
}

impl Measure {
    /// Returns the value in the report of a run, if the measure is about the
    /// whole run.
    pub(super) fn of_run(&self, report: &RunReport) -> Option<f64> {
        match self {
            Measure::Pauses(of) => Some(of.of(&report.pauses)),
            Measure::Stops(of) => Some(of.of(&report.stops)),
            _ => None,
        }
    }

    /// Whether the measure is about the whole run rather than about links.
    pub(super) fn is_of_run(&self) -> bool {
        matches!(self, Measure::Pauses(_) | Measure::Stops(_))
    }

    /// Whether the measure may be compared with a share of the frames.
    pub(super) fn is_shared(&self) -> bool {
        matches!(
            self,
            Measure::Artifacts(_)
                | Measure::ArtifactsOwn
                | Measure::ArtifactsLost
                | Measure::Drops(_)
        )
    }

    /// Whether a link was measured at all: a network measures lateness at its
    /// ports, where frames leave it.
    pub(super) fn is_measured(&self, link: &LinkReport) -> bool {
        match self {
            Measure::Lateness(_) => !link.lateness_us.max.is_nan(),
            Measure::LatenessOwn(_) => !link.lateness_own_us.max.is_nan(),
            _ => true,
        }
    }

    /// Whether the measure is a time rather than a count.
    pub(super) fn is_time(&self) -> bool {
        match self {
            Measure::Lateness(_)
            | Measure::LatenessOwn(_)
            | Measure::GapError(_)
            | Measure::Sent(_) => true,
            Measure::Pauses(of) | Measure::Stops(of) => *of != PauseMeasure::Count,
            _ => false,
        }
    }

    /// Returns the value: nanoseconds or a count. A missing count in a report
    /// is zero; `None` where nothing was measured.
    pub(super) fn of(&self, link: &LinkReport) -> Option<f64> {
        let sum = |counts: &BTreeMap<&str, u64>, kind: &Option<String>| match kind {
            Some(kind) => counts.get(kind.as_str()).copied().unwrap_or(0),
            None => counts.values().sum(),
        };
        let of_kinds = |chosen: fn(&str) -> bool| -> u64 {
            let kinds = link.artifacts.iter().filter(|(kind, _)| chosen(kind));
            kinds.map(|(_, count)| count).sum()
        };
        let count = match self {
            Measure::Lateness(_) | Measure::LatenessOwn(_) if !self.is_measured(link) => {
                return None;
            }
            // The report has microseconds with all decimals.
            Measure::Lateness(measure) => return Some(measure.of(&link.lateness_us) * 1e3),
            Measure::LatenessOwn(measure) => {
                return Some(measure.of(&link.lateness_own_us) * 1e3);
            }
            // Without gaps there is no error.
            Measure::GapError(measure) => {
                let departures = link.departures.as_ref();
                return Some(departures.map_or(0.0, |of| measure.of(&of.gap_error_us)) * 1e3);
            }
            Measure::Sent(measure) => {
                let stamps = link.send_stamps.as_ref().filter(|found| found.count > 0);
                return stamps.map(|found| measure.of(&found.lateness_us) * 1e3);
            }
            Measure::Artifacts(kind) => sum(&link.artifacts, kind),
            Measure::ArtifactsOwn => of_kinds(is_own),
            Measure::ArtifactsLost => of_kinds(is_lost),
            Measure::Drops(reason) => sum(&link.drops, reason),
            Measure::PacketsIn => link.packets_in,
            Measure::PacketsOut => link.packets_out,
            Measure::BytesIn => link.bytes_in,
            Measure::BytesOut => link.bytes_out,
            Measure::Pauses(_) | Measure::Stops(_) => return None,
        };
        Some(count as f64)
    }

    pub(super) fn show(&self, value: f64) -> String {
        if self.is_time() {
            Nanos::from_nanos(value as u64).to_string()
        } else {
            format!("{value}")
        }
    }
}
