//! Replays: frames read ahead of time leave when due.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::mem::{PipeRx, pipe};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::{AnyRx, AnyTx, Port};
use longwire_io::{PortError, PushResult, ReceiveResult, RxPort};
use longwire_runtime::record::Epoch;
use longwire_runtime::replay::{ReplayConfig, ReplayOutput, Start};
use longwire_runtime::{
    Feed, FeedFrame, FeedStatus, LinkSetup, NetworkPlan, RunConfig, RunReport, RunningNetwork,
    StartError, start,
};

use crate::common::PushFn;
use crate::common::network::link;

/// Feeds numbered frames.
pub(crate) struct Numbered<F> {
    pub(crate) frames: u64,
    pub(crate) next: u64,
    pub(crate) len: usize,
    pub(crate) outputs: usize,
    /// Number of frames after which the input fails.
    pub(crate) fails_after: u64,
    pub(crate) paced: bool,
    /// The next frame's due time and output.
    pub(crate) place: F,
}

impl<F: FnMut(u64) -> (Nanos, usize)> Numbered<F> {
    pub(crate) fn new(frames: u64, place: F) -> Numbered<F> {
        Numbered {
            frames,
            next: 0,
            len: 60,
            outputs: 1,
            fails_after: u64::MAX,
            paced: true,
            place,
        }
    }
}

/// Returns a feed of equidistant frames.
fn even(gap: Nanos, frames: u64) -> Numbered<impl FnMut(u64) -> (Nanos, usize)> {
    Numbered::new(frames, move |number| (gap.saturating_mul(number), 0))
}

impl<F: FnMut(u64) -> (Nanos, usize) + Send> Feed for Numbered<F> {
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut received = ReceiveResult::default();
        while received.frames < max && self.next < self.frames {
            if self.next == self.fails_after {
                return Err(PortError::Malformed {
                    path: "numbered".into(),
                    offset: 7,
                    reason: "it was made to fail".into(),
                });
            }
            let mut bytes = vec![0; self.len];
            bytes[..8].copy_from_slice(&self.next.to_le_bytes());
            let (due, output) = (self.place)(self.next);
            take(FeedFrame {
                bytes: &bytes,
                wire_len: self.len as u32,
                due,
                output,
            });
            self.next += 1;
            received.frames += 1;
        }
        received.end = self.next == self.frames;
        Ok(received)
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn is_paced(&self) -> bool {
        self.paced
    }

    fn frame_max(&self) -> usize {
        self.len
    }

    fn status(&self) -> FeedStatus {
        FeedStatus {
            name: "numbered".into(),
            fraction: Some(self.next as f64 / self.frames as f64),
            counts: vec![("made", self.next)],
            notes: Vec::new(),
        }
    }
}

pub(crate) fn output(tx: AnyTx, line: &str) -> ReplayOutput {
    ReplayOutput {
        port: Port::with_halves("mem", AnyRx::Silent(SilentRx), tx),
        link: LinkSetup::new("out", link(line)),
        sent: None,
        cells: None,
    }
}

fn cable() -> (AnyTx, PipeRx) {
    let (tx, rx) = pipe(Bytes(64 << 20)).expect("memory");
    (AnyTx::Pipe(Box::new(tx)), rx)
}

/// Returns the numbers of the received frames.
fn numbers(rx: &mut PipeRx) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let received = rx.receive(Nanos::ZERO, 64, &mut |frame| {
            numbers.push(u64::from_le_bytes(frame.bytes[..8].try_into().unwrap()));
        });
        if received.unwrap().frames == 0 {
            return numbers;
        }
    }
}

fn try_replay(
    feed: impl Feed + 'static,
    outputs: Vec<ReplayOutput>,
    config: ReplayConfig,
) -> Result<RunningNetwork, StartError> {
    let quiet = RunConfig {
        realtime: false,
        grace: Nanos::ZERO,
        ..RunConfig::default()
    };
    let plan = NetworkPlan::replay(Box::new(feed), outputs, config);
    start(plan, quiet, None)
}

/// Replays to the end.
fn replay(feed: impl Feed + 'static, outputs: Vec<ReplayOutput>) -> RunReport {
    replay_within(Duration::from_secs(20), feed, outputs)
}

/// Replays to the end, which is reached within `limit`.
pub(crate) fn replay_within(
    limit: Duration,
    feed: impl Feed + 'static,
    outputs: Vec<ReplayOutput>,
) -> RunReport {
    let running = try_replay(feed, outputs, ReplayConfig::default()).expect("it starts");
    assert!(running.wait(limit), "it ends");
    running.stop()
}

#[test]
fn every_frame_leaves_in_order_and_none_before_its_time() {
    let (tx, mut rx) = cable();
    let feed = even(Nanos::from_micros(200), 1_000);
    let report = replay(feed, vec![output(tx, "")]);
    assert_eq!(report.error, None);
    assert_eq!(numbers(&mut rx), (0..1_000).collect::<Vec<u64>>());
    let link = &report.links[0];
    let traffic = &link.traffic;
    assert_eq!((traffic.packets_in, traffic.packets_out), (1_000, 1_000));
    assert_eq!(link.in_flight, 0);
    assert!(report.duration_s >= 0.1998, "{}", report.duration_s);
    assert_eq!(report.inputs[0].counts["made"], 1_000);
    assert_eq!(report.inputs[0].fraction, Some(1.0));
    let departures = link.departures.as_ref().expect("watched");
    assert!(departures.drift_ppm.is_some());
}

