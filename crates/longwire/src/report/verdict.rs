//! The verdict on a run: a grade, a line with the first cause to fix, and remedies.
//!
//! Decision 0055 defines the order of causes and justifies the limits.

use std::io::{self, Write};

use longwire_engine::DropReason;
use longwire_runtime::report::PeerReport;
use longwire_runtime::{Artifact, LinkReport, Pauses, RunReport, Spread};
use serde::Serialize;

use super::artifacts;
use super::overload::Overload;
use super::require::{Grade, Place};
use super::undelivered::UndeliveredFrames;
use super::words::{count, count_of, micros, percent, rate};
use crate::cli::Paint;
use crate::table;

/// Fraction of late frames below which every measured result is within 1 %.
const SHARE_FAITHFUL: f64 = 0.005;

/// Maximum mean minus median added delay of a faithful run, as a fraction of the tolerance.
const EXCESS_FAITHFUL: f64 = 0.1;

/// Minimum number of frames for [`EXCESS_FAITHFUL`]; with fewer, one frame determines the mean.
const EXCESS_FRAMES_MIN: u64 = 100;

/// Maximum fraction of late frames that keeps medians within 1 %.
const SHARE_LATE_MAX: f64 = 0.05;

/// Maximum fraction of frames lost by the emulator in a nearly faithful run.
const SHARE_LOST_MAX: f64 = 0.001;

/// Quantile of the normal distribution for one run in 2,000.
const BEYOND_CHANCE: f64 = 3.29;

/// Fraction of the run spent waiting for a core above which a hint is given.
const CORE_WAIT_MIN: f64 = 0.01;

/// Remark for a run without lateness.
const IN_TIME: &str = "all exactly on time";

/// A run's verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Grade of the run.
    pub grade: Grade,
    /// Verdict as a line.
    pub line: String,
    /// Fraction of frames with artifacts caused by the emulator, at the place where it is largest.
    pub share: f64,
    /// Delay added by the emulator beyond the configured delay, in microseconds.
    pub added_delay_us: AddedDelay,
    /// Causes and remedies.
    pub hints: Vec<String>,
}

/// Lateness at the port with the largest mean, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AddedDelay {
    /// Mean over all frames.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Verdict {
    /// Judges a run.
    pub fn of(report: &RunReport) -> Verdict {
        let found = Findings::of(report);
        let (grade, line) = found.judge();
        Verdict {
            grade,
            line: format!("{line}{}", found.excused()),
            share: found.share,
            added_delay_us: found.added,
            hints: hints(report, &found),
        }
    }

    /// Writes the verdict and its hints.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let line = match self.grade {
            Grade::Faithful => paint.good(&self.line),
            Grade::NearlyFaithful | Grade::NoFrames => paint.warn(&self.line),
            Grade::NotFaithful => paint.bad(&self.line),
        };
        writeln!(out, "{line}")?;
        for hint in &self.hints {
            writeln!(out, "  {hint}")?;
        }
        Ok(())
    }

    /// Writes how often the process was stopped, unless the hints state it.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write_stops(&self, out: &mut impl Write, found: &Pauses) -> io::Result<()> {
        let stops = stops_hint(found).filter(|stops| !self.hints.contains(stops));
        stops.map_or(Ok(()), |stops| writeln!(out, "note: {stops}"))
    }
}

/// Facts that determine the verdict.
struct Findings<'a> {
    report: &'a RunReport,
    places: Vec<Place<'a>>,
    undelivered: Option<UndeliveredFrames>,
    /// Descriptions of the emulator's artifacts, by place.
    own: Vec<String>,
    share: f64,
    added: AddedDelay,
    /// Maximum difference between mean and median added delay, in microseconds; caused by stalls.
    excess: f64,
}

