//! Formats a receiver's report: counts, then distributions.

use std::io::{self, Write};

use longwire_runtime::Spread;
use longwire_traffic::receive::{ReceiveReport, SequenceReport, StreamReport, Timing, TraceReport};

use crate::cli::Paint;
use crate::report::words::{count, count_of, micros, rate};
use crate::table::joined;

/// Maximum streams shown individually.
const STREAMS_SHOWN: usize = 16;

/// Indentation of the figures on a line.
const INDENT: usize = 18;

/// Writes the report; with `all`, includes counts that are 0.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    report: &ReceiveReport,
    all: bool,
    paint: Paint,
) -> io::Result<()> {
    let mut lines = Lines { out, paint };
    lines.line("received", &summary(report))?;
    if report.left_out > 0 || all {
        let left_out = format!("{} excluded by the filter", count(report.left_out));
        lines.line("", &left_out)?;
    }
    let unseen = [
        ("ring full", report.unseen.ring_full),
        ("too long", report.unseen.too_long),
        ("unusable", report.unseen.unusable),
    ];
    let unseen = counted(&unseen, all);
    if !unseen.is_empty() {
        lines.wrong("not seen", &unseen)?;
    }
    lines.spread("gap", &report.gap_us)?;
    if let Some(timing) = &report.expected_gap {
        lines.heading("against the expected gap")?;
        lines.timing(timing)?;
    }
    if let Some(trace) = &report.trace {
        lines.trace(trace, all)?;
    }
    if let Some(delay) = &report.delay {
        lines.spread("one-way delay", &delay.one_way_us)?;
        lines.jitter("jitter", delay.jitter_us, delay.jitter_max_us)?;
    }
    for stream in report.streams.iter().take(STREAMS_SHOWN) {
        lines.stream(stream, all)?;
    }
    if let Some(more) = report.streams.len().checked_sub(STREAMS_SHOWN + 1) {
        let more = count_of(more as u64 + 1, "more stream");
        lines.line("", &format!("{more}: see --json"))?;
    }
    lines.machine(report)?;
    if let Some(error) = &report.error {
        lines.wrong("ended early", error)?;
    }
    Ok(())
}

/// Formats the status line of a running receiver.
pub fn live(report: &ReceiveReport) -> String {
    let mut line = format!(
        "{}, {} frames/s, {}",
        count_of(report.packets, "frame"),
        count(report.packets_per_s as u64),
        rate(report.bits_per_s)
    );
    let streams = report.streams.iter();
    let lost: u64 = streams.map(|stream| stream.sequence.lost).sum();
    let lost = lost + report.trace.as_ref().map_or(0, |trace| trace.lost);
    if lost > 0 {
        line += &format!(", {} lost", count(lost));
    }
    if report.unseen.total() > 0 {
        line += &format!(", {} not seen", count(report.unseen.total()));
    }
    line
}

fn summary(report: &ReceiveReport) -> String {
    format!(
        "{}, {} in {:.3} s: {:.1} frames/s, {}",
        count_of(report.packets, "frame"),
        count_of(report.bytes, "byte"),
        report.duration_s,
        report.packets_per_s,
        rate(report.bits_per_s)
    )
}

/// Formats counts with their names; counts that are 0 only with `all`.
fn counted(counts: &[(&str, u64)], all: bool) -> String {
    let shown = counts.iter().filter(|(_, n)| all || *n > 0);
    joined(shown.map(|(name, n)| format!("{name} {}", count(*n))), ", ")
}

struct Lines<'a, W> {
    out: &'a mut W,
    paint: Paint,
}

