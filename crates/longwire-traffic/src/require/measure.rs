//! Measures for `--require`: values from the report of a link or a run.

use longwire_engine::{DropReason, Nanos};
use longwire_runtime::counters::{Counter, Effects, LATENESS, Statistic, Traffic};
use longwire_runtime::report::{DISTRIBUTIONS, Distribution};
use longwire_runtime::{Artifact, Pauses, RunReport};

use super::{Place, RequireError};

#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// A statistic over a distribution of times.
    Time(&'static Distribution, &'static Statistic),
    /// Artifacts of one kind, or of all kinds.
    Artifacts(Option<Artifact>),
    /// Artifacts caused by the emulator itself.
    ArtifactsOwn,
    /// Artifacts whose frame the emulator lost.
    ArtifactsLost,
    /// Drops for one reason, or for all reasons.
    Drops(Option<DropReason>),
    /// A link counter.
    Counter(&'static Counter),
    /// A statistic over machine pauses or process stops: their accessor, whether the statistic is a
    /// time, and its value.
    Standstill(fn(&RunReport) -> &Pauses, bool, fn(&Pauses) -> f64),
}

/// Name and accessor of a kind of run interruption.
type Standstill = (&'static str, fn(&RunReport) -> &Pauses);

const STANDSTILLS: [Standstill; 2] = [
    ("pauses", |report| &report.pauses),
    ("stops", |report| &report.stops),
];

/// A statistic over interruptions: name, whether it is a time, and value; times are in
/// nanoseconds.
type PauseMeasure = (&'static str, bool, fn(&Pauses) -> f64);

const PAUSES: [PauseMeasure; 3] = [
    ("count", false, |pauses| pauses.count as f64),
    ("max", true, |pauses| pauses.max_us * 1e3),
    ("total", true, |pauses| pauses.total_us * 1e3),
];

/// Measures that sum several counters.
const SUMS: [(&str, Measure); 4] = [
    ("artifacts", Measure::Artifacts(None)),
    ("artifacts-own", Measure::ArtifactsOwn),
    ("artifacts-lost", Measure::ArtifactsLost),
    ("drops", Measure::Drops(None)),
];

/// Returns a link's plain counters by name.
fn counts() -> impl Iterator<Item = (&'static str, Measure)> {
    let counters = [Traffic::COUNTERS, Effects::COUNTERS];
    let counters = counters.into_iter().flatten();
    let counters = counters.map(|counter| (counter.name, Measure::Counter(counter)));
    SUMS.into_iter().chain(counters)
}

/// Returns the measure families, `FAMILY.PART`, with their parts.
fn families() -> Vec<(&'static str, Vec<(&'static str, Measure)>)> {
    let artifacts = Artifact::ALL.map(|kind| (kind.name(), Measure::Artifacts(Some(kind))));
    let drops = DropReason::ALL.map(|reason| (reason.name(), Measure::Drops(Some(reason))));
    let times = DISTRIBUTIONS.iter().map(|times| {
        let parts = LATENESS.iter();
        let parts = parts.map(|part| (part.name, Measure::Time(times, part)));
        (times.name, parts.collect())
    });
    let standstills = STANDSTILLS.map(|(name, pauses)| {
        let part = |(name, is_time, of)| (name, Measure::Standstill(pauses, is_time, of));
        (name, PAUSES.map(part).to_vec())
    });
    let counted = [("artifacts", artifacts.to_vec()), ("drops", drops.to_vec())];
    let counted = counted.into_iter();
    counted.chain(times).chain(standstills).collect()
}

/// Parses a measure's name.
///
/// # Errors
/// If the name is unknown; the error lists the closest names.
pub(super) fn parse(name: &str) -> Result<Measure, RequireError> {
    let unknown = |known: String| RequireError::UnknownName {
        name: name.to_owned(),
        known,
    };
    if let Some((_, measure)) = counts().find(|(known, _)| *known == name) {
        return Ok(measure);
    }
    let Some((family, part)) = name.split_once('.') else {
        return Err(unknown(known_names()));
    };
    let found = families().into_iter().find(|(known, _)| *known == family);
    let (_, parts) = found.ok_or_else(|| unknown(known_names()))?;
    let measure = parts.iter().find(|(known, _)| *known == part);
    let known = || unknown(prefixed(family, &parts));
    measure.map(|(_, measure)| *measure).ok_or_else(known)
}

/// Whether a name belongs to a known family, such as `drops.lost`.
pub(super) fn is_family(name: &str) -> bool {
    let family = name.split_once('.').map_or(name, |(family, _)| family);
    let counted = counts().any(|(known, _)| known == family);
    counted || families().iter().any(|(known, _)| *known == family)
}

fn known_names() -> String {
    let counts = counts().map(|(name, _)| name.to_owned());
    let families = families().into_iter();
    let families = families.map(|(family, parts)| prefixed(family, &parts));
    counts.chain(families).collect::<Vec<_>>().join(", ")
}

fn prefixed(prefix: &str, parts: &[(&str, Measure)]) -> String {
    let names = parts.iter().map(|(name, _)| format!("{prefix}.{name}"));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns a statistic in nanoseconds; `None` if nothing was measured.
fn time(place: &Place<'_>, times: &Distribution, part: &Statistic) -> Option<f64> {
    let found = match (place, times.name) {
        (Place::Port(port), "lateness") => port.lateness_us,
        (Place::Port(port), "lateness-own") => port.lateness_own_us,
        (Place::Link(link), _) => (times.of)(link)?,
        _ => return None,
    };
    // Reports contain unrounded microseconds.
    match (part.of)(&found) * 1e3 {
        // A replay without gaps has no gap error, which counts as 0.
        nanos if nanos.is_nan() => (times.name == "gap").then_some(0.0),
        nanos => Some(nanos),
    }
}

impl Measure {
    /// Returns the value of a run-level measure.
    pub(super) fn of_run(&self, report: &RunReport) -> Option<f64> {
        match self {
            Measure::Standstill(pauses, _, of) => Some(of(pauses(report))),
            _ => None,
        }
    }

    /// Whether this measure belongs to the whole run, not to links.
    pub(super) fn is_of_run(&self) -> bool {
        matches!(self, Measure::Standstill(..))
    }

    /// Whether the measure can be a share of frames.
    pub(super) fn is_shared(&self) -> bool {
        matches!(
            self,
            Measure::Artifacts(_)
                | Measure::ArtifactsOwn
                | Measure::ArtifactsLost
                | Measure::Drops(_)
        )
    }

    /// Whether the measure is counted at ports rather than on links.
    pub(super) fn is_at_ports(&self) -> bool {
        match self {
            Measure::Time(times, _) => times.name.starts_with("lateness"),
            Measure::Artifacts(_) | Measure::ArtifactsOwn | Measure::ArtifactsLost => true,
            _ => false,
        }
    }

    /// Whether the measure counts frames or bytes, at links and at ports.
    pub(super) fn is_of_traffic(&self) -> bool {
        matches!(self, Measure::Counter(counter) if Traffic::COUNTERS.contains(counter))
    }

    /// Returns the name of the summarised time distribution, such as `gap` for the gaps between a
    /// replay's departures or `sent` for send timestamps.
    pub(super) fn times(&self) -> Option<&'static str> {
        match self {
            Measure::Time(times, _) => Some(times.name),
            _ => None,
        }
    }

    /// Whether the measure is a time rather than a count.
    pub(super) fn is_time(&self) -> bool {
        matches!(self, Measure::Time(..) | Measure::Standstill(_, true, _))
    }

    /// Whether the measure compares a time with a release, which another host may have decided.
    pub(super) fn is_of_clocks(&self) -> bool {
        self.times().is_some_and(|times| times != "gap")
    }

    /// Returns the value, in nanoseconds for times; `None` if nothing was measured. Counts that a
    /// report lacks are zero.
    pub(super) fn of(&self, place: &Place<'_>) -> Option<f64> {
        let count = match self {
            Measure::Time(times, part) => return time(place, times, part),
            Measure::Artifacts(Some(kind)) => {
                let counted = place.counts_artifacts(Some(*kind));
                return counted.then(|| place.artifacts().of(kind.name()) as f64);
            }
            _ if self.is_at_ports() && !place.counts_artifacts(None) => return None,
            Measure::Artifacts(None) => place.artifacts().total(),
            Measure::ArtifactsOwn => place.count(Artifact::is_own),
            Measure::ArtifactsLost => place.count(Artifact::is_lost),
            Measure::Drops(None) => place.link()?.drops.total(),
            Measure::Drops(Some(reason)) => place.link()?.drops.of(reason.name()),
            Measure::Counter(counter) => {
                let traffic = place.traffic();
                let effects = place.link().map(|link| link.effects);
                let effects = effects.iter().flat_map(Effects::counted);
                let mut counted = traffic.counted().chain(effects);
                counted.find(|(found, _)| found.name == counter.name)?.1
            }
            Measure::Standstill(..) => return None,
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
