//! Streams of probes: one-way delay, its variation, and what is missing.

use std::collections::BTreeMap;

use longwire_engine::Nanos;
use longwire_packet::probe::Probe;

use super::jitter::Jitter;
use super::report::StreamReport;
use super::sequence::{Came, Sequence};
use super::spread::Distribution;
use super::timing::Against;

/// Streams that are distinguished, at most; each takes about half a megabyte.
const STREAMS_MAX: usize = 256;

/// A probe's time is believed if it lies so close to its arrival: other
/// payloads that pass for probes say any time of a century.
const PLAUSIBLE: Nanos = Nanos::from_secs(24 * 60 * 60);

/// Every stream of probes that came.
#[derive(Debug, Default)]
pub(super) struct Streams {
    by_number: BTreeMap<u32, Box<StreamAccount>>,
    stray: u64,
}

impl Streams {
    /// A probe came at `arrival`, since 1970.
    #[inline]
    pub(super) fn came(&mut self, probe: &Probe, arrival: Nanos) {
        let apart = probe.sent.as_nanos().abs_diff(arrival.as_nanos());
        if apart > PLAUSIBLE.as_nanos() {
            return;
        }
        let room = self.by_number.len() < STREAMS_MAX;
        match self.by_number.get_mut(&probe.stream) {
            Some(stream) => stream.came(probe, arrival),
            None if room => {
                let mut stream = Box::new(StreamAccount::new());
                stream.came(probe, arrival);
                self.by_number.insert(probe.stream, stream);
            }
            None => self.stray += 1,
        }
    }

    pub(super) fn report(&self) -> Vec<StreamReport> {
        let streams = self.by_number.iter();
        streams
            .map(|(number, stream)| stream.report(*number))
            .collect()
    }

    /// Probes of streams that there was no room for.
    pub(super) fn stray(&self) -> u64 {
        self.stray
    }
}

/// One stream.
#[derive(Debug)]
struct StreamAccount {
    packets: u64,
    sequence: Sequence,
    delay: Distribution,
    variation: Distribution,
    against: Against,
    jitter: Jitter,
}

impl StreamAccount {
    fn new() -> StreamAccount {
        StreamAccount {
            packets: 0,
            sequence: Sequence::new(),
            delay: Distribution::new(),
            variation: Distribution::new(),
            against: Against::new(),
            jitter: Jitter::default(),
        }
    }

    #[inline]
    fn came(&mut self, probe: &Probe, arrival: Nanos) {
        self.packets += 1;
        let came = self.sequence.came(probe.sequence, arrival);
        // A second copy says nothing new of the way, and one too old may be
        // a second copy.
        if matches!(came, Came::Duplicate | Came::BeyondWindow) {
            return;
        }
        let delay = arrival.as_nanos().wrapping_sub(probe.sent.as_nanos());
        let delay = delay.cast_signed();
        self.delay.record(delay);
        self.jitter.came(delay);
        if let Came::InOrder { next } = came
            && let Some(variation) = self.against.came(probe.sent, arrival, next)
        {
            self.variation.record(variation);
        }
    }

    fn report(&self, stream: u32) -> StreamReport {
        StreamReport {
            stream,
            packets: self.packets,
            sequence: self.sequence.report(),
            delay_us: self.delay.spread(1e3),
            delay_variation_us: self.variation.spread(1e3),
            jitter_us: self.jitter.now_us(),
            jitter_max_us: self.jitter.max_us(),
            timing: self.against.report(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::random::Stream;

    /// Some day in 2023.
    const START: u64 = 1_700_000_000_000_000_000;

    fn probe(stream: u32, sequence: u64, sent: u64) -> Probe {
        Probe {
            stream,
            sequence,
            sent: Nanos::from_nanos(START + sent),
        }
    }

    #[test]
    fn delay_and_its_variation_are_those_of_the_packets() {
        let mut chance = Stream::of_seed(3);
        let mut streams = Streams::default();
        let (mut delays, mut jitter) = (Vec::new(), 0.0_f64);
        for number in 0..5_000u64 {
            let sent = number * 100_000;
            let delay = 20_000 + chance.up_to(30_000);
            let arrival = Nanos::from_nanos(START + sent + delay);
            streams.came(&probe(7, number, sent), arrival);
            if let Some(last) = delays.last() {
                let apart = (delay as f64 - *last as f64).abs();
                jitter += (apart - jitter) / 16.0;
            }
            delays.push(delay);
        }
        let report = streams.report()[0];
        assert_eq!((report.stream, report.packets), (7, 5_000));
        assert_eq!(report.sequence.lost, 0);
        let (least, most) = (delays.iter().min(), delays.iter().max());
        assert_eq!(
            report.delay_us.min,
            least.map_or(0.0, |ns| *ns as f64 / 1e3)
        );
        assert_eq!(report.delay_us.max, most.map_or(0.0, |ns| *ns as f64 / 1e3));
        let apart = |pair: &[u64]| pair[1] as f64 - pair[0] as f64;
        let variation = delays.windows(2).map(apart);
        let greatest = variation.fold(0.0, f64::max);
        assert_eq!(report.delay_variation_us.max, greatest / 1e3);
        assert_eq!(report.delay_variation_us.count, 4_999);
        // Whole numbers lose less than a nanosecond.
        assert!(
            (report.jitter_us - jitter / 1e3).abs() < 0.001,
            "{report:?}"
        );
        assert!(report.jitter_max_us >= report.jitter_us);
    }

    #[test]
    fn late_and_double_probes_disturb_no_gap() {
        let mut streams = Streams::default();
        let came = [0u64, 1, 2, 4, 3, 3, 5, 6];
        for (place, number) in came.into_iter().enumerate() {
            let arrival = Nanos::from_nanos(START + 1_000 + place as u64 * 100);
            streams.came(&probe(0, number, number * 100), arrival);
        }
        let report = streams.report()[0];
        assert_eq!(report.packets, 8);
        assert_eq!(report.sequence.duplicates, 1);
        assert_eq!(report.sequence.reordered, 1);
        assert_eq!(report.delay_us.count, 7);
        // 0-1, 1-2 and 5-6.
        assert_eq!(report.timing.gap_error_us.count, 3);
        assert_eq!(report.timing.gap_error_us.max, 0.0);
    }

    #[test]
    fn clocks_that_differ_give_negative_delays() {
        let mut streams = Streams::default();
        streams.came(&probe(1, 0, 5_000_000), Nanos::from_nanos(START));
        assert_eq!(streams.report()[0].delay_us.max, -5_000.0);
    }

    #[test]
    fn other_payloads_make_no_streams_and_streams_are_bounded() {
        let mut streams = Streams::default();
        streams.came(&probe(1, 0, 0), Nanos::from_secs(1_000_000_000));
        assert!(streams.report().is_empty());
        for stream in 0..2 * STREAMS_MAX as u32 {
            streams.came(&probe(stream, 0, 0), Nanos::from_nanos(START));
        }
        assert_eq!(streams.report().len(), STREAMS_MAX);
        assert_eq!(streams.stray(), STREAMS_MAX as u64);
    }
}
