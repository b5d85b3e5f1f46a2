//! Probe streams: one-way delay, delay variation and loss.

use std::collections::BTreeMap;

use longwire_engine::Nanos;
use longwire_packet::probe::Probe;

use super::report::StreamReport;
use super::sequence::{Classification, Sequence};
use super::spread::Distribution;
use super::timing::{Jitter, ScheduleComparison};

/// Maximum number of streams; each takes about 0.5 MB.
const STREAMS_MAX: usize = 256;

/// Maximum difference between a probe's time and its arrival, to exclude payloads that only look
/// like probes.
const PLAUSIBLE: Nanos = Nanos::from_secs(24 * 60 * 60);

#[derive(Debug, Default)]
pub(super) struct Streams {
    by_number: BTreeMap<u32, Box<StreamAccount>>,
    /// Number of probes in streams beyond the maximum.
    pub stray: u64,
}

impl Streams {
    /// Records a probe; `arrival` is in wall-clock time.
    #[inline]
    pub(super) fn record(&mut self, probe: &Probe, arrival: Nanos) {
        if probe.sent.as_nanos().abs_diff(arrival.as_nanos()) > PLAUSIBLE.as_nanos() {
            return;
        }
        let room = self.by_number.len() < STREAMS_MAX;
        match self.by_number.get_mut(&probe.stream) {
            Some(stream) => stream.record(probe, arrival),
            None if room => {
                let stream = self.by_number.entry(probe.stream).or_default();
                stream.record(probe, arrival);
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
}

#[derive(Debug, Default)]
struct StreamAccount {
    packets: u64,
    sequence: Sequence,
    delay: Distribution,
    variation: Distribution,
    against: ScheduleComparison,
    jitter: Jitter,
}

impl StreamAccount {
    #[inline]
    fn record(&mut self, probe: &Probe, arrival: Nanos) {
        self.packets += 1;
        let class = self.sequence.record(probe.sequence, arrival);
        // A duplicate has no new delay, and a packet beyond the window may be a duplicate.
        if matches!(
            class,
            Classification::Duplicate | Classification::BeyondWindow
        ) {
            return;
        }
        let delay = arrival.as_nanos().wrapping_sub(probe.sent.as_nanos());
        let delay = delay.cast_signed();
        self.delay.record(delay);
        self.jitter.record(delay);
        if let Classification::InOrder { next } = class
            && let Some(variation) = self.against.record(probe.sent, arrival, next)
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

    /// A day in 2023.
    const START: u64 = 1_700_000_000_000_000_000;

    fn probe(stream: u32, sequence: u64, sent: u64) -> Probe {
        Probe {
            stream,
            sequence,
            sent: Nanos::from_nanos(START + sent),
        }
    }

    #[test]
    fn delay_variation_and_jitter_follow_their_definitions() {
        let mut chance = Stream::of_seed(3);
        let mut streams = Streams::default();
        let (mut delays, mut jitter) = (Vec::new(), 0.0_f64);
        for number in 0..5_000u64 {
            let sent = number * 100_000;
            let delay = 20_000 + chance.up_to(30_000);
            let arrival = Nanos::from_nanos(START + sent + delay);
            streams.record(&probe(7, number, sent), arrival);
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
        let [least, most] = [least, most].map(|ns| ns.map(|ns| *ns as f64 / 1e3));
        assert_eq!(Some(report.delay_us.min), least);
        assert_eq!(Some(report.delay_us.max), most);
        let apart = |pair: &[u64]| pair[1] as f64 - pair[0] as f64;
        let greatest = delays.windows(2).map(apart).fold(0.0, f64::max);
        assert_eq!(report.delay_variation_us.max, greatest / 1e3);
        assert_eq!(report.delay_variation_us.count, 4_999);
        // Rounding to integers loses less than 1 ns.
        let error = report.jitter_us - jitter / 1e3;
        assert!(error.abs() < 0.001, "{report:?}");
        assert!(report.jitter_max_us >= report.jitter_us);
    }

    #[test]
    fn reordered_and_duplicate_probes_make_no_gap() {
        let mut streams = Streams::default();
        let came = [0u64, 1, 2, 4, 3, 3, 5, 6];
        for (place, number) in came.into_iter().enumerate() {
            let arrival = Nanos::from_nanos(START + 1_000 + place as u64 * 100);
            streams.record(&probe(0, number, number * 100), arrival);
        }
        let report = streams.report()[0];
        assert_eq!(report.packets, 8);
        assert_eq!(report.sequence.duplicates, 1);
        assert_eq!(report.sequence.reordered, 1);
        assert_eq!(report.delay_us.count, 7);
        // Only the pairs 0-1, 1-2 and 5-6 have a gap.
        assert_eq!(report.timing.gap_error_us.count, 3);
        assert_eq!(report.timing.gap_error_us.max, 0.0);
    }

    #[test]
    fn clocks_that_differ_give_negative_delays() {
        let mut streams = Streams::default();
        streams.record(&probe(1, 0, 5_000_000), Nanos::from_nanos(START));
        assert_eq!(streams.report()[0].delay_us.max, -5_000.0);
    }

    #[test]
    fn only_probes_make_streams_and_their_number_is_bounded() {
        let mut streams = Streams::default();
        streams.record(&probe(1, 0, 0), Nanos::from_secs(1_000_000_000));
        assert!(streams.report().is_empty());
        for stream in 0..2 * STREAMS_MAX as u32 {
            streams.record(&probe(stream, 0, 0), Nanos::from_nanos(START));
        }
        assert_eq!(streams.report().len(), STREAMS_MAX);
        assert_eq!(streams.stray, STREAMS_MAX as u64);
    }
}
