//! Switches with a known table size and learning rate.

use std::collections::BTreeSet;

use crate::arrivals::Load;
use longwire_engine::{Nanos, PacketRate};

use super::{Emulated, emulated, rfc2544};
use crate::generator::MacAddress;
use crate::profile::ProfileError;
use crate::profile::rfc2889::{Rfc2889, Rfc2889Test};
use crate::profile::trial::{Length, Outcome, Tester, Trial};

/// A two-port switch. It does not forward a frame to the port at which it learned the frame's
/// destination.
struct Switch {
    /// Table size in addresses.
    room: usize,
    /// Maximum learning rate in frames/s; above it, the switch learns only every other frame.
    per_second: f64,
    learnt: BTreeSet<[u8; 6]>,
    /// Whether the switch forwards nothing.
    dead: bool,
}

impl Tester for Switch {
    type Error = ProfileError;

    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, ProfileError> {
        let outcomes = trials.iter().map(|trial| {
            let Length::Frames(frames) = trial.length else {
                panic!("addresses are counted, not timed");
            };
            let sizes = trial.sizes.as_ref().expect("sizes");
            let fast = Load::new(trial.rate, &**sizes).packets_per_sec() > self.per_second;
            let default = (MacAddress([2, 0, 0, 0, 0, 2]), 1);
            let (source, sources) = trial.headers.sources.expect("sources");
            let (destination, destinations) = trial.headers.destinations.unwrap_or(default);
            let mut outcome = Outcome {
                sent: frames,
                ..Outcome::default()
            };
            for n in 0..frames {
                let source = source.number(n % sources).0;
                if self.learnt.len() < self.room && !(fast && n % 2 == 1) {
                    self.learnt.insert(source);
                }
                let destination = destination.number(n % destinations).0;
                let known = self.learnt.contains(&destination);
                outcome.received += u64::from(!known && !self.dead);
            }
            outcome
        });
        Ok(outcomes.collect())
    }

    fn pause(&mut self, time: Nanos) -> Result<(), ProfileError> {
        assert_eq!(time, Nanos::from_secs(300));
        self.learnt.clear();
        Ok(())
    }
}

fn switch(room: usize, per_second: f64) -> Switch {
    Switch {
        room,
        per_second,
        learnt: BTreeSet::new(),
        dead: false,
    }
}

fn rfc2889(tests: &[Rfc2889Test]) -> Rfc2889 {
    let mut loads = rfc2544("1gbit", &[60], &[]);
    loads.resolution = 1_000;
    let rate: PacketRate = "1kpps".parse().expect("a rate");
    Rfc2889 {
        loads,
        tests: tests.to_vec(),
        addresses: 1_000,
        learning_rate: crate::arrivals::LoadRate::Packets(rate),
        aging: Nanos::from_secs(300),
    }
}

#[test]
fn the_capacity_and_rate_of_learning_are_found() {
    let test = rfc2889(&[Rfc2889Test::Caching, Rfc2889Test::Learning]);
    let report = test.run(&mut switch(700, 500_000.0)).expect("a report");
    let caching = report.caching.expect("caching");
    assert_eq!((caching.addresses, caching.limit.kind), (700, "device"));
    let learning = report.learning.expect("learning");
    assert_eq!((learning.addresses, learning.limit.kind), (700, "device"));
    // To within the resolution: 0.1 % of the line rate of 1,488,095 frames/s.
    let short = 500_000.0 - learning.frames_per_s;
    assert!((0.0..=1_500.0).contains(&short), "{learning:?}");
}

#[test]
fn a_large_table_reaches_the_limit_and_a_dead_switch_gives_no_result() {
    let test = rfc2889(&[Rfc2889Test::Caching, Rfc2889Test::Learning]);
    let mut large = switch(5_000, f64::INFINITY);
    let report = test.run(&mut large).expect("a report");
    let caching = report.caching.expect("caching");
    assert_eq!((caching.addresses, caching.limit.kind), (1_000, "none"));
    assert_eq!(caching.trials, 1);
    let learning = report.learning.expect("learning");
    assert_eq!((learning.share, learning.limit.kind), (1.0, "none"));
    let mut dead = switch(5_000, f64::INFINITY);
    dead.dead = true;
    let report = test.run(&mut dead).expect("a report");
    let caching = report.caching.expect("caching");
    assert_eq!((caching.addresses, caching.limit.kind), (0, "unknown"));
    let reason = caching.limit.reason.expect("a reason");
    assert!(reason.contains("forwards no frame"), "{reason}");
    assert!(report.learning.is_none());
}

/// A 300 Mbit/s link after a 1 Gbit/s line forwards 300 Mbit/s of any higher load, to within 1 %,
/// and all of any lower load.
#[test]
fn forwarding_rates_are_the_rate_of_the_link() {
    let mut device: Emulated = emulated("300mbit", "10p", "ethernet");
    let mut test = rfc2889(&[Rfc2889Test::Forwarding]);
    let report = test.run(&mut device).expect("a report");
    let found = &report.forwarding[0];
    assert_eq!(found.loads.len(), 10);
    for rate in [found.at_maximum_load_per_s, found.maximum_per_s] {
        let share = rate.expect("a rate") / found.whole_frames_per_s;
        assert!((share / 0.3 - 1.0).abs() < 0.01, "{found:?}");
    }
    assert!(report.passed && report.caching.is_none());
    test.loads.min_throughput = 310_000;
    assert!(!test.run(&mut device).expect("a report").passed);
}
