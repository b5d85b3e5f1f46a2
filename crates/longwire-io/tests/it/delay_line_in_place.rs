//! Frames decided in place, compared with a naive oracle.
#![cfg(not(feature = "loom"))]

use std::collections::VecDeque;

use longwire_engine::Nanos;
use longwire_io::delay_line::{DelayLineReader, DelayLineWriter, HeldFrame};
use proptest::prelude::*;

use crate::delay_line::{content, line, note};

#[derive(Clone, Debug)]
enum Step {
    /// Pushes a frame of this length without publishing it.
    Push(usize),
    Publish,
    /// Pushes and publishes a frame of this length, and marks it as decided or else as queued.
    Follow(usize, bool),
    QueueArrived,
    DecideArrived,
    DropArrived,
    TakeArrived,
    DecideQueued(bool),
    TakeQueued,
    Advance,
    TakeDecided,
    Free,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![4 => 0usize..200, 2 => 1_400usize..1_600, 1 => 30_000usize..70_000];
    let step = prop_oneof![
        6 => len().prop_map(Step::Push),
        3 => Just(Step::Publish),
        3 => (len(), any::<bool>()).prop_map(|(len, decided)| Step::Follow(len, decided)),
        3 => Just(Step::QueueArrived),
        2 => Just(Step::DecideArrived),
        1 => Just(Step::DropArrived),
        1 => Just(Step::TakeArrived),
        3 => any::<bool>().prop_map(Step::DecideQueued),
        1 => Just(Step::TakeQueued),
        4 => Just(Step::Advance),
        1 => Just(Step::TakeDecided),
        2 => Just(Step::Free),
    ];
    prop::collection::vec(step, 1..400)
}

/// Returns the release decided for the frame with this number.
fn release_of(number: u64) -> Nanos {
    Nanos::from_nanos(number + (1 << 40))
}

/// Numbers and lengths of the frames that are decided, queued, arrived, or unpublished.
#[derive(Default)]
struct Oracle {
    decided: VecDeque<(u64, usize)>,
    queued: VecDeque<(u64, usize)>,
    arrived: VecDeque<(u64, usize)>,
    pushed: VecDeque<(u64, usize)>,
    held: VecDeque<(HeldFrame, (u64, usize))>,
}

struct Line {
    writer: DelayLineWriter,
    reader: DelayLineReader,
    number: u64,
    oracle: Oracle,
}

impl Line {
    fn push(&mut self, len: usize, release: impl Fn(u64) -> Nanos) -> Option<(u64, usize)> {
        self.number += 1;
        let number = self.number;
        self.writer.make_room(len).ok()?;
        let note = note(release(number), len);
        let pushed = self.writer.push(&content(number, len), note);
        pushed.expect("there was room");
        Some((number, len))
    }

    fn publish(&mut self) {
        self.writer.publish();
        self.oracle.arrived.append(&mut self.oracle.pushed);
    }

    fn hold(&mut self, frame: Option<HeldFrame>, expected: Option<(u64, usize)>) {
        assert_eq!(frame.is_some(), expected.is_some());
        self.oracle.held.extend(frame.zip(expected));
    }

    fn step(&mut self, step: &Step) {
        let oracle = &mut self.oracle;
        match step {
            Step::Push(len) => {
                let pushed = self.push(*len, Nanos::from_nanos);
                self.oracle.pushed.extend(pushed);
            }
            Step::Publish => self.publish(),
            Step::Follow(len, decided) => self.follow(*len, *decided),
            Step::QueueArrived => {
                self.reader.queue_arrived();
                oracle.queued.extend(oracle.arrived.pop_front());
            }
            Step::DecideArrived => {
                if let Some((number, _)) = oracle.arrived.front()
                    && oracle.queued.is_empty()
                {
                    assert!(self.reader.arrived().is_some());
                    self.reader.decide_arrived(release_of(*number));
                    oracle.decided.extend(oracle.arrived.pop_front());
                }
            }
            Step::DropArrived => {
                self.reader.drop_arrived();
                oracle.arrived.pop_front();
            }
            Step::TakeArrived => self.take_arrived(),
            Step::DecideQueued(released) => {
                let next = oracle.queued.pop_front();
                let kept = next.filter(|_| *released);
                let release = kept.map(|(number, _)| release_of(number));
                let len = self.reader.decide_queued(release).map(|frame| frame.len);
                assert_eq!(len, next.map(|(_, len)| len as u32));
                oracle.decided.extend(kept);
            }
            Step::TakeQueued => {
                let expected = oracle.queued.pop_front();
                let frame = self.reader.take_queued();
                self.hold(frame, expected);
            }
            Step::Advance => {
                if oracle.decided.pop_front().is_some() {
                    assert!(self.reader.decided().is_some());
                    self.reader.advance();
                }
            }
            Step::TakeDecided => {
                if let Some(expected) = oracle.decided.pop_front() {
                    assert!(self.reader.decided().is_some());
                    let frame = self.reader.take();
                    self.hold(frame, Some(expected));
                }
            }
            Step::Free => {
                if let Some((frame, _)) = oracle.held.pop_front() {
                    self.reader.free(frame);
                    self.reader.settle();
                }
            }
        }
        self.check();
    }

