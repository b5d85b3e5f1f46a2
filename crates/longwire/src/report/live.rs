//! Status lines shown on the terminal during a run.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use console::Term;
use longwire_runtime::RunReport;

use super::words::{count, micros, rate};
use crate::Globals;

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
        let rows = rows(&report);
        if let (Some((_, seen)), Some(since)) = (&self.last, since) {
            let rows = rows.iter().zip(seen);
            let parts: Vec<String> = rows.map(|(row, seen)| part(row, *seen, since)).collect();
            let line = format!("{:>6.0} s  {}", report.duration_s, parts.join("   "));
            self.line.say(&line);
        }
        self.last = Some((now, rows.iter().map(|row| row.bytes_out).collect()));
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

/// A link, or an output port of a network.
struct LiveRow<'a> {
    name: &'a str,
    bytes_out: u64,
    drops: u64,
    artifacts: u64,
    late_p99_us: f64,
}

fn rows(report: &RunReport) -> Vec<LiveRow<'_>> {
    let links = report.links.iter().map(|link| LiveRow {
        name: &link.name,
        bytes_out: link.traffic.bytes_out,
        drops: link.drops.total(),
        artifacts: link.artifacts.total(),
        late_p99_us: link.lateness_us.p99,
    });
    if !report.links.is_empty() {
        return links.collect();
    }
    let ports = report.ports.iter().map(|port| LiveRow {
        name: &port.name,
        bytes_out: port.traffic.bytes_out,
        drops: 0,
        artifacts: port.artifacts.total(),
        late_p99_us: port.lateness_us.p99,
    });
    ports.collect()
}

/// Formats a row's part of the line.
fn part(row: &LiveRow<'_>, seen: u64, since: Duration) -> String {
    let bits = row.bytes_out.saturating_sub(seen) as f64 * 8.0 / since.as_secs_f64();
    let mut text = format!("{} {}", row.name, rate(bits));
    if row.drops > 0 {
        text += &format!(", {} dropped", count(row.drops));
    }
    if row.artifacts > 0 {
        text += &format!(", {} artifacts", count(row.artifacts));
    }
    text + &format!(", p99 {} late", micros(row.late_p99_us))
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
            part(&rows(&report)[0], 500_000, Duration::from_secs(2)),
            "link.up 4.00 Mbit/s, 7 dropped, p99 0 us late"
        );
    }

    #[test]
    fn a_line_is_cut_by_characters() {
        assert_eq!(cut("äöü", 2), "äö");
    }
}