impl<W: Write> Lines<'_, W> {
    fn line(&mut self, name: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "{name:INDENT$}{text}")
    }

    fn wrong(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.line(name, &self.paint.bad(text))
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", self.paint.bold(text))
    }

    /// Writes percentiles in microseconds.
    fn spread(&mut self, name: &str, spread: &Spread) -> io::Result<()> {
        if spread.count == 0 {
            return self.line(name, "-");
        }
        let parts = [
            ("min", spread.min),
            ("p50", spread.p50),
            ("p90", spread.p90),
            ("p99", spread.p99),
            ("p99.9", spread.p999),
            ("max", spread.max),
        ];
        let parts = parts.map(|(name, value)| format!("{name} {}", signed_micros(value)));
        self.line(name, &parts.join("  "))
    }

    fn timing(&mut self, timing: &Timing) -> io::Result<()> {
        self.spread("  gap error", &timing.gap_error_us)?;
        self.spread("  offset", &timing.offset_us)?;
        match &timing.drift {
            Some(drift) => {
                let (low, high) = (drift.low_ppm, drift.high_ppm);
                let text = format!("{:+.3} ppm (95%: {low:+.3} to {high:+.3})", drift.ppm);
                self.line("  drift", &text)
            }
            None => self.line("  drift", "too short to tell"),
        }
    }

    fn trace(&mut self, trace: &TraceReport, all: bool) -> io::Result<()> {
        self.heading(&format!("against {}", trace.trace))?;
        let matched = format!("{} of {}", count(trace.matched), count(trace.frames));
        self.line("  unchanged", &matched)?;
        let counts = [
            ("lost", trace.lost),
            ("duplicates", trace.duplicates),
            ("reordered", trace.reordered),
            ("changed", trace.changed),
            ("foreign", trace.foreign),
        ];
        self.counts("  differences", &counted(&counts, all), "none")?;
        if trace.behind_last > 0 {
            let more = if trace.goes_on { "at least " } else { "" };
            let text = format!("{more}{}", count_of(trace.behind_last, "frame"));
            self.line("  missing at end", &text)?;
        }
        if trace.cut > 0 {
            let text = format!("{} in the trace, padded with zeros", count(trace.cut));
            self.line("  truncated", &text)?;
        }
        self.timing(&trace.timing)
    }

    fn stream(&mut self, stream: &StreamReport, all: bool) -> io::Result<()> {
        self.heading(&format!("stream {}", stream.stream))?;
        let SequenceReport {
            received,
            lost,
            duplicates,
            reordered,
            beyond_window,
            extent,
            ..
        } = &stream.sequence;
        let share = *lost as f64 / (received + lost).max(1) as f64 * 100.0;
        let text = format!("{}, lost {} ({share:.4}%)", count(*received), count(*lost));
        self.line("  received", &text)?;
        let counts = [
            ("duplicates", *duplicates),
            ("reordered", *reordered),
            ("too late to judge", *beyond_window),
        ];
        let counts = counted(&counts, all);
        self.counts("  sequence", &counts, "in order, no duplicates")?;
        if extent.count > 0 {
            let text = format!("by {} packets (median), {} at most", extent.p50, extent.max);
            self.line("  reordered", &text)?;
        }
        self.spread("  one-way delay", &stream.delay_us)?;
        self.spread("  delay variation", &stream.delay_variation_us)?;
        self.jitter("  jitter", stream.jitter_us, stream.jitter_max_us)?;
        self.timing(&stream.timing)
    }

    fn jitter(&mut self, name: &str, end: f64, most: f64) -> io::Result<()> {
        let jitter = format!("{} at the end, {} at most", micros(end), micros(most));
        self.line(name, &jitter)
    }

    /// Writes counts, or `none` if there are none.
    fn counts(&mut self, name: &str, text: &str, none: &str) -> io::Result<()> {
        let text = match text {
            "" => none.to_owned(),
            text => self.paint.warn(text),
        };
        self.line(name, &text)
    }

    fn machine(&mut self, report: &ReceiveReport) -> io::Result<()> {
        if let Some(witness) = &report.witness {
            let pauses = &witness.pauses;
            let text = format!(
                "{}, at most {}, {} in total, in {:.1} s",
                count_of(pauses.count, "pause"),
                micros(pauses.max_us),
                micros(pauses.total_us),
                witness.watched_s
            );
            self.line("machine", &text)?;
        }
        if let Some(stolen) = report.stolen_s.filter(|stolen| *stolen > 0.0) {
            self.line("machine", &format!("{stolen:.2} s of steal time"))?;
        }
        Ok(())
    }
}

/// Formats a signed time.
fn signed_micros(value: f64) -> String {
    match value {
        v if v < 0.0 => format!("-{}", micros(-v)),
        v => micros(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_above_zero_are_shown_and_others_omitted() {
        let report = ReceiveReport {
            packets: 1_234,
            trace: Some(TraceReport {
                trace: "a.pcap".to_owned(),
                frames: 1_240,
                matched: 1_234,
                lost: 6,
                ..TraceReport::default()
            }),
            ..ReceiveReport::default()
        };
        let written = |all| {
            let mut out = Vec::new();
            assert!(write(&mut out, &report, all, Paint::PLAIN).is_ok());
            String::from_utf8_lossy(&out).into_owned()
        };
        let text = written(false);
        assert!(text.contains("1,234 of 1,240"), "{text}");
        assert!(text.contains("lost 6\n"), "{text}");
        assert!(!text.contains("foreign"), "{text}");
        assert!(!text.contains("not seen"), "{text}");
        assert!(written(true).contains("foreign 0"));
    }

    #[test]
    fn times_below_zero_keep_their_unit() {
        assert_eq!(signed_micros(-1_500.0), "-1.50 ms");
        assert_eq!(signed_micros(0.25), "0.25 us");
    }

    #[test]
    fn the_live_line_counts_losses_of_all_kinds() {
        let mut report = ReceiveReport {
            streams: vec![StreamReport::default()],
            trace: Some(TraceReport {
                lost: 4,
                ..TraceReport::default()
            }),
            ..ReceiveReport::default()
        };
        report.streams[0].sequence.lost = 3;
        assert!(live(&report).ends_with(", 7 lost"), "{}", live(&report));
    }
}
