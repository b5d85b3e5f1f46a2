//! The delay line compared with a naive oracle, and used across two threads.
#![cfg(not(feature = "loom"))]

use std::collections::VecDeque;

use longwire_engine::{Bytes, Nanos};
use longwire_io::Offload;
use longwire_io::delay_line::{
    DelayLineConfig, DelayLineReader, DelayLineWriter, Descriptor, HeldFrame, HugePages, Note,
    PushError, delay_line,
};
use longwire_io::port::offload::TrainPart;
use longwire_io::port::{Checksum, SegmentKind, Segments};
use proptest::prelude::*;

const SEGMENT: u64 = 128 << 10;

pub fn line(segments: u64) -> (DelayLineWriter, DelayLineReader) {
    delay_line(&DelayLineConfig {
        budget: Bytes(segments * SEGMENT),
        huge_pages: false,
    })
    .expect("a small budget")
}

/// Returns the metadata of a complete frame without offloads.
pub fn note(release: Nanos, len: usize) -> Note {
    Note {
        release,
        tag: 7,
        offload: Offload::NONE,
        part: None,
        wire_len: len as u32,
    }
}

/// Returns a frame's bytes, each different from the byte at the same position in the next frame.
pub fn content(number: u64, len: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(number);
        let word = state.to_le_bytes();
        bytes.extend_from_slice(&word[..word.len().min(len - bytes.len())]);
    }
    bytes
}

#[derive(Clone, Debug)]
enum Step {
    Push {
        len: usize,
        offload: Offload,
        lent: Option<u64>,
    },
    Publish,
    Advance,
    Take,
    /// Takes plain frames: at most `max`, due within `due` frames, of which `accepted` are consumed.
    TakePlain {
        max: usize,
        due: u64,
        accepted: usize,
    },
    /// Frees the held frame with this index.
    Free(prop::sample::Index),
    Settle,
}

fn offloads() -> impl Strategy<Value = Offload> {
    let checksum =
        (any::<u16>(), any::<u16>()).prop_map(|(start, offset)| Checksum { start, offset });
    let kind = prop_oneof![
        Just(SegmentKind::TcpV4),
        Just(SegmentKind::TcpV6),
        Just(SegmentKind::Udp)
    ];
    let segments =
        (kind, any::<[u16; 2]>(), any::<bool>()).prop_map(|(kind, lens, cwr_once)| Segments {
            kind,
            header_len: lens[0],
            payload_len: lens[1],
            cwr_once: cwr_once && kind != SegmentKind::Udp,
        });
    prop_oneof![
        3 => Just(Offload::NONE),
        1 => (prop::option::of(checksum), prop::option::of(segments))
            .prop_map(|(checksum, segments)| Offload { checksum, segments }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![
        4 => 0usize..200,
        4 => 1400usize..1600,
        2 => 20_000usize..70_000,
        1 => 130_900usize..131_100,
    ];
    let push = (len, offloads(), prop::option::weighted(0.2, any::<u64>()))
        .prop_map(|(len, offload, lent)| Step::Push { len, offload, lent });
    let take_plain = (0usize..40, 0u64..40, 0usize..40)
        .prop_map(|(max, due, accepted)| Step::TakePlain { max, due, accepted });
    let step = prop_oneof![
        3 => take_plain,
        8 => push,
        3 => Just(Step::Publish),
        3 => Just(Step::Advance),
        3 => Just(Step::Take),
        3 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 1..600)
}

/// A frame expected on the delay line.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    fields: Fields,
    bytes: Vec<u8>,
}

/// The fields of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fields {
    release: Nanos,
    tag: u32,
    len: u32,
    offload: Offload,
    part: Option<TrainPart>,
    lent: Option<u64>,
    wire_len: u32,
}