#[test]
fn a_link_on_the_way_is_offered_frames_as_of_their_times() {
    let (tx, mut rx) = cable();
    // 60 bytes per 100 us are twice the link's rate.
    let feed = even(Nanos::from_micros(100), 400);
    let outputs = vec![output(tx, "rate=2400kbit queue=10p delay=5ms")];
    let report = replay(feed, outputs);
    let link = &report.links[0];
    let dropped = link.drops["queue_full"];
    assert_eq!(link.traffic.packets_out + dropped, 400);
    // Half of the frames are dropped, except those that fit in the queue.
    assert!((190..=200).contains(&dropped), "{dropped}");
    assert_eq!(numbers(&mut rx).len() as u64, link.traffic.packets_out);
}

#[test]
fn what_was_read_before_a_fault_is_sent_once() {
    let (tx, mut rx) = cable();
    let feed = Numbered {
        fails_after: 700,
        ..even(Nanos::from_micros(10), 1_000)
    };
    let report = replay(feed, vec![output(tx, "")]);
    let error = report.error.expect("a reason");
    assert!(error.contains("made to fail"), "{error}");
    assert_eq!(numbers(&mut rx), (0..700).collect::<Vec<u64>>());
}

#[test]
fn memory_stays_within_what_is_read_ahead() {
    let feed = Numbered {
        len: 1_500,
        paced: false,
        ..even(Nanos::ZERO, 2_000_000)
    };
    let sink = AnyTx::Discard(DiscardTx::default());
    let outputs = vec![output(sink, "")];
    let report = replay_within(Duration::from_secs(60), feed, outputs);
    let link = &report.links[0];
    assert_eq!(link.traffic.packets_out, 2_000_000);
    let memory_max = link.memory.memory_max;
    assert!(memory_max < 4 << 20, "{memory_max}");
    assert_eq!(link.artifacts.values().sum::<u64>(), 0);
    // Frames without times have no departure report.
    assert!(link.departures.is_none());
}

#[test]
fn a_slow_trace_is_not_read_further_ahead_than_asked() {
    let (tx, _rx) = cable();
    let feed = Numbered {
        len: 1_500,
        ..even(Nanos::from_secs(1), 1_000_000)
    };
    let config = ReplayConfig {
        read_ahead: Bytes(1 << 20),
        ..ReplayConfig::default()
    };
    let replay = try_replay(feed, vec![output(tx, "")], config).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let report = replay.stop();
    let link = &report.links[0];
    let (out, memory_max) = (link.traffic.packets_out, link.memory.memory_max);
    assert!(out >= 1, "the first one is due at once");
    assert!(memory_max < 3 << 20, "{memory_max}");
    assert!(link.in_flight > 500, "{}", link.in_flight);
}

#[test]
fn a_start_may_be_asked_for() {
    let begins = Epoch::now().wall.saturating_add(Nanos::from_millis(400));
    let first = Arc::new(OnceLock::new());
    let noted = Arc::clone(&first);
    let tx = AnyTx::Own(Box::new(PushFn::new(move |_| {
        noted.get_or_init(|| Epoch::now().wall);
        PushResult::Taken
    })));
    let config = ReplayConfig {
        start: Start::At(begins),
        ..ReplayConfig::default()
    };
    let feed = even(Nanos::from_micros(10), 10);
    let replay = try_replay(feed, vec![output(tx, "")], config).unwrap();
    assert!(replay.wait(Duration::from_secs(20)));
    assert_eq!(replay.stop().links[0].traffic.packets_out, 10);
    // A pause while the two clocks are compared moves the start.
    let first = first.get().expect("a frame");
    let early = begins.saturating_sub(*first);
    assert!(early < Nanos::from_millis(200), "{early} early");
}

/// No live port accepts frames of this length, regardless of memory.
#[test]
fn a_frame_too_long_for_a_live_run_counts_as_refused() {
    let (tx, mut rx) = cable();
    let feed = Numbered {
        len: 131_100,
        ..even(Nanos::from_micros(10), 5)
    };
    let link = &replay(feed, vec![output(tx, "")]).links[0];
    let lost = ["refused", "memory", "too_long"].map(|kind| link.artifacts[kind]);
    assert_eq!((lost, numbers(&mut rx).len()), ([5, 0, 0], 0));
}

#[test]
fn a_port_for_each_output_is_needed() {
    let feed = even(Nanos::ZERO, 1);
    let refused = try_replay(feed, Vec::new(), ReplayConfig::default()).err();
    assert!(matches!(
        refused,
        Some(StartError::Outputs {
            needed: 1,
            given: 0
        })
    ));
}

#[test]
fn a_sending_thread_that_panics_ends_the_replay_with_a_word() {
    // The frames exceed the memory, so the reading thread never ends on its own.
    let gap = Nanos::from_micros(100);
    let place = move |number: u64| (gap.saturating_mul(number), number as usize % 2);
    let feed = Numbered {
        outputs: 2,
        ..Numbered::new(u64::MAX, place)
    };
    let (tx, rx) = cable();
    let mut pushed = 0;
    let panics = AnyTx::Own(Box::new(PushFn::new(move |_| {
        pushed += 1;
        assert!(pushed < 3, "the test's own panic");
        PushResult::Taken
    })));
    let outputs = vec![output(panics, ""), output(tx, "")];
    let error = replay(feed, outputs).error.expect("a reason");
    assert!(
        error.contains("panicked") && error.contains("the test's own panic"),
        "{error}"
    );
    drop(rx);
}
