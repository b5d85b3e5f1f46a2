//! Whether the link was what was asked for, in one line, and what to do if
//! it was not.

use std::collections::BTreeMap;
use std::io::{self, Write};

use longwire_engine::DropReason;
use longwire_runtime::{LinkReport, RunReport};

use super::artifacts::ARTIFACTS;
use super::live::rate;
use super::text::{count, micros};
use crate::cli::Paint;

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the run was what was asked for.
    pub faithful: bool,
    /// The verdict in one line.
    pub line: String,
    /// What it comes from and what would help.
    pub hints: Vec<String>,
}

impl Verdict {
    /// Of a finished run.
    pub fn of(report: &RunReport) -> Verdict {
        let mut hints = Vec::new();
        for kind in &ARTIFACTS {
            let happened =
                |link: &LinkReport| link.artifacts.get(kind.name).is_some_and(|n| *n > 0);
            if report.links.iter().any(happened) {
                hints.push(format!("{}: {}", kind.name, kind.hint));
            }
        }
        let pauses = &report.pauses;
        if pauses.count > 0 {
            hints.push(format!(
                "pauses: the machine itself stood still {} times, {} at the longest and {} in \
                 all; that much lateness is not Longwire's",
                count(pauses.count),
                micros(pauses.max_us),
                micros(pauses.total_us),
            ));
        }
        let artifacts: Vec<String> = report.links.iter().filter_map(artifacts).collect();
        let came: u64 = report.links.iter().map(|link| link.packets_in).sum();
        let (faithful, line) = if let Some(error) = &report.error {
            (false, format!("the run ended early: {error}"))
        } else if !artifacts.is_empty() {
            (
                false,
                format!(
                    "{} fell short of what was asked for: {}",
                    subject(report),
                    artifacts.join("; ")
                ),
            )
        } else if came == 0 {
            (
                true,
                "no frame came: there is nothing to say of the link".to_owned(),
            )
        } else if let Some(lost) = Lost::of(report) {
            hints.extend(lost.hints());
            (lost.asked_for(), lost.line(report))
        } else {
            (
                true,
                format!(
                    "{} was what was asked for: {}",
                    subject(report),
                    praise(report)
                ),
            )
        };
        Verdict {
            faithful,
            line,
            hints,
        }
    }

    /// Writes the verdict and its hints.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let line = match self.faithful {
            true => paint.good(&self.line),
            false => paint.bad(&self.line),
        };
        writeln!(out, "{line}")?;
        for hint in &self.hints {
            writeln!(out, "  {hint}")?;
        }
        Ok(())
    }
}

/// What the verdict is about.
fn subject(report: &RunReport) -> &'static str {
    match report.inputs.is_empty() {
        true => "the link",
        false => "the replay",
    }
}

/// The artifacts of a link, if it has any: `up 12 late, 3 memory`.
fn artifacts(link: &LinkReport) -> Option<String> {
    let happened = link.artifacts.iter().filter(|(_, n)| **n > 0);
    let kinds: Vec<String> = happened
        .map(|(kind, n)| format!("{} {kind}", count(*n)))
        .collect();
    (!kinds.is_empty()).then(|| format!("{} {}", link.name, kinds.join(", ")))
}

fn praise(report: &RunReport) -> String {
    let links = &report.links;
    let out: u64 = links.iter().map(|link| link.packets_out).sum();
    let p99 = links
        .iter()
        .map(|link| link.lateness_us.p99)
        .fold(0.0, f64::max);
    let max = links
        .iter()
        .map(|link| link.lateness_us.max)
        .fold(0.0, f64::max);
    let lateness = match max {
        max if max > 0.0 => {
            format!(
                "99% of them at most {} late and none more than {}",
                micros(p99),
                micros(max)
            )
        }
        _ if !report.inputs.is_empty() => as_fast_as_taken(report),
        _ => "each at its nanosecond".to_owned(),
    };
    format!("{} frames delivered, {lateness}, no artifacts", count(out))
}

/// What dropped all frames of a run.
struct Lost {
    /// Frames by the reason for which they were dropped.
    drops: BTreeMap<&'static str, u64>,
}

/// Reasons of models that lose frames whatever is sent. Other drops depend on
/// what is sent, and a link that drops everything for one of them is hardly the
/// link that was meant.
const MEANT: [DropReason; 5] = [
    DropReason::EntryLoss,
    DropReason::Loss,
    DropReason::BitError,
    DropReason::Outage,
    DropReason::Content,
];

/// What helps against drops of which nobody asked for as many.
const REMEDIES: [(DropReason, &str); 3] = [
    (
        DropReason::Mtu,
        "frames are longer than --mtu, and with 'fragment' are no IPv4 packets or may not be \
         fragmented; give a larger --mtu",
    ),
    (
        DropReason::QueueFull,
        "no frame fits into the queue; give a larger --queue",
    ),
    (
        DropReason::Ttl,
        "--rewrite uses up the time to live of every packet",
    ),
];

