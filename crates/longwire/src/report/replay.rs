//! A replay's additions to the report: inputs and progress.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanDuration;
use longwire_engine::Nanos;
use longwire_runtime::{InputReport, RunReport};

use super::output::print_line;
use super::words::{count, micros};
use crate::Globals;
use crate::cli::Paint;
use crate::progress::Progress;

/// Writes a line per input, with its warnings.
///
/// # Errors
/// If `out` cannot be written.
pub(super) fn write_inputs(
    out: &mut impl Write,
    inputs: &[InputReport],
    paint: Paint,
) -> io::Result<()> {
    for input in inputs {
        writeln!(out, "{}", line(input, true))?;
        for note in &input.notes {
            writeln!(out, "  {}", paint.dim(note))?;
        }
    }
    Ok(())
}

/// Formats each input as a line, without counts that are 0, followed by its warnings.
pub(super) fn lines(inputs: &[InputReport]) -> Vec<String> {
    let lines = inputs
        .iter()
        .flat_map(|input| std::iter::once(line(input, false)).chain(input.notes.iter().cloned()));
    lines.collect()
}

fn line(input: &InputReport, verbose: bool) -> String {
    let mut parts = Vec::new();
    if let Some(fraction) = input.fraction {
        parts.push(format!("{:.0}% read", fraction * 100.0));
    }
    let counts = input.counts.iter().filter(|(_, n)| verbose || **n > 0);
    parts.extend(counts.map(|(name, n)| counted(*n, name)));
    if input.behind_max_us > 0.0 {
        parts.push(format!("up to {} behind", micros(input.behind_max_us)));
    }
    match parts.join(", ").as_str() {
        "" => input.name.clone(),
        parts => format!("{}: {parts}", input.name),
    }
}

/// Formats a count with its name: "12 checksums fixed", "1 checksum fixed".
fn counted(n: u64, name: &str) -> String {
    let words = name.replace('_', " ");
    let (first, rest) = words.split_at(words.find(' ').unwrap_or(words.len()));
    let first = match n {
        1 => first.strip_suffix('s').unwrap_or(first),
        _ => first,
    };
    format!("{} {first}{rest}", count(n))
}

/// Progress bar of a replay, with the remaining time.
pub struct ReplayLine {
    progress: Progress,
    /// Whether remarks are enabled.
    talks: bool,
    /// Remaining time of the announced gap.
    gap: Option<Nanos>,
}

impl ReplayLine {
    /// Returns a bar, shown if stderr is a terminal and remarks are enabled.
    pub fn new(globals: &Globals) -> ReplayLine {
        ReplayLine {
            progress: Progress::new(Progress::SHARE, globals),
            talks: globals.talks(),
            gap: None,
        }
    }

    /// Announces each long gap once; `left` is the time until the next frame.
    pub fn announce_gap(&mut self, left: Option<Nanos>) {
        let last = std::mem::replace(&mut self.gap, left);
        if let Some(left) = left.filter(|left| self.talks && last.is_none_or(|last| *left > last)) {
            self.clear();
            print_line(format_args!(
                "the next frame is due in {}; use --gap-cap to limit gaps",
                HumanDuration(Duration::from_nanos(left.as_nanos()))
            ));
        }
    }

    /// Updates the bar; calls `snapshot` only if the bar is shown.
    pub fn refresh(&mut self, snapshot: impl FnOnce() -> RunReport) {
        if !self.progress.shows() {
            return;
        }
        /// Length of a complete bar.
        const WHOLE: u64 = 10_000;
        let report = snapshot();
        let sent = report.links.iter().map(|link| link.traffic.packets_out);
        let (done, all) = match report.progress() {
            Some(fraction) => ((fraction * WHOLE as f64) as u64, Some(WHOLE)),
            None => (sent.sum(), None),
        };
        self.progress.at(done, all);
    }

    /// Clears the bar.
    pub fn clear(&mut self) {
        self.progress.clear();
    }
}

#[cfg(test)]
mod tests {
    use longwire_runtime::LinkReport;
    use longwire_runtime::counters::Traffic;

    use super::*;

    fn input() -> InputReport {
        InputReport {
            name: "trace.pcap".to_owned(),
            fraction: Some(0.5),
            counts: [("filtered", 1_200), ("set_back", 0)].into(),
            ..InputReport::default()
        }
    }

    #[test]
    fn an_input_shows_its_counts() {
        let words = "trace.pcap: 50% read, 1,200 filtered";
        assert_eq!(line(&input(), false), words);
        let late = InputReport {
            behind_max_us: 1_500.0,
            ..input()
        };
        assert!(line(&late, false).ends_with(", up to 1.50 ms behind"));
        assert!(line(&input(), true).contains("0 set back"));
    }

    #[test]
    fn one_of_something_is_not_several() {
        assert_eq!(counted(1, "rounds"), "1 round");
        assert_eq!(counted(1, "checksums_fixed"), "1 checksum fixed");
        assert_eq!(counted(1_200, "rounds"), "1,200 rounds");
        assert_eq!(counted(1, "set_back"), "1 set back");
    }

    #[test]
    fn frames_read_ahead_are_not_done() {
        let link = LinkReport {
            traffic: Traffic {
                packets_in: 1_000,
                ..Traffic::default()
            },
            in_flight: 500,
            ..LinkReport::default()
        };
        let report = RunReport {
            inputs: vec![input()],
            links: vec![link],
            ..RunReport::default()
        };
        assert_eq!(report.progress(), Some(0.25));
    }
}
