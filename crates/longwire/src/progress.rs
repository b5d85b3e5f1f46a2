//! Progress on stderr: a bar for long work, or periodic lines for a simulation if stderr is not a
//! terminal. Also shows steps that take more than a second, such as reading a topology with a
//! million links.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use longwire_topology::steps::{StepProgress, Steps};

use crate::Globals;
use crate::report::output::print_line;
use crate::report::words::{count, count_of, percent};

/// A progress bar that appears after a delay if stderr is a terminal and remarks are enabled.
pub(crate) struct Progress {
    template: &'static str,
    wanted: bool,
    /// Time of the next line since the start; `None` if lines are disabled.
    line_at: Option<Duration>,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Style for work measured in bytes.
    pub(crate) const BYTES: &str =
        "{bar:30} {percent}%  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

    /// Style for work in an internal unit.
    pub(crate) const SHARE: &str = "{bar:30} {percent}%  {eta} left";

    /// Style for the frames of a capture.
    pub(crate) const FRAMES: &str = "{bar:30} {percent}%  {msg}, {eta} left";

    /// Style for bytes of an unknown total.
    const ENDLESS: &str = "{bytes} read, {bytes_per_sec}";

    /// Style for the frames of a capture of unknown length.
    const ENDLESS_FRAMES: &str = "{msg}";

    pub(crate) fn new(template: &'static str, globals: &Globals) -> Progress {
        let wanted = globals.talks() && io::stderr().is_terminal();
        let lines = globals.talks() && !wanted && template == Progress::FRAMES;
        Progress {
            template,
            wanted,
            line_at: lines.then_some(FRAMES_EVERY),
            started: Instant::now(),
            bar: None,
        }
    }

    /// Returns whether the bar is shown.
    pub(crate) fn shows(&self) -> bool {
        self.wanted && self.started.elapsed() >= AFTER
    }

    /// Sets the progress: `done` out of `all`, if known.
    pub(crate) fn at(&mut self, done: u64, all: Option<u64>) {
        if !self.shows() {
            return;
        }
        let template = self.template;
        let bar = self.bar.get_or_insert_with(|| match (all, template) {
            (Some(all), _) => ProgressBar::new(all).with_style(style(template)),
            (None, Progress::FRAMES) => endless(Progress::ENDLESS_FRAMES),
            (None, _) => endless(Progress::ENDLESS),
        });
        bar.set_position(done);
    }

    /// Sets the progress of a simulation: `frames` read so far, in `done` bytes out of `all`, if
    /// known. Prints a line periodically if stderr is not a terminal.
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
            *at = took + FRAMES_EVERY;
            print_line(format_args!("{}", line(frames, done, all, took)));
        }
    }

    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Formats a frame count and its rate.
fn rate_words(frames: u64, took: Duration) -> String {
    let rate = frames as f64 / took.as_secs_f64().max(1e-9);
    format!("{}, {}/s", count_of(frames, "frame"), count(rate as u64))
}

/// Formats a simulation's progress as a line.
fn line(frames: u64, done: u64, all: Option<u64>, took: Duration) -> String {
    let words = rate_words(frames, took);
    match all {
        Some(all) if done > 0 => {
            let share = done as f64 / all.max(done) as f64;
            let left = took.mul_f64(1.0 / share - 1.0).as_secs_f64().ceil();
            format!("{} read: {words}; {left:.0} s left", percent(share))
        }
        _ => format!("{words} so far"),
    }
}

fn endless(template: &str) -> ProgressBar {
    ProgressBar::no_length().with_style(style(template))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Work shorter than this shows no progress.
const AFTER: Duration = Duration::from_secs(1);

/// Interval between terminal updates.
const REDRAW: Duration = Duration::from_millis(100);

/// Interval between lines for frames and steps if stderr is not a terminal.
const FRAMES_EVERY: Duration = Duration::from_secs(10);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Formats a step: `preparing links, 1,200 of 2,000`.
fn words(progress: StepProgress) -> String {
    let name = progress.name;
    match (progress.done, progress.all) {
        (0, _) => name.to_owned(),
        (done, None) => format!("{name}, {} so far", count(done)),
        (done, Some(all)) => format!("{name}, {} of {}", count(done), count(all)),
    }
}

/// Shows steps until dropped.
pub(crate) struct StepsOnStderr {
    steps: Arc<Steps>,
    /// The display, which ends once the sender is dropped.
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

impl StepsOnStderr {
    pub(crate) fn start(globals: &Globals) -> StepsOnStderr {
        let steps = Arc::new(Steps::new());
        let shown = Arc::clone(&steps);
        let (working, over) = channel();
        let thread = globals.talks().then(|| {
            let thread = std::thread::Builder::new().name("longwire-progress".to_owned());
            thread.spawn(move || show(&shown, &over))
        });
        // Without a thread, steps are not shown.
        let thread = thread.and_then(Result::ok);
        let display = thread.map(|thread| (working, thread));
        StepsOnStderr { steps, display }
    }

    /// Returns the shown steps.
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }
}

impl Drop for StepsOnStderr {
    fn drop(&mut self) {
        if let Some((working, thread)) = self.display.take() {
            drop(working);
            // Ignore a panic of the display, which must not end the work.
            let _ = thread.join();
        }
    }
}

/// Shows long steps until the work is over.
fn show(steps: &Steps, over: &Receiver<()>) {
    // Waits at most `time`; returns whether the work is over.
    let ends_within = |time| over.recv_timeout(time) == Err(RecvTimeoutError::Disconnected);
    if ends_within(AFTER) {
        return;
    }
    if io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        let bar = bar.with_elapsed(AFTER);
        while !ends_within(REDRAW) {
            bar.set_message(words(steps.progress()));
            bar.tick();
        }
        bar.finish_and_clear();
        return;
    }
    let (mut step, mut written) = ("", Instant::now());
    loop {
        let now = steps.progress().name;
        if now != step || written.elapsed() >= LINE_EVERY {
            (step, written) = (now, Instant::now());
            print_line(format_args!("{} …", words(steps.progress())));
        }
        if ends_within(REDRAW) {
            return;
        }
    }
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
            assert_eq!(line(20, done, all, took), "20 frames, 2/s so far");
        }
    }

    #[test]
    fn steps_are_shown_with_their_progress() {
        let steps = Steps::new();
        steps.begin("reading the file", None);
        assert_eq!(words(steps.progress()), "reading the file");
        steps.begin("reading links", None);
        (0..1_200).for_each(|_| steps.advance());
        assert_eq!(words(steps.progress()), "reading links, 1,200 so far");
        steps.begin("preparing links", Some(2_000));
        steps.advance();
        assert_eq!(words(steps.progress()), "preparing links, 1 of 2,000");
    }
}