impl Lost {
    /// `None` if a frame was delivered or may yet be.
    fn of(report: &RunReport) -> Option<Lost> {
        let links = &report.links;
        let arrives = |link: &LinkReport| link.packets_out > 0 || link.in_flight > 0;
        let mut drops = BTreeMap::new();
        for (reason, frames) in links.iter().flat_map(|link| &link.drops) {
            *drops.entry(*reason).or_insert(0) += frames;
        }
        drops.retain(|_, frames| *frames > 0);
        (!links.iter().any(arrives) && !drops.is_empty()).then_some(Lost { drops })
    }

    /// Whether a model was asked to lose them.
    fn asked_for(&self) -> bool {
        let mut reasons = self.drops.keys();
        reasons.all(|reason| MEANT.iter().any(|meant| meant.name() == *reason))
    }

    fn line(&self, report: &RunReport) -> String {
        let reasons = self.drops.iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, frames)| format!("{} {reason}", count(*frames)))
            .collect();
        let (reasons, all) = (reasons.join(", "), count(self.drops.values().sum()));
        match self.asked_for() {
            true => format!(
                "{} was what was asked for: all {all} frames were lost: {reasons}",
                subject(report)
            ),
            false => format!("no frame was delivered: all {all} were dropped: {reasons}"),
        }
    }

    fn hints(&self) -> Vec<String> {
        let remedies = REMEDIES.iter();
        let remedies = remedies.filter(|(reason, _)| self.drops.contains_key(reason.name()));
        remedies
            .map(|(reason, remedy)| format!("{}: {remedy}", reason.name()))
            .collect()
    }
}

/// What a replay without times came to.
fn as_fast_as_taken(report: &RunReport) -> String {
    let seconds = report.duration_s.max(1e-9);
    let frames: u64 = report.links.iter().map(|link| link.packets_out).sum();
    let bytes: u64 = report.links.iter().map(|link| link.bytes_out).sum();
    format!(
        "as fast as they were taken, {} a second, {}",
        count((frames as f64 / seconds) as u64),
        rate(bytes as f64 * 8.0 / seconds)
    )
}

#[cfg(test)]
mod tests {
    use longwire_runtime::{Lateness, Pauses};

    use super::*;

    fn report(late: u64) -> RunReport {
        let link = |name: &str, late| LinkReport {
            name: name.to_owned(),
            packets_in: 1_000,
            packets_out: 1_000,
            artifacts: [("late", late), ("memory", 0)].into(),
            lateness_us: Lateness {
                p99: 12.0,
                max: 80.0,
                ..Lateness::default()
            },
            ..LinkReport::default()
        };
        RunReport {
            links: vec![link("up", late), link("down", 0)],
            ..RunReport::default()
        }
    }

    #[test]
    fn a_true_run_is_praised_in_one_line() {
        let verdict = Verdict::of(&report(0));
        assert!(verdict.faithful);
        assert_eq!(
            verdict.line,
            "the link was what was asked for: 2,000 frames delivered, 99% of them at most \
             12.0 us late and none more than 80.0 us, no artifacts"
        );
        assert!(verdict.hints.is_empty());
    }

    #[test]
    fn artifacts_are_named_with_their_link_and_a_hint() {
        let verdict = Verdict::of(&report(3));
        assert!(!verdict.faithful);
        assert_eq!(
            verdict.line,
            "the link fell short of what was asked for: up 3 late"
        );
        assert_eq!(verdict.hints.len(), 1);
        assert!(verdict.hints[0].contains("--wait spin"));
    }

    #[test]
    fn pauses_of_the_machine_are_told_apart_from_lateness() {
        let mut report = report(0);
        report.pauses = Pauses {
            count: 2,
            max_us: 1_500.0,
            total_us: 2_000.0,
        };
        let verdict = Verdict::of(&report);
        assert!(verdict.faithful);
        assert!(verdict.hints[0].contains("stood still 2 times, 1.50 ms at the longest"));
    }

    fn losing(drops: &[(&'static str, u64)]) -> RunReport {
        let mut report = report(0);
        report.links.truncate(1);
        report.links[0].packets_out = 0;
        report.links[0].drops = drops.iter().copied().collect();
        report
    }

    #[test]
    fn a_link_that_drops_everything_is_not_praised() {
        let verdict = Verdict::of(&losing(&[("mtu", 990), ("loss", 10), ("aqm", 0)]));
        assert!(!verdict.faithful);
        assert_eq!(
            verdict.line,
            "no frame was delivered: all 1,000 were dropped: 10 loss, 990 mtu"
        );
        assert!(verdict.hints[0].starts_with("mtu: frames are longer than --mtu"));
    }

    #[test]
    fn a_loss_of_everything_that_was_asked_for_is_what_was_asked_for() {
        let verdict = Verdict::of(&losing(&[("loss", 1_000), ("mtu", 0)]));
        assert!(verdict.faithful);
        assert_eq!(
            verdict.line,
            "the link was what was asked for: all 1,000 frames were lost: 1,000 loss"
        );
        assert_eq!(verdict.hints, [""; 0]);
        // What is still on its way is not lost.
        let mut report = losing(&[("queue_full", 5)]);
        report.links[0].in_flight = 1;
        assert!(Verdict::of(&report).line.contains("0 frames delivered"));
    }

    #[test]
    fn an_early_end_is_said_first() {
        let mut report = report(3);
        report.error = Some("port A went away".to_owned());
        assert_eq!(
            Verdict::of(&report).line,
            "the run ended early: port A went away"
        );
    }
}