    fn take_arrived(&mut self) {
        let expected = self.oracle.arrived.pop_front();
        let at = self.reader.arrived_at();
        let until = at.unwrap_or(Nanos::MAX);
        if until > Nanos::ZERO {
            let before = until.saturating_sub(Nanos::from_nanos(1));
            assert!(self.reader.take_arrived(before).is_none());
        }
        let taken = self.reader.take_arrived(until);
        let shown = taken.as_ref().map(|(_, meta)| (meta.arrival, meta.len));
        let len = expected.map(|(_, len)| len as u32);
        assert_eq!(shown, at.zip(len));
        self.hold(taken.map(|(frame, _)| frame), expected);
    }

    /// Pushes a frame as a writer on the reader's thread does.
    fn follow(&mut self, len: usize, decided: bool) {
        self.publish();
        if !self.oracle.arrived.is_empty() || (decided && !self.oracle.queued.is_empty()) {
            return;
        }
        assert!(self.reader.arrived().is_none());
        let release = if decided {
            release_of
        } else {
            Nanos::from_nanos
        };
        let Some(pushed) = self.push(len, release) else {
            return;
        };
        assert!(!self.reader.follow_writer(&self.writer, decided));
        self.writer.publish();
        assert!(self.reader.follow_writer(&self.writer, decided));
        let frames = if decided {
            &mut self.oracle.decided
        } else {
            &mut self.oracle.queued
        };
        frames.push_back(pushed);
    }

    fn check(&mut self) {
        let oracle = &self.oracle;
        let decided = self.reader.decided();
        let expected = oracle.decided.front().copied();
        let shown = expected.map(|(number, len)| (release_of(number), len as u32));
        assert_eq!(decided.map(|next| (next.release(), next.len())), shown);
        if let Some((number, len)) = expected {
            assert_eq!(self.reader.front_bytes(), content(number, len));
        }
        let arrived = self.reader.arrived();
        let expected = oracle.arrived.front().copied();
        let shown = expected.map(|(number, len)| (Nanos::from_nanos(number), len as u32));
        assert_eq!(arrived.map(|next| (next.release(), next.len())), shown);
        if let Some((number, len)) = expected {
            assert_eq!(self.reader.arrived_bytes(), content(number, len));
        }
        for (frame, (number, len)) in &oracle.held {
            assert_eq!(self.reader.bytes(frame), content(*number, *len));
        }
        let empty = [&oracle.decided, &oracle.queued, &oracle.arrived];
        let empty = empty.iter().all(|frames| frames.is_empty());
        assert_eq!(self.reader.is_empty(), empty);
    }
}

fn run(steps: &[Step]) {
    let (writer, reader) = line(6);
    let mut line = Line {
        writer,
        reader,
        number: 0,
        oracle: Oracle::default(),
    };
    for step in steps {
        line.step(step);
    }
}

/// The front follows the jump before the only queued frame, and the writer reuses the jump's
/// segment.
#[test]
fn a_queued_frame_survives_the_segment_before_it() {
    use Step::*;
    let mut steps: Vec<Step> = [0, 61_489, 49, 65, 65].map(Push).into();
    steps.push(Publish);
    steps.extend([1_473, 1, 67_681].map(Push));
    steps.extend([QueueArrived, DropArrived, QueueArrived, Advance]);
    steps.extend([DecideQueued(true), TakeDecided, QueueArrived, Publish]);
    steps.extend([DecideQueued(false), DecideQueued(false)]);
    steps.extend([TakeArrived, DecideArrived, Free, Push(30_000)]);
    steps.extend([DecideQueued(false), Advance, DropArrived, QueueArrived]);
    steps.extend([Free, Push(33_297), Push(30_009), DecideQueued(false)]);
    run(&steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn frames_are_decided_where_they_lie(steps in steps()) {
        run(&steps);
    }
}
