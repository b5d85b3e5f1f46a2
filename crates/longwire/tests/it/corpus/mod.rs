//! The corpus: with a fixed seed and capture, every model's capture, log and report stay
//! byte-identical across versions. A digest that changes on purpose is mentioned in
//! CHANGELOG.md; regenerate the digests with
//!
//! ```sh
//! LONGWIRE_CORPUS=write cargo test -p longwire --test it corpus
//! ```

mod files;

use std::path::PathBuf;
use std::thread;

use crate::common::program::{Ran, command};
use crate::common::{count, list};
use longwire_testbed::support::Folder;

const CASES: &str = include_str!("cases.txt");

/// Report fields that depend on the machine or on file names.
const OF_THE_MACHINE: [&str; 5] = [
    "duration_s",
    "cpu_s",
    "core_wait_s",
    "wake_margin_us",
    "command",
];

/// Returns the 64-bit FNV-1a hash (draft-eastlake-fnv) of `bytes`.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Removes zeros, so that a new counter changes no digest, and machine-dependent values.
fn reduce(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(reduce);
            fields.retain(|name, value| {
                let zero = value.as_f64() == Some(0.0);
                let empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                !zero && !empty && !OF_THE_MACHINE.contains(&name.as_str())
            });
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(reduce),
        _ => {}
    }
}

/// Runs a case; returns its line of digests.
fn digest(dir: &Folder, line: &str) -> String {
    let (name, options) = line.split_once(' ').unwrap_or((line, ""));
    let (out, log) = (format!("{name}.pcap"), format!("{name}.csv"));
    let what = if options.ends_with(".toml") {
        format!("{options} --in left=in.pcap --in right=back.pcap --out right={out}")
    } else {
        format!("in.pcap {out} {options}")
    };
    let mut command = command(format!("longwire simulate --json --log {log} {what}"));
    let mut report = Ran::of(command.current_dir(dir.path())).well().json();
    let links = list(&report["links"]).iter();
    let carried: u64 = links.map(|link| count(&link["packets_out"])).sum();
    reduce(&mut report);
    let read = |file: &str| std::fs::read(dir.file(file)).expect("it was written");
    let (capture, log) = (hash(&read(&out)), hash(&read(&log)));
    let report = hash(report.to_string().as_bytes());
    format!("{name} {carried} {capture:016x} {log:016x} {report:016x}")
}

#[test]
fn every_model_keeps_its_output() {
    let dir = Folder::new();
    files::write_all(&dir);
    let cases: Vec<&str> = CASES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let half = cases.len().div_ceil(2);
    let mut text = String::from("# name, frames carried, hashes of capture, log and report\n");
    thread::scope(|scope| {
        let digest_all = |part: &[&str]| -> String {
            let lines = part.iter().map(|line| digest(&dir, line) + "\n");
            lines.collect()
        };
        let running: Vec<_> = cases
            .chunks(half)
            .map(|part| scope.spawn(move || digest_all(part)))
            .collect();
        text.extend(
            running
                .into_iter()
                .map(|part| part.join().expect("every case runs")),
        );
    });
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/digests.txt");
    if std::env::var_os("LONGWIRE_CORPUS").is_some() {
        std::fs::write(&path, &text).expect("it is written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let is_new = |line: &&str| !expected.lines().any(|old| old == *line);
    let changed: Vec<&str> = text.lines().filter(is_new).collect();
    let counts = [&text, &expected].map(|text| text.lines().count());
    assert!(changed.is_empty() && counts[0] == counts[1], "{changed:#?}");
}
