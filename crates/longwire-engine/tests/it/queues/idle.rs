//! Long idle periods cost no more CPU time than short ones.

use std::time::Duration;

use longwire_engine::models;
use longwire_engine::spec::{ModelInfo, Param, Unit};

use crate::queues::link::{Run, link};
use crate::queues::traffic::Packet;

/// A year, in nanoseconds.
const YEAR: u64 = 31_536_000_000_000_000;

fn packet(number: usize, arrival: u64) -> Packet {
    Packet {
        ecn: (number % 4) as u8,
        flow: (number % 5) as u8,
        ..Packet::plain(number, arrival)
    }
}

/// Returns the queue's texts: with each value of each choice, and with examples for parameters
/// without a default.
pub fn texts(info: &ModelInfo) -> Vec<String> {
    let pair = |param: &Param, value: &str| format!("{}={value}", param.name);
    let with = |pairs: &[String]| format!("{}:{}", info.name, pairs.join(","));
    let optional = info.params.iter().filter(|param| param.default.is_none());
    let optional: Vec<String> = optional
        .map(|param| pair(param, param.unit.example()))
        .collect();
    let mut texts = vec![with(&optional)];
    for param in info.params {
        if let Unit::Choice(words) = param.unit {
            let chosen = |word: &&str| [&optional[..], &[pair(param, word)]].concat();
            texts.extend(words.iter().map(|word| with(&chosen(word))));
        }
    }
    if info.params.iter().any(|param| param.name == "classes") {
        texts.push(with(&["classes=pcp".to_owned()]));
    }
    texts
}

/// CPU time limit. A year has two billion ticks of 15 ms; processing each one would take minutes.
const SOON: Duration = Duration::from_secs(20);

/// Returns this thread's CPU time, the first number in schedstat (proc(5)), which does not depend
/// on other programs.
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(first.expect("a number"))
}

/// Half a second of overload, then half a year of idling, twenty times; and at 1 bit/s, where a
/// frame takes hours while other frames are queued.
#[test]
fn idling_and_waiting_cost_little() {
    let bursts = (0..20_000).map(|nth| nth / 1_000 * YEAR / 2 + nth % 1_000 * 500_000);
    let runs: [(u64, Vec<u64>); 2] = [(10_000_000, bursts.collect()), (1, (0..200).collect())];
    for entry in models::QUEUE.entries {
        for text in texts(&entry.info) {
            for (rate, arrivals) in &runs {
                let start = busy();
                let mut run = Run::new(link(*rate, &text, 1));
                for (number, arrival) in arrivals.iter().enumerate() {
                    run.poll(*arrival);
                    run.offer(&packet(number, *arrival));
                }
                run.finish();
                let took = busy() - start;
                assert!(took < SOON, "{text} at {rate} bit/s: {took:?}");
            }
        }
    }
}
