//! The threads of a run: starting, watching and stopping them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::faults::Faults;
use crate::record::{Epoch, Recorder, Recording, Writing};
use crate::report::RunReport;
use crate::run::StartError;
use crate::summary;
use crate::thread::{Bell, Control, ThreadEnd};

/// A run that is waited for is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The threads of a run and what they share. Dropped, they are stopped, and
/// how they ended is lost.
pub(crate) struct Threads {
    control: Arc<Control>,
    running: Vec<(Arc<Bell>, JoinHandle<ThreadEnd>)>,
    /// The thread that writes what is recorded.
    recorder: Option<Writing>,
}

/// How the threads of a run ended.
pub(crate) struct Stopped {
    ends: Vec<ThreadEnd>,
    error: Option<String>,
}

impl Threads {
    /// None yet.
    pub fn new(faults: Faults) -> Threads {
        Threads {
            control: Arc::new(Control {
                faults,
                ..Control::default()
            }),
            running: Vec::new(),
            recorder: None,
        }
    }

    /// What they share.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Starts a thread and waits until it has prepared itself; of what it has
    /// to say about that, what is new goes to `notes`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn spawn(
        &mut self,
        name: &str,
        bell: Arc<Bell>,
        notes: &mut Vec<String>,
        prepare: impl FnOnce() -> Vec<String> + Send + 'static,
        body: impl FnOnce() -> ThreadEnd + Send + 'static,
    ) -> Result<(), StartError> {
        let (tell, told) = channel();
        let thread = spawn(name, move || {
            let _ = tell.send(prepare());
            body()
        })?;
        for note in told.recv().unwrap_or_default() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        self.running.push((bell, thread));
        Ok(())
    }

    /// Starts to write what is recorded.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn record(
        &mut self,
        recording: Recording,
        recorder: Box<dyn Recorder>,
        epoch: Epoch,
    ) -> Result<(), StartError> {
        self.keep(Some(recording.start(recorder, epoch)?));
        Ok(())
    }

    /// Waits for what is recorded to be written when all are stopped.
    pub fn keep(&mut self, recorder: Option<Writing>) {
        self.recorder = recorder;
    }

    /// Whether all have ended, or must: a port was lost or a plugin failed.
    pub fn ended(&self) -> bool {
        let mut threads = self.running.iter();
        self.control.failed.load(Ordering::SeqCst)
            || self.control.faults.any()
            || threads.all(|(_, thread)| thread.is_finished())
    }

    /// Waits until they have ended, for so long at the most; whether they have.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        true
    }

    /// Stops them all, the one that records last: by then it has everything.
    pub fn stop(&mut self) -> Stopped {
        let ends = self.end();
        let recorded = self.recorder.take().map(JoinHandle::join);
        let mut error = self.control.faults.first();
        if let Some(Ok(Err(unwritten))) = recorded {
            error.get_or_insert(format!("recording: {unwritten}"));
        }
        Stopped { ends, error }
    }

    fn end(&mut self) -> Vec<ThreadEnd> {
        self.control.stop.store(true, Ordering::SeqCst);
        for (bell, _) in &self.running {
            bell.ring();
        }
        let threads = self.running.drain(..);
        threads
            .map(|(_, thread)| thread.join().unwrap_or_else(|_| ThreadEnd::panicked()))
            .collect()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Stopped {
    /// Puts into a report of the run what went wrong, and what the threads
    /// have to say and have used.
    pub fn add_to(self, report: &mut RunReport) {
        if report.error.is_none() {
            report.error = self.error;
        }
        for end in self.ends {
            summary::add_thread_end(report, end);
        }
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(StartError::Thread)
}