impl From<Descriptor> for Fields {
    fn from(descriptor: Descriptor) -> Fields {
        let fields = Fields {
            release: descriptor.release(),
            tag: descriptor.tag(),
            len: descriptor.len(),
            offload: descriptor.offload(),
            part: descriptor.part(),
            lent: descriptor.lent(),
            wire_len: descriptor.wire_len(),
        };
        let extra = (fields.offload, fields.part, fields.lent, fields.wire_len);
        let is_plain = extra == (Offload::NONE, None, None, fields.len);
        assert!(is_plain || !descriptor.is_plain(), "{fields:?}");
        fields
    }
}

struct Pair {
    writer: DelayLineWriter,
    reader: DelayLineReader,
    pushed: VecDeque<Expected>,
    published: VecDeque<Expected>,
    held: Vec<(HeldFrame, Expected)>,
    number: u64,
}

impl Pair {
    fn new(segments: u64) -> Pair {
        let (writer, reader) = line(segments);
        Pair {
            writer,
            reader,
            pushed: VecDeque::new(),
            published: VecDeque::new(),
            held: Vec::new(),
            number: 0,
        }
    }

    fn push(&mut self, len: usize, offload: Offload, lent: Option<u64>) {
        self.number += 1;
        let bytes = content(self.number, lent.map_or(len, |_| 0));
        // Some frames with segments are parts of a train.
        let in_train = lent.is_none() && self.number.is_multiple_of(2);
        let part = offload
            .segments
            .filter(|_| in_train)
            .map(|segments| TrainPart {
                train: (1 << 48) - self.number,
                index: len as u16,
                segments,
            });
        let frames = |segments: &Segments| segments.wire_frames(len).len();
        let own = offload
            .segments
            .filter(|own| part.is_none() || frames(own) > 1);
        let offload = Offload {
            segments: own,
            ..offload
        };
        let note = Note {
            tag: self.number as u32,
            offload,
            part,
            // Some frames are truncated.
            wire_len: len as u32 + self.number as u32 % 3 * 70_000,
            ..note(Nanos::from_nanos(self.number << 20), len)
        };
        let pushed = match lent {
            Some(place) => self.writer.push_lent(place, len as u32, note),
            None => self.writer.push(&bytes, note),
        };
        let fields = Fields {
            release: note.release,
            tag: note.tag,
            len: len as u32,
            offload,
            part,
            lent,
            wire_len: match (offload, part) {
                (Offload::NONE, None) => note.wire_len,
                _ => len as u32,
            },
        };
        match pushed {
            Ok(()) => self.pushed.push_back(Expected { fields, bytes }),
            // No further segment was free; freed but unpublished segments count as used.
            Err(PushError::BudgetExhausted) => {
                assert_eq!(self.writer.memory_in_use(), self.writer.memory_max());
            }
            Err(PushError::TooLong) => {
                assert!(lent.is_none() && len > self.writer.frame_max());
            }
        }
    }

    /// Checks the front frame, and returns whether there is one.
    fn check_front(&mut self) -> bool {
        assert_eq!(self.reader.published(), self.published.len() as u64);
        let front = self.reader.front();
        let expected = self.published.front();
        let fields = front.map(Fields::from);
        assert_eq!(fields, expected.map(|expected| expected.fields));
        let bytes = expected.map_or(&[][..], |expected| &expected.bytes);
        assert_eq!(self.reader.front_bytes(), bytes);
        front.is_some()
    }

