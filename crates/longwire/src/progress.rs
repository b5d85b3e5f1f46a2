//! A progress bar on the terminal for long work; simulations print lines where stderr
//! is not a terminal.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Globals;
use crate::report::output::print_line;
use crate::report::words::{count, count_of, percent};

/// A bar that appears after a moment, if stderr is a terminal and remarks are enabled.
pub(crate) struct Progress {
    template: &'static str,
    wanted: bool,
    /// Time since the start at which the next line is due; `None` without lines.
    line_at: Option<Duration>,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Shorter work shows no bar.
    const AFTER: Duration = Duration::from_secs(1);

    /// Style for work in bytes.
    pub(crate) const BYTES: &str =
        "{bar:30} {percent}%  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

    /// Style for work in a unit unknown to users.
    pub(crate) const SHARE: &str = "{bar:30} {percent}%  {eta} left";

    /// Style for frames of a capture.
    pub(crate) const FRAMES: &str = "{bar:30} {percent}%  {msg}, {eta} left";

    /// Style for bytes of an unknown total.
    const ENDLESS: &str = "{bytes} read, {bytes_per_sec}";

    /// Style for frames of a capture of unknown length.
    const ENDLESS_FRAMES: &str = "{msg}";

    /// Interval between lines where stderr is no terminal.
    const LINE_EVERY: Duration = Duration::from_secs(10);

    pub(crate) fn new(template: &'static str, globals: &Globals) -> Progress {
        let wanted = globals.talks() && io::stderr().is_terminal();
        let lines = globals.talks() && !wanted && template == Progress::FRAMES;
        Progress {
            template,
            wanted,
            line_at: lines.then_some(Progress::LINE_EVERY),
            started: Instant::now(),
            bar: None,
        }
    }

    /// Returns whether the bar is shown.
    pub(crate) fn shows(&self) -> bool {
        self.wanted && self.started.elapsed() >= Progress::AFTER
    }

    /// Sets the progress: `done` of `all`, if known.
    pub(crate) fn at(&mut self, done: u64, all: Option<u64>) {
        if !self.shows() {
            return;
        }
        let template = self.template;
        let bar = self.bar.get_or_insert_with(|| match all {
            Some(all) => ProgressBar::new(all).with_style(style(template)),
            None => ProgressBar::no_length().with_style(style(endless(template))),
        });
        bar.set_position(done);
    }

    /// Sets the progress of a simulation: `frames` read so far, in `done` bytes of
    /// `all`, if known. Prints a line periodically if stderr is not a terminal.
    pub(crate) fn at_frame(&mut self, frames: u64, done: u64, all: Option<u64>) {
        let took = self.started.elapsed();
        if self.shows() {
            self.at(done, all);
            if let Some(bar) = &self.bar {
                bar.set_message(rate_words(frames, took));
            }
        }
        if let Some(at) = &mut self.line_at
            && took >= *at
        {
            *at = took + Progress::LINE_EVERY;
            print_line(format_args!("{}", line(frames, done, all, took)));
        }
    }

    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Returns the style for an unknown total.
fn endless(template: &'static str) -> &'static str {
    match template {
        Progress::FRAMES => Progress::ENDLESS_FRAMES,
        _ => Progress::ENDLESS,
    }
}

/// Formats frames and their rate.
fn rate_words(frames: u64, took: Duration) -> String {
    let rate = frames as f64 / took.as_secs_f64().max(1e-9);
    format!("{}, {}/s", count_of(frames, "frame"), count(rate as u64))
}

/// Formats the progress of a simulation as a line.
fn line(frames: u64, done: u64, all: Option<u64>, took: Duration) -> String {
    let words = rate_words(frames, took);
    match all {
        Some(all) if done > 0 => {
            let share = done as f64 / all.max(done) as f64;
            let left = took.mul_f64(1.0 / share - 1.0);
            let left = left.as_secs_f64().ceil();
            format!("{} read: {words}; {left:.0} s left", percent(share))
        }
        _ => format!("{words} so far"),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_time_left() {
        let took = Duration::from_secs(10);
        let half = line(80_000_000, 5 << 30, Some(20 << 30), took);
        let text = "25.0% read: 80,000,000 frames, 8,000,000/s; 30 s left";
        assert_eq!(half, text);
        let over = line(1, 7, Some(6), took);
        assert_eq!(over, "100% read: 1 frame, 0/s; 0 s left");
        for (done, all) in [(9, None), (0, Some(9))] {
            let unknown = line(20, done, all, took);
            assert_eq!(unknown, "20 frames, 2/s so far");
        }
    }
}
