//! A progress bar on the terminal, for work that takes a while.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Globals;

/// A bar that appears once the work has taken a moment, if stderr is a
/// terminal and remarks are wanted.
pub(crate) struct Progress {
    template: &'static str,
    wanted: bool,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work that is done within this time needs no bar.
    const AFTER: Duration = Duration::from_secs(1);

    /// Style for work measured in bytes.
    pub(crate) const BYTES: &str =
        "{bar:30} {percent}%  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

    /// Style for work measured in a unit that users do not know.
    pub(crate) const SHARE: &str = "{bar:30} {percent}%  {eta} left";

    /// Style for bytes of an unknown total.
    const ENDLESS: &str = "{bytes} read, {bytes_per_sec}";

    pub(crate) fn new(template: &'static str, globals: &Globals) -> Progress {
        Progress {
            template,
            wanted: globals.talks() && io::stderr().is_terminal(),
            started: Instant::now(),
            bar: None,
        }
    }

    /// Whether a bar is shown.
    pub(crate) fn shows(&self) -> bool {
        self.wanted && self.started.elapsed() >= Progress::AFTER
    }

    /// Sets the progress: `done` of `all`, if that is known.
    pub(crate) fn at(&mut self, done: u64, all: Option<u64>) {
        if !self.shows() {
            return;
        }
        let template = self.template;
        let bar = self.bar.get_or_insert_with(|| match all {
            Some(all) => ProgressBar::new(all).with_style(style(template)),
            None => ProgressBar::no_length().with_style(style(Progress::ENDLESS)),
        });
        bar.set_position(done);
    }

    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
