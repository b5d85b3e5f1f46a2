//! Status lines shown on the terminal during a run.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use console::Term;
use longwire_runtime::RunReport;

use super::require::Place;
use super::verdict::lateness_of;
use super::words::{count, micros, rate};
use crate::Globals;
use crate::table::joined;

/// Interval between updates.
const EVERY: Duration = Duration::from_secs(1);

/// Status line of a run, shown only on terminals.
#[derive(Debug)]
pub struct Live {
    line: StatusLine,
    /// Time of the last update, and the bytes sent by each link until then.
    last: Option<(Instant, Vec<u64>)>,
}

impl Live {
    /// Returns a status line, shown if stderr is a terminal and remarks are enabled.
    pub fn new(globals: &Globals) -> Live {
        Live {
            line: StatusLine::new(globals),
            last: None,
        }
    }

    /// Updates the line if due; calls `snapshot` only then.
    pub fn refresh(&mut self, snapshot: impl FnOnce() -> RunReport) {
        let now = Instant::now();
        let last = self.last.as_ref();
        let since = last.map(|(last, _)| now.duration_since(*last));
        if !self.line.shown || since.is_some_and(|since| since < EVERY) {
            return;
        }
        let report = snapshot();
        let places = places(&report);
        if let (Some((_, seen)), Some(since)) = (&self.last, since) {
            let parts = places.iter().zip(seen);
            let parts = joined(parts.map(|(place, seen)| part(place, *seen, since)), "   ");
            self.line
                .say(&format!("{:>6.0} s  {parts}", report.duration_s));
        }
        let sent = places.iter().map(|place| place.traffic().bytes_out);
        self.last = Some((now, sent.collect()));
    }

    /// Clears the line, so that the report starts in column 1.
    pub fn clear(&mut self) {
        if self.last.take().is_some() {
            self.line.clear();
        }
    }
}

/// A status line for the current step.
#[derive(Debug)]
pub struct StatusLine {
    shown: bool,
}

impl StatusLine {
    /// Returns a status line, shown if stderr is a terminal and remarks are enabled.
    pub fn new(globals: &Globals) -> StatusLine {
        StatusLine {
            shown: globals.talks() && std::io::stderr().is_terminal(),
        }
    }

    /// Replaces the line with `what`.
    pub fn say(&mut self, what: &str) {
        if self.shown {
            // A line that fills the terminal would wrap.
            let (_, width) = Term::stderr().size();
            let what = cut(what, usize::from(width.saturating_sub(1)));
            // A closed terminal must not end the run.
            let _ = write!(std::io::stderr(), "\r\x1b[2K{what}");
        }
    }

    /// Clears the line.
    pub fn clear(&mut self) {
        self.say("");
    }
}

/// Returns the links, or the ports if there are no links.
fn places(report: &RunReport) -> Vec<Place<'_>> {
    if report.links.is_empty() {
        return report.ports.iter().map(Place::Port).collect();
    }
    report.links.iter().map(Place::Link).collect()
}

/// Formats a place's part of the line.
fn part(place: &Place<'_>, seen: u64, since: Duration) -> String {
    let sent = place.traffic().bytes_out.saturating_sub(seen);
    let bits = sent as f64 * 8.0 / since.as_secs_f64();
    let (drops, artifacts) = match place {
        Place::Link(link) => (link.drops.total(), link.artifacts.total()),
        place => (0, place.artifacts().total()),
    };
    let mut text = format!("{} {}", place.name(), rate(bits));
    if drops > 0 {
        text += &format!(", {} dropped", count(drops));
    }
    if artifacts > 0 {
        text += &format!(", {} artifacts", count(artifacts));
    }
    let late_p99_us = lateness_of(place).map_or(0.0, |[all, _]| all.p99);
    text + &format!(", p99 {} late", micros(late_p99_us))
}

/// Truncates a line to `width` characters; a longer one would wrap and could not be overwritten.
fn cut(line: &str, width: usize) -> String {
    line.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use longwire_runtime::LinkReport;
    use longwire_runtime::counters::Traffic;

    use super::*;

    #[test]
    fn a_link_shows_its_rate_of_the_last_second() {
        let link = LinkReport {
            name: "link.up".to_owned(),
            traffic: Traffic {
                bytes_out: 1_500_000,
                ..Traffic::default()
            },
            drops: [("loss", 7)].into(),
            ..LinkReport::default()
        };
        let report = RunReport {
            links: vec![link],
            ..RunReport::default()
        };
        assert_eq!(
            part(&places(&report)[0], 500_000, Duration::from_secs(2)),
            "link.up 4.00 Mbit/s, 7 dropped, p99 0 us late"
        );
    }

    #[test]
    fn a_line_is_cut_by_characters() {
        assert_eq!(cut("äöü", 2), "äö");
    }
}
