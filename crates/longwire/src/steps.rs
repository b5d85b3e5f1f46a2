//! Prints the steps of long work on stderr, such as reading a topology of a million
//! links, once it has taken a second.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use longwire_topology::steps::{StepProgress, Steps};

use crate::Globals;
use crate::report::output::print_line;
use crate::report::words::count;

/// Shorter work prints nothing.
const AFTER: Duration = Duration::from_secs(1);

/// Interval between refreshes of the terminal.
const REDRAW: Duration = Duration::from_millis(100);

/// Interval between lines where stderr is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Formats the step: `preparing links, 1,200 of 2,000`.
fn words(progress: StepProgress) -> String {
    let name = progress.name;
    match (progress.done, progress.all) {
        (0, _) => name.to_owned(),
        (done, None) => format!("{name}, {} so far", count(done)),
        (done, Some(all)) => format!("{name}, {} of {}", count(done), count(all)),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows steps until it is dropped.
pub(crate) struct StepsOnStderr {
    shared: Arc<DisplayState>,
    thread: Option<JoinHandle<()>>,
}

struct DisplayState {
    steps: Steps,
    over: Mutex<bool>,
    ended: Condvar,
}

impl StepsOnStderr {
    /// Starts to watch steps.
    pub(crate) fn start(globals: &Globals) -> StepsOnStderr {
        let shared = Arc::new(DisplayState {
            steps: Steps::new(),
            over: Mutex::new(false),
            ended: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        let thread = globals.talks().then(|| {
            let name = "longwire-progress".to_owned();
            std::thread::Builder::new()
                .name(name)
                .spawn(move || watched.show())
        });
        // Without a thread, no steps are shown.
        let thread = thread.and_then(Result::ok);
        StepsOnStderr { shared, thread }
    }

    /// Returns the displayed steps.
    pub(crate) fn steps(&self) -> &Steps {
        &self.shared.steps
    }
}

impl Drop for StepsOnStderr {
    fn drop(&mut self) {
        *locked(&self.shared.over) = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the display does not end the work.
            let _ = thread.join();
        }
    }
}

impl DisplayState {
    fn show(&self) {
        if self.wait(AFTER) {
            return;
        }
        if io::stderr().is_terminal() {
            self.draw()
        } else {
            self.write_lines()
        }
    }

    /// Waits at most `time` for the work to end; returns whether it has.
    fn wait(&self, time: Duration) -> bool {
        let over = locked(&self.over);
        let waited = self.ended.wait_timeout_while(over, time, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn draw(&self) {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        let bar = bar.with_elapsed(AFTER);
        while !self.wait(REDRAW) {
            bar.set_message(words(self.steps.progress()));
            bar.tick();
        }
        bar.finish_and_clear();
    }

    fn write_lines(&self) {
        let mut step = "";
        let mut written = Instant::now();
        loop {
            let now = self.steps.progress().name;
            if now != step || written.elapsed() >= LINE_EVERY {
                (step, written) = (now, Instant::now());
                print_line(format_args!("{} …", words(self.steps.progress())));
            }
            if self.wait(REDRAW) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
