//! Time limits for network I/O, excluding time in which the process is stopped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::task::yield_now;
use tokio::time::{Instant as TokioInstant, sleep_until};

/// Number of steps per limit. A stop of the process (by SIGSTOP, a debugger or a freezer) counts as
/// at most one step.
const STEPS: u32 = 10;

/// Turns of the runtime before a limit expires: one to report received bytes, one for the
/// connection to read them, and one for the task that waits for them.
///
/// Without these turns, the limits of a process that was stopped would expire before `epoll_wait`
/// reports received bytes.
const ROUNDS: u32 = 3;

/// Limit on the response time of a peer.
#[derive(Debug)]
pub struct TimeLimit {
    step: Duration,
    steps_left: u32,
    step_end: TokioInstant,
}

impl TimeLimit {
    /// Starts a limit.
    pub fn new(limit: Duration) -> TimeLimit {
        let step = limit / STEPS;
        TimeLimit {
            step,
            steps_left: STEPS,
            step_end: TokioInstant::now() + step,
        }
    }

    /// Waits until the limit has expired and all received input has been read. Cancel-safe: another
    /// call resumes the wait.
    pub async fn used_up(&mut self) {
        while self.steps_left > 0 {
            sleep_until(self.step_end).await;
            self.steps_left -= 1;
            self.step_end = TokioInstant::now() + self.step;
        }
        for _ in 0..ROUNDS {
            yield_now().await;
        }
    }
}

/// Returns the output of a future; `None` on timeout.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut limit = TimeLimit::new(limit);
    tokio::select! {
        biased;
        output = future => Some(output),
        () = limit.used_up() => None,
    }
}

/// Expiry of a [`TimeLimit`], as a fused future.
pub struct Deadline(Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>);

impl Deadline {
    /// Starts a limit.
    pub fn after(limit: Duration) -> Deadline {
        let mut limit = TimeLimit::new(limit);
        Deadline(Some(Box::pin(async move { limit.used_up().await })))
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.0 else {
            return Poll::Ready(());
        };
        let polled = end.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Sleep for Deadline {}

/// Timer for hyper's limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitTimer;

impl Timer for LimitTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline::after(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::thread::sleep;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::runtime::Builder;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(200);

    fn run<R>(future: impl Future<Output = R>) -> R {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_limit_expires_on_time() {
        run(async {
            let began = Instant::now();
            assert_eq!(within(LIMIT, pending::<()>()).await, None);
            assert!(began.elapsed() >= LIMIT);
            assert_eq!(within(Duration::ZERO, ready(5)).await, Some(5));
            let mut deadline = Deadline::after(LIMIT);
            (&mut deadline).await;
            deadline.await;
        });
    }

    #[test]
    fn interrupted_waits_count_together() {
        run(async {
            let began = Instant::now();
            let mut limit = TimeLimit::new(LIMIT);
            let part = Duration::from_millis(7);
            let mut parts = 0;
            while tokio::time::timeout(part, limit.used_up()).await.is_err() {
                parts += 1;
            }
            assert!(began.elapsed() >= LIMIT);
            assert!(parts > 0);
        });
    }

    #[test]
    fn a_stop_of_the_process_is_one_step() {
        run(async {
            let began = Instant::now();
            let mut limit = TimeLimit::new(LIMIT);
            sleep(10 * LIMIT);
            limit.used_up().await;
            let rest = LIMIT / STEPS * (STEPS - 1);
            assert!(began.elapsed() >= 10 * LIMIT + rest);
        });
    }

    #[test]
    fn received_bytes_are_read_before_a_limit_expires() {
        run(async {
            let (mut here, mut there) = UnixStream::pair().expect("a pair");
            let mut limit = TimeLimit::new(LIMIT);
            limit.steps_left = 0;
            let mut bytes = [0; 5];
            // Nothing has been sent yet.
            let read = tokio::time::timeout(LIMIT, here.read(&mut bytes)).await;
            read.expect_err("nothing was sent");
            there.write_all(b"asked").await.expect("it is sent");
            let read = tokio::select! {
                biased;
                read = here.read_exact(&mut bytes) => read.ok(),
                () = limit.used_up() => None,
            };
            assert_eq!((read, &bytes), (Some(5), b"asked"));
        });
    }
}
