//! The verdict on a run: one line that says whether the link met its
//! configuration, and remedies.

use std::io::{self, Write};

use longwire_runtime::ledger::NamedCounts;
use longwire_runtime::{Artifact, InputReport, LinkReport, Pauses, RunReport, Spread};
use serde::Serialize;

use super::artifacts::{self, is_own};
use super::require::frames;
use super::undelivered::UndeliveredFrames;
use super::words::{count, count_of, micros, percent, rate};
use crate::cli::Paint;

/// A link with a smaller share of own artifacts met its configuration apart
/// from them.
pub const SHARE_SMALL: f64 = 0.001;

/// From this share of the run on, a hint on waiting for a core is printed.
const CORE_WAIT_MIN: f64 = 0.01;

/// Praise for a run without any lateness.
pub(crate) const IN_TIME: &str = "each at its nanosecond";

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the run met its configuration.
    pub faithful: bool,
    /// The verdict in one line.
    pub line: String,
    /// Causes and remedies.
    pub hints: Vec<String>,
}

impl Verdict {
    /// Returns the verdict on a finished run.
    pub fn of(report: &RunReport) -> Verdict {
        let (faithful, line) = judge(report);
        Verdict {
            faithful,
            line,
            hints: hints(report),
        }
    }

    /// Writes the verdict and its hints.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let line = if self.faithful {
            paint.good(&self.line)
        } else {
            paint.bad(&self.line)
        };
        writeln!(out, "{line}")?;
        for hint in &self.hints {
            writeln!(out, "  {hint}")?;
        }
        Ok(())
    }

    /// Writes stops of the process, unless they are among the hints.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn write_stops(&self, out: &mut impl Write, found: &Pauses) -> io::Result<()> {
        let stops = stops(found).filter(|stops| !self.hints.contains(stops));
        stops.map_or(Ok(()), |stops| writeln!(out, "note: {stops}"))
    }
}

fn judge(report: &RunReport) -> (bool, String) {
    let links = &report.links;
    let subject = subject(report);
    let artifacts: Vec<String> = links.iter().filter_map(artifacts).collect();
    let artifacts = artifacts.join("; ");
    let arrived: u64 = links.iter().map(|link| link.traffic.packets_in).sum();
    let share = links.iter().map(own_share).fold(0.0, f64::max);
    if let Some(error) = &report.error {
        return (false, format!("the run ended early: {error}"));
    }
    if report.stopped_early {
        return (false, stopped_early(report));
    }
    if let Some(link) = links.iter().find(|link| lost_unseen(link) > 0) {
        let line = format!(
            "{subject} fell short of what was asked for: {} delivered none of {} frames, and {} of \
             them are not accounted for; please report this",
            link.name,
            count(link.traffic.packets_in),
            count(lost_unseen(link)),
        );
        return (false, line);
    }
    if share >= SHARE_SMALL || (report.stops.count > 0 && !artifacts.is_empty()) {
        let line = format!("{subject} fell short of what was asked for: {artifacts}");
        return (false, line);
    }
    if arrived == 0 && artifacts.is_empty() {
        return (true, nothing_to_judge(subject));
    }
    if let Some(undelivered) = UndeliveredFrames::of(links)
        && !undelivered.asked_for()
    {
        let line = format!("{subject} is not usable: {}", undelivered.line());
        return (false, line);
    }
    let praise = praise(report);
    let line = if artifacts.is_empty() {
        format!("{subject} was what was asked for: {praise}, no artifacts")
    } else {
        format!("{subject} was what was asked for, apart from {artifacts}: {praise}")
    };
    (true, line)
}

/// Describes a replay that was stopped before the end of its input.
fn stopped_early(report: &RunReport) -> String {
    let links = &report.links;
    let sent: u64 = links.iter().map(|link| link.traffic.packets_out).sum();
    let read: u64 = links.iter().map(|link| link.in_flight).sum();
    let done = report.progress();
    let done = done.map_or(String::new(), |done| {
        format!(" at {} of its input", percent(done))
    });
    format!(
        "{} was stopped{done}: {} sent, {} more read and not sent",
        subject(report),
        count_of(sent, "frame"),
        count(read)
    )
}

