//! Starts, watches and stops a run's threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use longwire_io::port::wait_closed;

use crate::faults::Faults;
use crate::host;
use crate::plugin::{Call, call_of, thread_id};
use crate::record::RecordWriter;
use crate::report::RunReport;
use crate::shutdown::is_hurried;
use crate::start_error::StartError;
use crate::stops::StopWatch;
use crate::thread::{Bell, Control, ThreadEnd, add_pauses};
use crate::waiting::PauseLog;

/// Polling interval while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A run's threads and their shared state. Drop stops them and discards their results.
pub(crate) struct Threads {
    control: Arc<Control>,
    running: Vec<RunningThread>,
    /// Each thread sends its index in `running` when it ends.
    ending: (Sender<usize>, Receiver<usize>),
    /// The recording's writer thread, which is joined last.
    pub recorder: Option<RecordWriter>,
    stop_watch: Option<StopWatch>,
}

/// A thread to start.
pub(crate) struct ThreadPlan {
    pub name: String,
    pub bell: Arc<Bell>,
    /// Prepares the thread and returns notes.
    pub prepare: Box<dyn FnOnce() -> Vec<String> + Send>,
    pub body: Box<dyn FnOnce() -> ThreadEnd + Send>,
}

/// A started thread.
struct RunningThread {
    bell: Arc<Bell>,
    thread: JoinHandle<ThreadEnd>,
    /// Kernel thread id.
    id: i32,
}

/// The results of a run's threads.
pub(crate) struct ThreadResults {
    ends: Vec<ThreadEnd>,
    stops: PauseLog,
    error: Option<String>,
}

/// Reports a thread's end on drop, and marks the run as failed after a panic.
struct EndGuard {
    control: Arc<Control>,
    ending: Sender<usize>,
    place: usize,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.control.failed.store(true, Ordering::SeqCst);
        }
        // Fails if the run was dropped.
        let _ = self.ending.send(self.place);
    }
}

impl Threads {
    /// Returns a set without threads.
    pub fn new(faults: Faults) -> Threads {
        Threads {
            control: Arc::new(Control {
                faults,
                ..Control::default()
            }),
            running: Vec::new(),
            ending: channel(),
            recorder: None,
            stop_watch: StopWatch::start().ok(),
        }
    }

    /// Returns the shared state.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Starts a thread and waits for its preparation. Adds new notes to `notes`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn spawn(&mut self, plan: ThreadPlan, notes: &mut Vec<String>) -> Result<(), StartError> {
        let (ready, prepared) = channel();
        let guard = EndGuard {
            control: Arc::clone(&self.control),
            ending: self.ending.0.clone(),
            place: self.running.len(),
        };
        let body = move || {
            host::give_up_rights();
            let _guard = guard;
            let _ = ready.send((thread_id(), (plan.prepare)()));
            (plan.body)()
        };
        let thread = Builder::new().name(plan.name).spawn(body);
        let thread = thread.map_err(StartError::Thread)?;
        let (id, found) = prepared.recv().unwrap_or_default();
        for note in found {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        self.running.push(RunningThread {
            bell: plan.bell,
            thread,
            id,
        });
        Ok(())
    }

    /// Returns whether all threads have ended, or must end because a port was lost or a plugin
    /// failed.
    pub fn ended(&self) -> bool {
        let mut threads = self.running.iter();
        self.control.must_end() || threads.all(|running| running.thread.is_finished())
    }

    /// Waits until all threads have ended or must end, at most for `timeout`. Returns whether they
    /// have.
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

    /// Stops all threads, then the recorder, which has received all events by then. Stuck threads
    /// are not joined.
    pub fn stop(&mut self) -> ThreadResults {
        let ends = self.end();
        let recorded = self.recorder.take().map(RecordWriter::end);
        let mut error = self.control.faults.first();
        if let Some(Err(unwritten)) = recorded {
            error.get_or_insert(format!("recording: {unwritten}"));
        }
        let stops = self.stop_watch.take().map(StopWatch::end);
        ThreadResults {
            ends,
            stops: stops.unwrap_or_default(),
            error,
        }
    }

    fn end(&mut self) -> Vec<ThreadEnd> {
        self.control.stop.store(true, Ordering::SeqCst);
        for running in &self.running {
            running.bell.ring();
        }
        let mut running: Vec<Option<RunningThread>> = self.running.drain(..).map(Some).collect();
        let mut ends: Vec<ThreadEnd> = Vec::new();
        ends.resize_with(running.len(), ThreadEnd::default);
        let mut left_behind = StuckThreads::default();
        while running.iter().any(Option::is_some) {
            if let Ok(place) = self.ending.1.recv_timeout(LOOK_EVERY) {
                if let Some(ended) = running.get_mut(place).and_then(Option::take) {
                    let end = ended.thread.join();
                    ends[place] = end.unwrap_or_else(|panic| ThreadEnd::panicked(&*panic));
                }
                continue;
            }
            for (thread, end) in running.iter_mut().zip(&mut ends) {
                let id = thread.as_ref().map(|thread| thread.id);
                if let Some(left) = id.and_then(|id| left_behind.look(id)) {
                    // Do not join the thread; it ends with the process.
                    *thread = None;
                    *end = left;
                }
            }
        }
        if let Some(recorder) = self.recorder.as_ref().filter(|_| left_behind.any) {
            recorder.no_more();
        }
        wait_closed();
        ends
    }
}

/// Number of polls of a stopping thread before its plugin counts as stuck: 2 s. Outside plugins
/// there is no limit.
const LOOKS_MAX: u32 = 100;

/// Number of polls of a stopping thread before it counts as stuck in a hurried stop: 100 ms.
const LOOKS_HURRIED: u32 = 5;

/// Detects stuck threads, which are not joined.
#[derive(Default)]
struct StuckThreads {
    /// Thread ids, each with its call at the last poll and the number of consecutive polls in that
    /// call.
    seen: Vec<(i32, Option<Call>, u32)>,
    any: bool,
}

impl StuckThreads {
    /// Examines a running thread, and returns its result if it is stuck.
    fn look(&mut self, thread: i32) -> Option<ThreadEnd> {
        let call = call_of(thread);
        let before = self.seen.iter().position(|(other, _, _)| *other == thread);
        let before = before.map(|at| self.seen.swap_remove(at));
        let same = before.filter(|(_, seen, _)| *seen == call);
        let looks = same.map_or(0, |(_, _, looks)| looks).saturating_add(1);
        self.seen.push((thread, call, looks));
        let enough = match call {
            _ if is_hurried() => LOOKS_HURRIED,
            Some(_) => LOOKS_MAX,
            None => u32::MAX,
        };
        if looks < enough {
            return None;
        }
        self.any = true;
        match call {
            Some(call) => {
                call.report("has not returned since the run was stopped");
                Some(ThreadEnd::default())
            }
            None => Some(ThreadEnd::left_behind()),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
        if let Some(watch) = self.stop_watch.take() {
            watch.end();
        }
    }
}

impl ThreadResults {
    /// Adds the threads' errors, notes and resource usage to a report.
    pub fn add_to(self, report: &mut RunReport) {
        if report.error.is_none() {
            report.error = self.error;
        }
        add_pauses(&mut report.stops, &self.stops);
        for end in self.ends {
            report.cpu_s += end.cpu.as_secs_f64();
            report.core_wait_s += end.core_wait.as_secs_f64();
            report.wake_margin_us = report.wake_margin_us.max(end.margin.as_micros_f64());
            report.add_closing_notes(end.remarks);
            if let Some(error) = end.error {
                report.error.get_or_insert(error.to_string());
            }
        }
    }
}
