//! Threads that attach and detach links. They keep all privileges of the program, which the API's
//! threads drop.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::NodeError;

/// Number of threads; attaching mostly waits for the kernel.
const THREADS: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// Thread pool for blocking work. On drop, finishes the queued jobs.
pub(crate) struct Pool {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// # Errors
    /// If the threads cannot be started.
    pub fn new() -> Result<Pool, NodeError> {
        let (jobs, given) = channel::<Job>();
        let given = Arc::new(Mutex::new(given));
        let mut pool = Pool {
            jobs: Some(jobs),
            threads: Vec::new(),
        };
        for _ in 0..THREADS {
            let given = Arc::clone(&given);
            let thread = thread::Builder::new().name("longwire-attach".to_owned());
            let thread = thread.spawn(move || work(&given));
            pool.threads.push(thread.map_err(NodeError::Thread)?);
        }
        Ok(pool)
    }

    /// Queues a job.
    pub fn give(&self, job: impl FnOnce() + Send + 'static) {
        let jobs = self.jobs.as_ref();
        // Cannot fail: sender and receivers live as long as the pool.
        jobs.map(|jobs| jobs.send(Box::new(job)));
    }

    /// Queues a job and returns a channel for its result. Receiving fails if the job panicked.
    pub fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Receiver<R> {
        let (done, result) = channel();
        self.give(move || {
            let _ = done.send(job());
        });
        result
    }

    /// Runs jobs, and waits for all of them.
    pub fn run_all(&self, jobs: impl Iterator<Item = impl FnOnce() + Send + 'static>) {
        let started: Vec<_> = jobs.map(|job| self.start(job)).collect();
        for job in started {
            let _ = job.recv();
        }
    }

    /// Runs a job to completion; `None` if it panicked.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        self.start(job).recv().ok()
    }
}

fn work(given: &Mutex<Receiver<Job>>) {
    loop {
        let job = {
            let given = given.lock().unwrap_or_else(PoisonError::into_inner);
            given.recv()
        };
        let Ok(job) = job else {
            return;
        };
        // A panic in a job must not end the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_end_a_thread() {
        let pool = Pool::new().expect("threads");
        for _ in 0..2 * THREADS {
            let panicked = pool.run(|| -> u8 { std::panic::resume_unwind(Box::new(())) });
            assert_eq!(panicked, None);
        }
        assert_eq!(pool.run(|| 7), Some(7));
    }
}
