//! Long idle periods cost no more CPU time than short ones.

use std::time::Duration;

use longwire_engine::models;

use crate::queues::late::texts;
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

/// CPU time limit. A year has two billion ticks of 15 ms; processing each one would take minutes.
const SOON: Duration = Duration::from_secs(20);

/// Returns this thread's CPU time in nanoseconds, the first number in schedstat (proc(5)), which is
/// independent of other programs.
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(first.expect("a number"))
}

/// Half a second of overload, then half a year of idling, twenty times.
#[test]
fn a_year_of_idling_costs_nothing() {
    for entry in models::QUEUE.entries {
        for text in texts(&entry.info) {
            let start = busy();
            let mut run = Run::new(link(10_000_000, &text, 1), 20 * 1_000);
            for number in 0..20 * 1_000 {
                let (burst, within) = (number as u64 / 1_000, number as u64 % 1_000);
                let packet = packet(number, burst * YEAR / 2 + within * 500_000);
                run.poll(packet.arrival);
                run.offer(&packet);
            }
            run.finish();
            let took = busy() - start;
            assert!(took < SOON, "{text}: {took:?}");
        }
    }
}

/// At 1 bit/s, a frame takes hours while other frames are queued.
#[test]
fn hours_of_waiting_cost_little() {
    for entry in models::QUEUE.entries {
        for text in texts(&entry.info) {
            let start = busy();
            let mut run = Run::new(link(1, &text, 1), 200);
            for number in 0..200 {
                let packet = packet(number, number as u64);
                run.poll(packet.arrival);
                run.offer(&packet);
            }
            run.finish();
            let took = busy() - start;
            assert!(took < SOON, "{text}: {took:?}");
        }
    }
}
