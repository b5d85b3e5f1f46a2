//! The fuzz targets over their seeds, and over seeds with bytes changed, on
//! any toolchain: a small part of what libFuzzer does, as a test.

use std::fs;
use std::path::Path;

// The fuzz crate itself needs a workspace apart, and so a build apart.
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use targets::{alter, capture, composition, control, feed, frame, options, topology, trace};

/// How many changed copies are tried of each seed.
const CHANGED: u64 = 300;

/// The same of what starts threads and writes files for each copy.
const CHANGED_FEEDS: u64 = 40;

/// The most bytes changed in a copy.
const CHANGES_MAX: u64 = 6;

#[test]
fn alter_seeds() {
    over_seeds("alter", CHANGED, alter::check);
}

#[test]
fn capture_seeds() {
    over_seeds("capture", CHANGED, capture::check);
}

#[test]
fn composition_seeds() {
    over_seeds("composition", CHANGED, composition::check);
}

#[test]
fn control_seeds() {
    over_seeds("control", CHANGED, control::check);
}

#[test]
fn feed_seeds() {
    over_seeds("feed", CHANGED_FEEDS, feed::check);
}

#[test]
fn frame_seeds() {
    over_seeds("frame", CHANGED, frame::check);
}

#[test]
fn options_seeds() {
    over_seeds("options", CHANGED, options::check);
}

#[test]
fn topology_seeds() {
    over_seeds("topology", CHANGED, topology::check);
}

#[test]
fn trace_seeds() {
    over_seeds("trace", CHANGED, trace::check);
}

fn over_seeds(target: &str, changed: u64, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let entries = fs::read_dir(&folder).expect("every target has seeds");
    let mut seeds: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    seeds.sort();
    assert!(seeds.len() > 1, "{target} has {} seeds", seeds.len());
    let mut random = Random(1);
    for path in seeds {
        let seed = fs::read(&path).expect("readable");
        check(&seed);
        for _ in 0..changed {
            check(&random.change(&seed));
        }
    }
}

/// SplitMix64: the same copies every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A copy with some bytes set, removed or doubled, or cut short.
    fn change(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.next() % CHANGES_MAX {
            let at = self.below(bytes.len());
            match self.next() % 8 {
                _ if bytes.is_empty() => bytes.push(self.next() as u8),
                0 => bytes.truncate(at),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[at]),
                3 => bytes[at] = 0xff,
                4 => bytes[at] = 0,
                5 => bytes[at] ^= 1 << self.below(8),
                _ => bytes[at] = self.next() as u8,
            }
        }
        bytes
    }
}
