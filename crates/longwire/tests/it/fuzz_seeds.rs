//! Runs the fuzz targets on their seeds and on mutated seeds, with any toolchain: a fraction of
//! libFuzzer's work, as a test.

use std::fs;
use std::path::Path;

use longwire_testbed::support::Draws;

// The fuzz crate has a separate workspace, so only its targets are included.
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use targets::{alter, capture, composition, control, feed, frame, options, topology, trace};

/// Mutated copies per seed.
const CHANGED: u64 = 300;

/// Mutated copies per seed, for targets that start threads and write files.
const CHANGED_FEEDS: u64 = 40;

/// Maximum bytes changed per copy.
const CHANGES_MAX: u64 = 6;

/// A target: name, mutated copies per seed, and check function.
type Target = (&'static str, u64, fn(&[u8]));

const TARGETS: [Target; 9] = [
    ("alter", CHANGED, alter::check),
    ("capture", CHANGED, capture::check),
    ("composition", CHANGED, composition::check),
    ("control", CHANGED, control::check),
    ("feed", CHANGED_FEEDS, feed::check),
    ("frame", CHANGED, frame::check),
    ("options", CHANGED, options::check),
    ("topology", CHANGED, topology::check),
    ("trace", CHANGED, trace::check),
];

#[test]
fn every_target_passes_its_seeds() {
    std::thread::scope(|scope| {
        for (target, changed, check) in TARGETS {
            let run = move || over_seeds(target, changed, check);
            let named = std::thread::Builder::new().name(target.to_owned());
            named.spawn_scoped(scope, run).expect("a thread");
        }
    });
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
    let mut draws = Draws(1);
    for path in seeds {
        let seed = fs::read(&path).expect("readable");
        check(&seed);
        for _ in 0..changed {
            check(&change(&mut draws, &seed));
        }
    }
}

/// Returns a copy with some bytes set, removed, duplicated or truncated.
fn change(draws: &mut Draws, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=draws.below(CHANGES_MAX) {
        let at = draws.below(bytes.len().max(1) as u64) as usize;
        match draws.below(8) {
            _ if bytes.is_empty() => bytes.push(draws.any() as u8),
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, bytes[at]),
            3 => bytes[at] = 0xff,
            4 => bytes[at] = 0,
            5 => bytes[at] ^= 1 << draws.below(8),
            _ => bytes[at] = draws.any() as u8,
        }
    }
    bytes
}
