//! Live runs between custom ports and in-memory cables: polling latency, and panics in ports. Needs
//! no namespaces.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use longwire_engine::{Bytes, LinkConfig, Nanos, models};
use longwire_io::port::mem::{PipeRx, pipe};
use longwire_io::port::one_way::DiscardTx;
use longwire_io::port::own::OwnRx;
use longwire_io::port::registry::{AnyRx, AnyTx, Port};
use longwire_io::{Event, PortError, PushResult, ReceiveResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::{LinkSetup, NetworkPlan, Placement, RunConfig, RunningNetwork, start};

use crate::common::{input, output};
use crate::composed::ports::Sink;

/// A frame queue between a test and its port.
#[derive(Default)]
struct Queue {
    frames: Mutex<VecDeque<Vec<u8>>>,
    /// Signalled for each added frame, if the port has a descriptor.
    event: Option<Event>,
    /// Number of polls.
    calls: AtomicU64,
}

impl Queue {
    fn put(&self, frame: Vec<u8>) {
        self.frames.lock().expect("sound").push_back(frame);
        if let Some(event) = &self.event {
            event.signal();
        }
    }
}

/// The test port's receiving half.
struct FromQueue(Arc<Queue>);

impl OwnRx for FromQueue {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(event) = &self.0.event {
            event.clear();
        }
        let mut waiting = self.0.frames.lock().expect("sound");
        let count = waiting.len().min(max);
        for bytes in waiting.drain(..count) {
            take(RxFrame::whole(&bytes, now));
        }
        Ok(ReceiveResult {
            frames: count,
            end: false,
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.0.event.as_ref().map(AsFd::as_fd)
    }

    fn frame_max(&self) -> usize {
        2_000
    }
}

/// Runs a link without delay from `a`. A frame's release is the time at which `a` provided it.
fn run(a: Port, left: &Sink, placement: Placement) -> RunningNetwork {
    let b = output("b", left.port(false));
    let setup = LinkSetup::new("ab", LinkConfig::default());
    begin(NetworkPlan::link(a, b, setup, None), placement)
}

fn begin(plan: NetworkPlan, placement: Placement) -> RunningNetwork {
    let config = RunConfig {
        placement,
        ..RunConfig::default()
    };
    start(plan, config, None).expect("a run")
}

const FRAMES: usize = 15;

fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Sends frames one at a time over an idle link. Asserts that most are received as soon as a thread
/// in this test wakes up: a busy machine delays both, while an idle thread's long sleep delays only
/// the frames.
#[track_caller]
fn assert_soon(placement: Placement, left: &Sink, mut send: impl FnMut()) {
    let (tell, told) = channel();
    let witness = thread::spawn(move || told.iter().map(|()| monotonic_now()).collect());
    let mut sent = Vec::new();
    for _ in 0..FRAMES {
        // 37 ms is not a divisor of the idle polling interval.
        thread::sleep(Duration::from_millis(37));
        sent.push(monotonic_now());
        send();
        tell.send(()).expect("the witness waits");
    }
    drop(tell);
    let mut seen: Vec<Nanos> = Vec::new();
    for _ in 0..200 {
        seen.extend(left.take().into_iter().map(|(release, _)| release));
        if seen.len() == FRAMES {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let waits = |seen: Vec<Nanos>| -> Vec<Nanos> {
        assert_eq!(seen.len(), FRAMES, "all frames cross the link");
        let both = seen.iter().zip(&sent);
        both.map(|(seen, sent)| seen.saturating_sub(*sent))
            .collect()
    };
    let frames = waits(seen);
    let awake = median(waits(witness.join().expect("no panic")));
    let limit = Nanos::from_millis(15).saturating_add(awake);
    let found = median(frames.clone());
    assert!(found < limit, "{placement:?}, {awake:?}: {frames:?}");
}

const PLACEMENTS: [Placement; 2] = [Placement::Together, Placement::PerStage];

#[test]
fn a_port_that_cannot_be_waited_for_is_asked_often() {
    for placement in PLACEMENTS {
        let queue = Arc::new(Queue::default());
        let left = Sink::default();
        let running = run(input("a", FromQueue(Arc::clone(&queue))), &left, placement);
        assert_soon(placement, &left, || queue.put(vec![1; 100]));
        let report = running.stop();
        assert_eq!(report.error, None);
        // The port is polled often, but not continuously.
        assert!(report.cpu_s < 0.5 * report.duration_s, "{} s", report.cpu_s);
    }
}

#[test]
fn a_port_with_a_descriptor_is_waited_for() {
    for placement in PLACEMENTS {
        let queue = Arc::new(Queue {
            event: Some(Event::new().expect("an event")),
            ..Queue::default()
        });
        let left = Sink::default();
        let running = run(input("a", FromQueue(Arc::clone(&queue))), &left, placement);
        assert_soon(placement, &left, || queue.put(vec![1; 100]));
        let before = queue.calls.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(600));
        let asked = queue.calls.load(Ordering::Relaxed) - before;
        // One poll per 250 ms is expected, with a tolerance.
        let of = format!("{placement:?}: an idle port was polled {asked} times");
        assert!(asked < 30, "{of}");
        assert_eq!(running.stop().error, None);
    }
}

#[test]
fn a_cable_in_memory_wakes_the_thread_at_its_end() {
    for placement in PLACEMENTS {
        let (mut tx, rx) = pipe(Bytes(1 << 20)).expect("memory");
        let left = Sink::default();
        let rx = AnyRx::Pipe(Box::new(rx));
        let port = Port::with_halves("a", rx, AnyTx::Discard(DiscardTx::default()));
        let running = run(port, &left, placement);
        let frame = [7; 100];
        assert_soon(placement, &left, || {
            let pushed = tx.push(TxFrame::whole(&frame, Nanos::ZERO));
            assert_eq!(pushed, PushResult::Taken);
            assert_eq!(tx.flush().expect("it is open"), 1);
        });
        assert_eq!(running.stop().error, None);
    }
}

/// Checks a pipe's descriptor after each step of an exchange.
#[test]
fn the_descriptor_of_a_cable_is_readable_with_frames() {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn readable(rx: &PipeRx) -> bool {
        let fd = rx.readable().expect("a cable can be waited for");
        let mut polled = [PollFd::new(fd, PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO).expect("polled") == 1
    }
    let take = |rx: &mut PipeRx| {
        let received = rx.receive(Nanos::ZERO, 64, &mut |_| {});
        received.expect("it is open").frames
    };
    let (mut tx, mut rx) = pipe(Bytes(1 << 20)).expect("memory");
    let mut send = || {
        tx.push(TxFrame::whole(&[7; 60], Nanos::ZERO));
        tx.flush().expect("it is open");
    };
    for _ in 0..3 {
        assert_eq!(take(&mut rx), 0);
        assert!(!readable(&rx), "nothing has been sent");
        send();
        assert!(readable(&rx), "a frame waits");
        send();
        assert!(readable(&rx), "two frames wait");
        assert_eq!(take(&mut rx), 2);
        assert_eq!(take(&mut rx), 0);
        assert!(!readable(&rx), "both have been taken");
    }
}

/// Provides two frames, pauses its thread, and is then behind with a third frame that arrived
/// together with the others.
#[derive(Default)]
struct Behind {
    arrival: Nanos,
    calls: usize,
}

impl OwnRx for Behind {
    fn receive(
        &mut self,
        now: Nanos,
        _: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        self.calls += 1;
        let frames = match self.calls {
            1 => {
                self.arrival = now;
                2
            }
            2 => {
                thread::sleep(Duration::from_millis(40));
                0
            }
            4 => 1,
            _ => 0,
        };
        (0..frames).for_each(|_| take(RxFrame::whole(&[0; 1_000], self.arrival)));
        Ok(ReceiveResult { frames, end: false })
    }

    fn is_behind(&self) -> bool {
        self.calls < 4
    }

    fn frame_max(&self) -> usize {
        1_000
    }
}

#[test]
fn a_queue_waits_for_a_port_that_is_behind() {
    let left = Sink::default();
    let ports = (input("a", Behind::default()), output("b", left.port(false)));
    let config = LinkConfig {
        rate: models::RATE.parse("1mbit").expect("a rate"),
        queue: Some(models::QUEUE.parse("codel").expect("a queue")),
        ..LinkConfig::default()
    };
    let plan = NetworkPlan::link(ports.0, ports.1, LinkSetup::new("ab", config), None);
    let running = begin(plan, Placement::Together);
    let mut releases = Vec::new();
    for _ in 0..1_000 {
        releases.extend(left.take().into_iter().map(|(release, _)| release));
        if releases.len() == 3 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    running.stop();
    let apart = |pair: &[Nanos]| pair[1].saturating_sub(pair[0]);
    let gaps: Vec<Nanos> = releases.windows(2).map(apart).collect();
    assert_eq!(gaps, [Nanos::from_millis(8); 2]);
}

/// A port that panics at the third poll.
struct Panics(u32);

impl OwnRx for Panics {
    fn receive(
        &mut self,
        _: Nanos,
        _: usize,
        _: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        self.0 += 1;
        assert!(self.0 < 3, "the test's own panic");
        Ok(ReceiveResult::default())
    }

    fn frame_max(&self) -> usize {
        2_000
    }
}

#[test]
fn a_thread_that_panics_ends_the_run_with_a_word() {
    for placement in [
        Placement::Together,
        Placement::PerDirection,
        Placement::PerStage,
    ] {
        let (a, b) = (input("a", Panics(0)), input("b", FromQueue(Arc::default())));
        let setup = |name: &str| LinkSetup::new(name, LinkConfig::default());
        let plan = NetworkPlan::link(a, b, setup("ab"), Some(setup("ba")));
        let running = begin(plan, placement);
        let ended = running.wait(Duration::from_secs(20));
        assert!(ended, "{placement:?}: the run goes on without a thread");
        let error = running.stop().error.expect("a reason");
        for part in ["panicked", "the test's own panic"] {
            assert!(error.contains(part), "{placement:?}: {error}");
        }
    }
}
