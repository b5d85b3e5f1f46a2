//! Reading a delay line beyond its front.
#![cfg(not(feature = "loom"))]

use longwire_engine::{Bytes, Nanos};
use longwire_io::Offload;
use longwire_io::delay_line::{DelayLineConfig, Note, delay_line};

const FRAMES: u64 = 400;

fn release(number: u64) -> Nanos {
    Nanos::from_nanos(number << 20)
}

/// Frames of all sizes, so that some of them begin a segment.
#[test]
fn releases_further_on_are_seen_without_taking_anything() {
    let config = DelayLineConfig {
        budget: Bytes(8 << 20),
        huge_pages: false,
    };
    let (mut writer, mut reader) = delay_line(&config).expect("a small budget is to be had");
    for number in 1..=FRAMES {
        let note = Note {
            release: release(number),
            tag: 0,
            offload: Offload::NONE,
            part: None,
            wire_len: 9_000,
        };
        let frame = vec![0; number as usize * 131 % 9_000];
        writer.push(&frame, note).expect("room for it");
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