/// Returns the share of a link's frames that are the emulator's own artifacts.
pub(crate) fn own_share(link: &LinkReport) -> f64 {
    let own = link.artifacts.iter().filter(|(kind, _)| is_own(kind));
    let own: u64 = own.map(|(_, count)| count).sum();
    own as f64 / frames(link).max(1) as f64
}

/// Returns the frames of a link that delivered none which are neither dropped
/// by a model, nor artifacts, nor still under way.
fn lost_unseen(link: &LinkReport) -> u64 {
    if link.traffic.packets_out > 0 || link.traffic.packets_in == 0 {
        return 0;
    }
    let seen = link.drops.total() + link.artifacts.total() + link.in_flight;
    link.traffic.packets_in.saturating_sub(seen)
}

/// Describes stops of the process, if there were any.
pub(crate) fn stops(stops: &Pauses) -> Option<String> {
    (stops.count > 0).then(|| {
        format!(
            "stops: the process was stopped or not scheduled {}, for {} in all (a signal such as \
             SIGSTOP, a debugger or a freezer)",
            times(stops.count),
            micros(stops.total_us),
        )
    })
}

/// Formats how often something happened.
fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", count(n)),
    }
}

fn hints(report: &RunReport) -> Vec<String> {
    let happened = |kind: &str| report.links.iter().any(|link| link.artifacts.of(kind) > 0);
    let undelivered = UndeliveredFrames::of(&report.links);
    let mut hints = undelivered.map_or_else(Vec::new, |undelivered| undelivered.hints());
    hints.extend(causes(report, happened));
    hints
}

/// Returns hints on artifacts, causes first: there may be no room for all. `happened` returns
/// whether there were artifacts of a kind.
pub(crate) fn causes<L>(report: &RunReport<L>, happened: impl Fn(&str) -> bool) -> Vec<String> {
    let is_effect = |kind: &str| {
        let kinds = [Artifact::Late, Artifact::LatePaused, Artifact::LateStart];
        kinds.iter().any(|effect| effect.name() == kind)
    };
    let mut hints: Vec<String> =
        artifacts::hints(|kind| happened(kind) && !is_effect(kind)).collect();
    hints.extend(machine_hints(report, &happened));
    hints.extend(artifacts::hints(|kind| happened(kind) && is_effect(kind)));
    hints
}

/// Returns the causes of artifacts outside of the program: stops, pauses and cores that others
/// had. `happened` returns whether there were artifacts of a kind.
fn machine_hints<L>(report: &RunReport<L>, happened: impl Fn(&str) -> bool) -> Vec<String> {
    let mut hints = Vec::new();
    let any = |is: fn(Artifact) -> bool| {
        let mut kinds = Artifact::ALL.into_iter().filter(|kind| is(*kind));
        kinds.any(|kind| happened(kind.name()))
    };
    if any(|_| true) {
        hints.extend(stops(&report.stops));
    }
    let pauses = &report.pauses;
    if pauses.count > 0 && any(Artifact::is_late) {
        hints.push(format!(
            "pauses: the machine itself stood still {}, {} at the longest and {} in all; this \
             lateness is not Longwire's",
            times(pauses.count),
            micros(pauses.max_us),
            micros(pauses.total_us),
        ));
    }
    if happened(Artifact::Late.name()) && lacked_cores(report) {
        hints.push(format!(
            "cores: other programs used them; threads of the emulator waited {} in all for one",
            micros(report.core_wait_s * 1e6),
        ));
    }
    hints
}

/// Whether threads of the emulator waited for cores that other programs used.
fn lacked_cores<L>(report: &RunReport<L>) -> bool {
    report.core_wait_s > CORE_WAIT_MIN * report.duration_s
}

