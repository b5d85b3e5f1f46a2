//! Models the delay line under loom: every interleaving of a writer and a reader over a line of a
//! few tiny segments. Run with `cargo test -p longwire-io --features loom --test loom_delay_line`.
//!
//! Under loom, a segment has 96 bytes, enough for two records of 32 bytes, and loom tracks every
//! granule of the arena as a cell. The model fails if a byte is read or reused without
//! synchronisation between the threads.
#![cfg(feature = "loom")]

use longwire_engine::{Bytes, Nanos};
use longwire_io::Offload;
use longwire_io::delay_line::{
    DelayLineConfig, DelayLineReader, DelayLineWriter, Note, PushError, delay_line,
};
use loom::thread;

const SEGMENT: u64 = 96;

fn line(segments: u64) -> (DelayLineWriter, DelayLineReader) {
    delay_line(&DelayLineConfig {
        budget: Bytes(segments * SEGMENT),
        huge_pages: false,
    })
    .expect("a small budget")
}

fn note(number: u64) -> Note {
    Note {
        release: Nanos::from_nanos(number),
        tag: 1,
        offload: Offload::NONE,
        part: None,
        wire_len: 0,
    }
}

/// Pushes frames `0..count`, publishes after each `burst`, and waits for space.
fn write(mut writer: DelayLineWriter, count: u64, burst: u64) {
    let mut number = 0;
    while number < count {
        match writer.push(&[number as u8; 16], note(number)) {
            Ok(()) => number += 1,
            Err(error) => {
                assert_eq!(error, PushError::BudgetExhausted);
                writer.publish();
                thread::yield_now();
                continue;
            }
        }
        if number % burst == 0 {
            writer.publish();
        }
    }
    writer.publish();
}

fn check_front(reader: &mut DelayLineReader, number: u64) -> bool {
    let Some(front) = reader.front() else {
        return false;
    };
    assert_eq!(front.release().as_nanos(), number);
    assert_eq!(reader.front_bytes(), [number as u8; 16]);
    true
}

/// Models a reader that returns memory to the writer only while it waits, and only if `settles`.
fn read_all(frames: u64, burst: u64, settles: bool) {
    loom::model(move || {
        let (writer, mut reader) = line(2);
        let sender = thread::spawn(move || write(writer, frames, burst));
        let mut number = 0;
        while number < frames {
            if check_front(&mut reader, number) {
                reader.advance();
                number += 1;
                continue;
            }
            if settles {
                reader.settle();
            }
            thread::yield_now();
        }
        sender.join().unwrap();
        assert!(reader.front().is_none());
    });
}

#[test]
fn frames_are_seen_whole_once_published() {
    read_all(3, 2, false);
}

/// Seven frames pass through two segments with two records each, so each segment is reused.
#[test]
fn segments_are_reused_only_after_they_were_read() {
    read_all(7, 1, true);
}

#[test]
fn a_held_frame_keeps_its_bytes_while_others_pass() {
    loom::model(|| {
        const FRAMES: u64 = 7;
        let (writer, mut reader) = line(3);
        let sender = thread::spawn(move || write(writer, FRAMES, 1));
        let mut held = None;
        let mut number = 0;
        while number < FRAMES {
            if !check_front(&mut reader, number) {
                reader.settle();
                thread::yield_now();
                continue;
            }
            match number {
                0 => held = reader.take(),
                _ => reader.advance(),
            }
            number += 1;
        }
        let held = held.expect("the first frame was taken");
        assert_eq!(reader.bytes(&held), [0; 16]);
        reader.free(held);
        reader.settle();
        sender.join().unwrap();
    });
}
