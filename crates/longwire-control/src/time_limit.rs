//! Time limits of network input and output that count only time in which the
//! process could serve its sockets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::task::yield_now;
use tokio::time::{Instant as TokioInstant, sleep_until};

/// A limit is counted in this many steps. A stop of the process, however long
/// (SIGSTOP, a debugger, a freezer), takes at most one of them.
const STEPS: u32 = 10;

/// The rounds of the runtime between the end of a limit and its report: one in
/// which the system reports received bytes, one in which the connection reads
/// them, and one in which the task that waits for them gets its turn.
///
/// Without them, a process that was stopped would take its own stop for the
/// slowness of the other side: `epoll_wait` then ends without an event, and timers
/// expire before the next call reports what has arrived.
const ROUNDS: u32 = 3;

/// A limit on the time that the other side may take.
#[derive(Debug)]
pub struct TimeLimit {
    step: Duration,
    steps_left: u32,
    step_end: TokioInstant,
}

impl TimeLimit {
    /// A limit that begins now.
    pub fn new(limit: Duration) -> TimeLimit {
        let step = limit / STEPS;
        TimeLimit {
            step,
            steps_left: STEPS,
            step_end: TokioInstant::now() + step,
        }
    }

    /// Waits until the time is used up and all input that has arrived by then had its
    /// turn. Dropped early and called again, it goes on counting.
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

/// Returns the result of a future, or `None` if that takes longer than the limit.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut limit = TimeLimit::new(limit);
    tokio::select! {
        biased;
        output = future => Some(output),
        () = limit.used_up() => None,
    }
}

/// The end of a [`TimeLimit`]. It may be polled again after it.
pub struct Deadline(Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>);

impl Deadline {
    /// The end of a limit that begins now.
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

/// The timer of hyper's own limits.
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
    fn a_limit_ends_at_its_time_and_not_before() {
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
    fn bytes_that_have_arrived_are_read_before_the_limit_is_judged() {
        run(async {
            let (mut here, mut there) = UnixStream::pair().expect("a pair");
            let mut limit = TimeLimit::new(LIMIT);
            limit.steps_left = 0;
            let mut bytes = [0; 5];
            // The runtime finds nothing to read yet.
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