/// A longer pause excuses no frame: those that it made late count as the emulator's own.
const PAUSE_EXCUSED_MAX_US: f64 = 100_000.0;

/// Whether frames were late because the machine stood still or other programs had its cores.
pub(crate) fn machine_was_busy(report: &RunReport) -> bool {
    let happened = |kind: Artifact| {
        let mut links = report.links.iter();
        links.any(|link| link.artifacts.of(kind.name()) > 0)
    };
    let long_pause = report.pauses.max_us > PAUSE_EXCUSED_MAX_US;
    let by_machine = happened(Artifact::LatePaused)
        || (happened(Artifact::Late) && (lacked_cores(report) || long_pause));
    by_machine && report.stops.count == 0
}

/// Returns the subject of the verdict.
fn subject(report: &RunReport) -> &'static str {
    let generated = |input: &InputReport| input.counts.contains_key("generated");
    match report.inputs.as_slice() {
        [] => "the link",
        inputs if inputs.iter().all(generated) => "the traffic",
        _ => "the replay",
    }
}

/// Returns the verdict on a run without frames.
fn nothing_to_judge(subject: &str) -> String {
    let happened = match subject {
        "the link" => "arrived",
        _ => "was sent",
    };
    format!("no frame {happened}: there is no verdict on {subject}")
}

/// Returns the artifacts of a link, if it has any: `up 12 late, 3 memory (0.15%
/// of 10,000 frames)`.
fn artifacts(link: &LinkReport) -> Option<String> {
    let kinds = kinds(&link.artifacts)?;
    let sum = link.artifacts.total();
    let frames = frames(link);
    let of = match frames {
        0 => String::new(),
        frames => format!(
            " ({} of {} frames)",
            percent(sum as f64 / frames as f64),
            count(frames)
        ),
    };
    Some(format!("{} {kinds}{of}", link.name))
}

/// Lists artifacts by kind, if there are any: `12 late, 3 memory`.
pub(crate) fn kinds(artifacts: &NamedCounts) -> Option<String> {
    let happened = artifacts.nonzero();
    let kinds: Vec<String> = happened
        .map(|(kind, n)| format!("{} {kind}", count(n)))
        .collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// Describes the greatest lateness of these, if any frame was late.
pub(crate) fn lateness(spreads: impl Iterator<Item = Spread>) -> Option<String> {
    let (p99, max) = spreads.fold((0.0, 0.0), |(p99, max), spread| {
        (f64::max(p99, spread.p99), f64::max(max, spread.max))
    });
    let (p99, most) = (micros(p99), micros(max));
    (max > 0.0).then(|| {
        if p99 == most {
            format!("none more than {most} late")
        } else {
            format!("99% of them at most {p99} late and none more than {most}")
        }
    })
}

fn praise(report: &RunReport) -> String {
    let links = &report.links;
    let out: u64 = links.iter().map(|link| link.traffic.packets_out).sum();
    if let Some(undelivered) = UndeliveredFrames::of(links) {
        return undelivered.line();
    }
    let lateness = lateness(links.iter().map(|link| link.lateness_us));
    let in_time = || {
        if report.inputs.is_empty() || report.virtual_time {
            IN_TIME.to_owned()
        } else {
            as_fast_as_taken(report)
        }
    };
    let lateness = lateness.unwrap_or_else(in_time);
    format!("{} delivered, {lateness}", count_of(out, "frame"))
}

/// Describes the result of a replay at top speed.
fn as_fast_as_taken(report: &RunReport) -> String {
    let seconds = report.duration_s.max(1e-9);
    let frames: u64 = report
        .links
        .iter()
        .map(|link| link.traffic.packets_out)
        .sum();
    let bytes: u64 = report.links.iter().map(|link| link.traffic.bytes_out).sum();
    format!(
        "as fast as they were taken, {} a second, {}",
        count((frames as f64 / seconds) as u64),
        rate(bytes as f64 * 8.0 / seconds)
    )
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