/// Checks for a cause of an unfaithful run, and describes it.
type Cause = fn(&Findings<'_>) -> Option<String>;

/// Causes, in the order to fix them: a run cut short; hosts that did not respond; a network that
/// delivers no frames; a stopped process or overload, which explain subsequent lateness and loss;
/// loss; lateness.
const CAUSES: [Cause; 10] = [
    |found| Some(format!("the run failed: {}", found.report.error.as_ref()?)),
    |found| lost_ports(found.report),
    |found| stopped_early(found.report),
    |found| joined(found.peers().filter_map(outages_of), ", "),
    |found| found.report.links.iter().find_map(unaccounted),
    |found| {
        let wrong = found.undelivered.as_ref()?;
        let line = format!("the configuration passes no frame: {}", wrong.line());
        (!wrong.asked_for()).then_some(line)
    },
    |found| {
        let stops = found.report.stops.count > 0 && (found.loses_many() || found.is_late());
        stops.then(|| stops_line(&found.report.stops))
    },
    |found| Some(Overload::of(&found.report.links)?.line()),
    |found| {
        found
            .loses_many()
            .then(|| "the emulator lost frames".to_owned())
    },
    |found| found.is_late().then(|| "frames were late".to_owned()),
];

impl<'a> Findings<'a> {
    fn of(report: &'a RunReport) -> Findings<'a> {
        let places = Place::measured(report);
        // Frames that never left may be late, so late frames may outnumber departures.
        let shares = places
            .iter()
            .map(|place| (place.count(Artifact::is_own) as f64 / frames(place)).min(1.0));
        let delays = places.iter().filter_map(lateness_of);
        let delays: Vec<Spread> = delays.map(|[_, own]| own).collect();
        let excess = delays.iter().map(|own| own.mean - own.p50);
        let worst = delays.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
        Findings {
            report,
            undelivered: UndeliveredFrames::of(report),
            own: in_words(&places, Artifact::is_own),
            share: shares.fold(0.0, f64::max),
            added: worst.map_or_else(AddedDelay::default, |own| AddedDelay {
                mean: own.mean,
                p99: own.p99,
            }),
            excess: excess.fold(0.0, f64::max),
            places,
        }
    }

    fn judge(&self) -> (Grade, String) {
        if let Some(cause) = CAUSES.iter().find_map(|cause| cause(self)) {
            let parts = [&[cause][..], &self.own].concat().join("; ");
            let line = format!("not faithful: {parts}{}", self.effect());
            return (Grade::NotFaithful, line);
        }
        let own = self.own.join("; ");
        let is_sample = self.report.frames_in() >= EXCESS_FRAMES_MIN;
        let stalled = is_sample && self.is_above_tolerance(self.excess / EXCESS_FAITHFUL);
        if self.lost() || self.share >= SHARE_FAITHFUL || stalled {
            let own = if own.is_empty() { "stalls" } else { &own };
            let (share, effect) = (percent(self.share), self.effect());
            let line = format!("faithful but for {share} of the frames: {own}{effect}");
            return (Grade::NearlyFaithful, line);
        }
        if self.report.frames_in() == 0 && own.is_empty() {
            let replays = !self.report.inputs.is_empty();
            let happened = if replays { "was sent" } else { "arrived" };
            return (Grade::NoFrames, format!("no verdict: no frame {happened}"));
        }
        let own = if own.is_empty() { "no artifacts" } else { &own };
        let line = format!("faithful: {}, {own}", self.praise());
        (Grade::Faithful, line)
    }

    fn peers(&self) -> impl Iterator<Item = &'a PeerReport> + use<'a> {
        self.report.hosts.iter().flat_map(|hosts| &hosts.peers)
    }

    /// Returns whether a time exceeds the tolerance. The tolerance is 0 if nothing can be late.
    fn is_above_tolerance(&self, micros: f64) -> bool {
        let tolerance = self.report.tolerance.as_micros_f64();
        tolerance > 0.0 && micros > tolerance
    }

    /// Returns whether the emulator lost more frames than allowed in a nearly faithful run.
    fn loses_many(&self) -> bool {
        self.any(|place| {
            let lost = place.count(Artifact::is_lost) as f64;
            lost >= SHARE_LOST_MAX * frames(place) && lost > 0.0
        })
    }

    fn any(&self, is: impl Fn(&Place<'a>) -> bool) -> bool {
        self.places.iter().any(is)
    }

    /// Returns whether more frames were late, or the mean delay was later, than allowed in a nearly
    /// faithful run.
    fn is_late(&self) -> bool {
        self.any(|place| exceeds(late(place), frames(place)))
            || self.is_above_tolerance(self.added.mean)
    }

    /// Returns whether the emulator lost frames.
    fn lost(&self) -> bool {
        self.any(|place| place.count(Artifact::is_lost) > 0)
    }

    /// Describes the added delay, if any.
    fn effect(&self) -> String {
        let AddedDelay { mean, p99 } = self.added;
        if mean == 0.0 {
            return String::new();
        }
        format!("; added delay: mean {}, p99 {}", micros(mean), micros(p99))
    }

    /// Describes artifacts that the emulator did not cause.
    fn excused(&self) -> String {
        let excused = in_words(&self.places, |kind| !kind.is_own());
        if excused.is_empty() {
            return String::new();
        }
        format!(
            "; excused (machine pauses, start of the run): {}",
            excused.join("; ")
        )
    }

    fn praise(&self) -> String {
        let report = self.report;
        if let Some(undelivered) = &self.undelivered {
            return undelivered.line();
        }
        let all = self.places.iter().filter_map(lateness_of);
        let lateness = match lateness(all.map(|[all, _]| all)) {
            Some(lateness) => lateness,
            None if report.inputs.is_empty() || report.virtual_time => IN_TIME.to_owned(),
            None => as_fast_as_taken(report),
        };
        let (frames, _) = sent(report);
        format!("{} delivered, {lateness}", count_of(frames, "frame"))
    }
}

/// Returns the number of frames, at least 1, as a denominator.
fn frames(place: &Place<'_>) -> f64 {
    place.frames().max(1) as f64
}

/// Returns the number of artifacts caused by the emulator, without losses.
fn late(place: &Place<'_>) -> f64 {
    place.count(|kind| kind.is_own() && !kind.is_lost()) as f64
}

/// Returns whether the fraction of late frames significantly exceeds [`SHARE_LATE_MAX`], by the
/// lower bound of the Wilson score interval (Wilson 1927).
fn exceeds(late: f64, frames: f64) -> bool {
    let (share, z2) = (late / frames, BEYOND_CHANCE * BEYOND_CHANCE);
    let centre = share + z2 / (2.0 * frames);
    let spread = share * (1.0 - share.min(1.0)) / frames + z2 / (4.0 * frames * frames);
    (centre - BEYOND_CHANCE * spread.sqrt()) / (1.0 + z2 / frames) > SHARE_LATE_MAX
}

/// Returns the lateness of all frames, and of frames outside pauses and the start.
pub(super) fn lateness_of(place: &Place<'_>) -> Option<[Spread; 2]> {
    match place {
        Place::Port(port) => Some([port.lateness_us, port.lateness_own_us]),
        Place::Link(link) => Some([link.lateness_us, link.lateness_own_us]),
        Place::Host(_) | Place::Recording(_) => None,
    }
}

/// Returns whether artifacts of a kind occurred.
fn happened(places: &[Place<'_>], kind: Artifact) -> bool {
    let mut places = places.iter();
    places.any(|place| place.count(|other| other == kind) > 0)
}

/// Returns the total frames and bytes sent.
fn sent(report: &RunReport) -> (u64, u64) {
    let places = Place::measured(report).into_iter();
    let places = places.filter(|place| matches!(place, Place::Port(_) | Place::Link(_)));
    places.fold((0, 0), |(frames, bytes), place| {
        let traffic = place.traffic();
        (frames + traffic.packets_out, bytes + traffic.bytes_out)
    })
}

/// Lists the selected artifacts by place: `b 12 late, 3 memory (0.15% of 10,000 frames)`.
fn in_words(places: &[Place<'_>], chosen: fn(Artifact) -> bool) -> Vec<String> {
    let words = places.iter().filter_map(|place| {
        let mut counts = place.artifacts().into_owned();
        counts.retain(|kind, _| Artifact::named(kind).is_some_and(chosen));
        let kinds = counts.nonzero();
        let kinds = joined(kinds.map(|(kind, n)| format!("{} {kind}", count(n))), ", ")?;
        let frames = place.frames();
        let share = (counts.total() as f64 / frames as f64).min(1.0);
        let of = match frames {
            0 => String::new(),
            frames => format!(" ({} of {})", percent(share), count_of(frames, "frame")),
        };
        Some(format!("{} {kinds}{of}", place.name()))
    });
    words.collect()
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    Some(table::joined(parts, separator)).filter(|joined| !joined.is_empty())
}

/// Describes a replay that stopped before the end of its input.
fn stopped_early(report: &RunReport) -> Option<String> {
    if !report.stopped_early {
        return None;
    }
    let read: u64 = report.links.iter().map(|link| link.in_flight).sum();
    let done = report.progress();
    let done = done.map(|done| format!(" at {} of its input", percent(done)));
    let done = done.unwrap_or_default();
    let (sent, read) = (count_of(sent(report).0, "frame"), count(read));
    Some(format!(
        "the replay was stopped{done}: {sent} sent, {read} read but not sent"
    ))
}

/// Describes unaccounted frames of a link without deliveries: neither dropped by a model, nor
/// artifacts, nor in flight.
fn unaccounted(link: &LinkReport) -> Option<String> {
    let seen = link.drops.total() + Place::Link(link).artifacts().total() + link.in_flight;
    let unseen = link.traffic.packets_in.saturating_sub(seen);
    (link.traffic.packets_out == 0 && unseen > 0).then(|| {
        format!(
            "{} delivered none of {} frames, and {} of them are unaccounted for; please report \
             this",
            link.name,
            count(link.traffic.packets_in),
            count(unseen),
        )
    })
}

/// Describes a host's outages, if any.
fn outages_of(peer: &PeerReport) -> Option<String> {
    if peer.outages == 0 {
        return None;
    }
    let unsent = match peer.frames_unsent {
        0 => String::new(),
        unsent => format!("; {} for that host not sent", count_of(unsent, "frame")),
    };
    let (name, times) = (&peer.name, times(peer.outages));
    Some(format!("host {name} stopped responding {times}{unsent}"))
}

/// Describes lost ports and the frames lost with them, if any.
fn lost_ports(report: &RunReport) -> Option<String> {
    let ports = report.ports.iter().filter_map(|port| {
        let lost = port.lost.as_ref()?;
        Some(format!(
            "port {} was lost after {:.1} s ({})",
            port.name, lost.after_s, lost.error
        ))
    });
    let links = report.links.iter();
    let frames = links.map(|link| link.drops.of(DropReason::PortLost.name()));
    let frames = frames.sum::<u64>() + report.counts.port_lost;
    let (ports, frames) = (joined(ports, ", ")?, count_of(frames, "frame"));
    Some(format!("{ports}; {frames} dropped (port_lost)"))
}

/// Summarises how often the process was stopped.
fn stops_line(stops: &Pauses) -> String {
    let (times, total) = (times(stops.count), micros(stops.total_us));
    format!("the process was stopped or not scheduled {times}, for {total} in total")
}

/// Describes how often the process was stopped, if it was.
fn stops_hint(stops: &Pauses) -> Option<String> {
    (stops.count > 0).then(|| {
        let line = stops_line(stops);
        format!("stops: {line} (SIGSTOP, a debugger or a freezer)")
    })
}

/// Formats a number of occurrences.
fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", count(n)),
    }
}

/// Returns hints, most important causes first, because not all may fit.
fn hints(report: &RunReport, found: &Findings<'_>) -> Vec<String> {
    let happened = |kind| happened(&found.places, kind);
    let effects = [Artifact::Late, Artifact::LatePaused, Artifact::LateStart];
    let undelivered = found.undelivered.as_ref();
    let mut hints = undelivered.map_or_else(Vec::new, UndeliveredFrames::hints);
    let is_effect = |kind: &Artifact| effects.contains(kind);
    hints.extend(artifacts::hints(|kind| happened(kind) && !is_effect(&kind)));
    hints.extend(machine_hints(report, happened));
    hints.extend(artifacts::hints(|kind| happened(kind) && is_effect(&kind)));
    let hosts = report.hosts.as_ref();
    let overflows = hosts.map_or(0, |hosts| hosts.receive_overflows);
    hints.extend((overflows > 0).then(|| {
        format!(
            "receive_overflows: the kernel dropped {} at the socket to other hosts; this host is \
             too slow: stop other programs, add cores or lower the rates",
            count_of(overflows, "buffer")
        )
    }));
    hints
}

/// Returns hints about external causes: a stopped process, pauses, and cores used by other
/// programs. `happened` returns whether artifacts of a kind occurred.
fn machine_hints(report: &RunReport, happened: impl Fn(Artifact) -> bool) -> Vec<String> {
    let mut hints = Vec::new();
    let any = |is: fn(Artifact) -> bool| {
        let mut kinds = Artifact::ALL.into_iter();
        kinds.any(|kind| is(kind) && happened(kind))
    };
    if any(|_| true) {
        hints.extend(stops_hint(&report.stops));
    }
    let pauses = &report.pauses;
    if pauses.count > 0 && any(Artifact::is_late) {
        hints.push(format!(
            "pauses: the machine paused {}, for at most {} and {} in total; Longwire cannot \
             prevent this",
            times(pauses.count),
            micros(pauses.max_us),
            micros(pauses.total_us),
        ));
    }
    if happened(Artifact::Late) && lacked_cores(report) {
        hints.push(format!(
            "cores: other programs used them; emulator threads waited for {} in total",
            micros(report.core_wait_s * 1e6),
        ));
    }
    hints
}

/// Returns whether the emulator's threads waited for cores used by other programs.
fn lacked_cores(report: &RunReport) -> bool {
    report.core_wait_s > CORE_WAIT_MIN * report.duration_s
}

/// Maximum pause that excuses late frames; longer pauses count against the emulator.
const PAUSE_EXCUSED_MAX_US: f64 = 100_000.0;

/// Returns whether frames were late because the machine paused or its cores were busy.
pub(super) fn machine_was_busy(report: &RunReport) -> bool {
    let places = Place::measured(report);
    let happened = |kind| happened(&places, kind);
    let long_pause = report.pauses.max_us > PAUSE_EXCUSED_MAX_US;
    let by_machine = happened(Artifact::LatePaused)
        || (happened(Artifact::Late) && (lacked_cores(report) || long_pause));
    by_machine && report.stops.count == 0
}

/// Describes the 99th percentile and the maximum of the lateness, if any frame was late.
fn lateness(spreads: impl Iterator<Item = Spread>) -> Option<String> {
    let (p99, max) = spreads.fold((0.0, 0.0), |(p99, max), spread| {
        (f64::max(p99, spread.p99), f64::max(max, spread.max))
    });
    let (p99, most) = (micros(p99), micros(max));
    (max > 0.0).then(|| {
        if p99 == most {
            format!("at most {most} late")
        } else {
            format!("99% of them at most {p99} late, all at most {most}")
        }
    })
}

/// Describes the result of a top-speed replay.
fn as_fast_as_taken(report: &RunReport) -> String {
    let seconds = report.duration_s.max(1e-9);
    let (frames, bytes) = sent(report);
    format!(
        "at top speed, {} frames/s, {}",
        count((frames as f64 / seconds) as u64),
        rate(bytes as f64 * 8.0 / seconds)
    )
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