    /// Takes plain frames from the front. Fewer than expected may be taken at the end of a segment,
    /// but the front frame has followed a jump.
    fn take_plain(&mut self, max: usize, due: u64, accepted: usize) {
        self.check_front();
        let first = self.published.front().map(|front| front.fields.release);
        let due_by = Nanos::from_nanos(first.unwrap_or_default().as_nanos() + (due << 20));
        let is_due = |frame: &Expected| {
            let fields = &frame.fields;
            let extra = (fields.offload, fields.part, fields.lent, fields.wire_len);
            extra == (Offload::NONE, None, None, fields.len) && fields.release <= due_by
        };
        let expected = self.published.iter().take_while(|frame| is_due(frame));
        let expected: Vec<_> = expected.take(max.min(accepted)).cloned().collect();
        let mut seen = Vec::new();
        let taken = self.reader.take_plain(due_by, max, |release, bytes| {
            let is_accepted = seen.len() < accepted;
            if is_accepted {
                seen.push((release, bytes.to_vec()));
            }
            is_accepted
        });
        assert_eq!(taken, seen.len() as u64);
        assert!(!seen.is_empty() || expected.is_empty());
        let expected = expected
            .into_iter()
            .map(|frame| (frame.fields.release, frame.bytes));
        assert_eq!(seen, expected.take(seen.len()).collect::<Vec<_>>());
        self.published.drain(..seen.len());
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::TakePlain { max, due, accepted } => self.take_plain(max, due, accepted),
            Step::Push { len, offload, lent } => self.push(len, offload, lent),
            Step::Publish => {
                self.writer.publish();
                self.published.append(&mut self.pushed);
            }
            Step::Advance => {
                self.check_front();
                self.reader.advance();
                self.published.pop_front();
            }
            Step::Take => {
                self.check_front();
                let taken = self.reader.take();
                assert_eq!(taken.is_some(), !self.published.is_empty());
                self.held.extend(taken.zip(self.published.pop_front()));
            }
            Step::Free(_) if self.held.is_empty() => {}
            Step::Free(index) => {
                let (mut frame, expected) = self.held.swap_remove(index.index(self.held.len()));
                let fields = Fields::from(self.reader.descriptor(&frame));
                assert_eq!(fields, expected.fields);
                assert_eq!(self.reader.bytes(&frame), expected.bytes);
                // A frame that may have been edited no longer belongs to a train.
                assert_eq!(self.reader.bytes_mut(&mut frame), expected.bytes);
                let changed = Fields {
                    part: None,
                    ..expected.fields
                };
                assert_eq!(Fields::from(self.reader.descriptor(&frame)), changed);
                self.reader.free(frame);
            }
            Step::Settle => self.reader.settle(),
        }
        let in_use = self.writer.memory_in_use();
        assert!((SEGMENT..=self.writer.memory_max()).contains(&in_use));
    }

    /// Empties the line. Memory in use must shrink to one segment.
    fn drain(&mut self) {
        for (frame, expected) in self.held.drain(..) {
            assert_eq!(self.reader.bytes(&frame), expected.bytes);
            self.reader.free(frame);
        }
        self.step(Step::Publish);
        while self.check_front() {
            self.step(Step::Advance);
        }
        self.reader.settle();
        assert_eq!(self.writer.memory_in_use(), SEGMENT);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn equals_a_naive_queue(segments in 2u64..20, steps in steps()) {
        let mut pair = Pair::new(segments);
        for step in steps {
            pair.step(step);
        }
        pair.drain();
        // All segments are free again, so the line can be refilled, except for the used part of the
        // current segment.
        for _ in 0..segments {
            pair.push(100_000, Offload::NONE, None);
        }
        prop_assert!(pair.pushed.len() as u64 >= segments - 1);
        pair.drain();
    }
}

#[test]
fn memory_in_use_follows_the_backlog_and_a_held_frame_pins_its_own_segment_only() {
    for (segments, frames, is_held) in [(8192, 100_000, false), (8, 10_000, true)] {
        let mut pair = Pair::new(segments);
        if is_held {
            pair.push(1000, Offload::NONE, None);
            pair.step(Step::Publish);
            pair.step(Step::Take);
        }
        for _ in 0..frames {
            pair.push(1500, Offload::NONE, None);
            pair.step(Step::Publish);
            pair.step(Step::Advance);
            pair.step(Step::Settle);
            assert!(pair.writer.memory_in_use() <= 3 * SEGMENT);
        }
        assert_eq!(pair.number, frames + u64::from(is_held));
        pair.drain();
    }
}

/// Above 16 MB in use, frames of at least 512 bytes bypass the cache, except for cache lines shared
/// with neighbours.
#[test]
fn a_backlog_larger_than_the_cache_keeps_every_byte() {
    let mut pair = Pair::new(512);
    for number in 0..60_000 {
        pair.push(500 + number % 700, Offload::NONE, None);
    }
    assert!(pair.writer.memory_in_use() > 48 << 20);
    pair.drain();
}

#[test]
fn budgets_out_of_range_are_refused() {
    for budget in [0, 2 * SEGMENT - 1, u64::MAX] {
        let config = DelayLineConfig {
            budget: Bytes(budget),
            huge_pages: false,
        };
        assert!(delay_line(&config).is_err(), "{budget}");
    }
}

#[test]
fn huge_pages_are_used_or_their_lack_is_reported() {
    let config = DelayLineConfig {
        budget: Bytes(64 << 20),
        huge_pages: true,
    };
    let (writer, _) = delay_line(&config).expect("a small budget");
    assert!(writer.huge_pages().to_string().contains("pages"));
    assert_ne!(*writer.huge_pages(), HugePages::NotAsked);
}

#[test]
#[should_panic(expected = "another delay line")]
fn a_frame_cannot_be_freed_into_another_line() {
    let (mut first, mut second) = (Pair::new(2), Pair::new(2));
    first.push(60, Offload::NONE, None);
    first.step(Step::Publish);
    if let Some(frame) = first.reader.take() {
        second.reader.free(frame);
    }
}

/// Frames of all sizes, so that some begin a segment.
#[test]
fn releases_further_on_are_seen_without_taking_anything() {
    const FRAMES: u64 = 400;
    let release = |number: u64| Nanos::from_nanos(number << 20);
    let (mut writer, mut reader) = line(64);
    for number in 1..=FRAMES {
        let frame = vec![0; number as usize * 131 % 9_000];
        let pushed = writer.push(&frame, note(release(number), 9_000));
        pushed.expect("room for it");
    }
    assert_eq!(reader.release_beyond(Nanos::ZERO, 1_000), None);
    writer.publish();
    for front in 1..=FRAMES {
        for beyond in [0, front - 1, front, front + 7, front + 150, 399, 400] {
            let next = (beyond + 1).max(front);
            let expected = (next <= FRAMES).then(|| release(next));
            assert_eq!(reader.release_beyond(release(beyond), 1_000), expected);
            let near = expected.filter(|_| next < front + 20);
            assert_eq!(reader.release_beyond(release(beyond), 20), near);
        }
        reader.advance();
    }
}

/// Frames of many sizes cross threads with a budget far too small for all of them, while some are
/// held. Every byte is compared.
#[test]
fn every_byte_crosses_threads() {
    const FRAMES: u64 = 300_000;
    let (mut writer, mut reader) = line(6);
    let sender = std::thread::spawn(move || {
        let mut number = 0;
        while number < FRAMES {
            let bytes = content(number, length_of(number));
            match writer.push(&bytes, note(Nanos::from_nanos(number), bytes.len())) {
                Ok(()) => number += 1,
                Err(PushError::BudgetExhausted) => std::thread::yield_now(),
                Err(PushError::TooLong) => unreachable!("content is short"),
            }
            if number % 17 == 0 {
                writer.publish();
            }
        }
        writer.publish();
    });
    let mut held: VecDeque<HeldFrame> = VecDeque::new();
    let mut number = 0;
    while number < FRAMES {
        let Some(front) = reader.front() else {
            reader.settle();
            while let Some(frame) = held.pop_front() {
                check(&reader, &frame);
                reader.free(frame);
            }
            std::thread::yield_now();
            continue;
        };
        assert_eq!(front.release().as_nanos(), number);
        assert_eq!(reader.front_bytes(), content(number, length_of(number)));
        if number % 5 == 0 {
            held.extend(reader.take());
        } else {
            reader.advance();
        }
        number += 1;
        reader.settle();
    }
    sender.join().expect("the sender is done");
}

fn length_of(number: u64) -> usize {
    match number % 1000 {
        0 => 65_000,
        spread => (number.wrapping_mul(2_654_435_761) >> 7) as usize % (40 + spread as usize),
    }
}

fn check(reader: &DelayLineReader, frame: &HeldFrame) {
    let number = reader.descriptor(frame).release().as_nanos();
    assert_eq!(reader.bytes(frame), content(number, length_of(number)));
}
