//! Compares arrivals with frames sent by the same process.

use longwire_engine::Nanos;
use longwire_runtime::sent::{SentFrames, fingerprint};

use super::matching::{Expected, Matching};
use super::report::{DelayReport, TraceReport};
use super::spread::Distribution;
use super::timing::Jitter;

/// Matches arrivals with sent frames.
///
/// The sender logs a frame before sending it. Arrivals are buffered, and looked up only after
/// reading the log, so that the log already contains their frames.
pub(super) struct LiveComparison {
    sent: SentFrames,
    /// Digest, length and time of the arrivals that have not been looked up.
    arrivals: Vec<(u64, u32, Nanos)>,
    matching: Matching,
    delay: Distribution,
    jitter: Jitter,
}

impl LiveComparison {
    pub(super) fn new(sent: SentFrames) -> LiveComparison {
        LiveComparison {
            sent,
            arrivals: Vec::new(),
            matching: Matching::new(),
            delay: Distribution::default(),
            jitter: Jitter::default(),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, bytes: &[u8], arrival: Nanos) {
        let (digest, wire_len) = fingerprint(bytes, self.sent.ignored());
        self.arrivals.push((digest, wire_len, arrival));
    }

    /// Looks up buffered arrivals. Must be called after each burst and at the end.
    pub(super) fn settle(&mut self) {
        let matching = &mut self.matching;
        self.sent.drain(|frame, left| {
            let late = left.saturating_sub(frame.release).as_nanos();
            matching.expect_at_once(Expected {
                digest: frame.digest,
                due: frame.release,
                wire_len: frame.wire_len,
                late: u32::try_from(late).unwrap_or(u32::MAX),
            });
        });
        for (digest, wire_len, arrival) in self.arrivals.drain(..) {
            if let Some(sent) = matching.match_frame(digest, wire_len, arrival) {
                let left = sent.due.as_nanos().wrapping_add(u64::from(sent.late));
                let delay = arrival.as_nanos().wrapping_sub(left).cast_signed();
                self.delay.record(delay);
                self.jitter.record(delay);
            }
        }
    }

    pub(super) fn report(&self) -> TraceReport {
        TraceReport {
            trace: format!("frames sent to {}", self.sent.name()),
            ..self.matching.report()
        }
    }

    pub(super) fn delay(&self) -> DelayReport {
        DelayReport {
            one_way_us: self.delay.spread(1e3),
            jitter_us: self.jitter.now_us(),
            jitter_max_us: self.jitter.max_us(),
        }
    }
}

#[cfg(test)]
mod tests {
    use longwire_runtime::sent::{SentLog, sent_log};

    use super::*;

    /// Returns frame `number` of a sender with a gap of 70 us.
    fn frame(number: u64) -> Vec<u8> {
        let mut frame = vec![0; 64];
        frame[20..28].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn due(number: u64) -> Nanos {
        Nanos::from_micros(1_000 + 70 * number)
    }

    /// Sends a frame, 2 us late.
    fn send(log: &mut SentLog, number: u64) {
        log.note(&frame(number), Some(due(number)));
        log.send(due(number).saturating_add(Nanos::from_micros(2)));
    }

    /// Returns the arrival time of a frame with a delay of 10 us.
    fn arrival(number: u64) -> Nanos {
        due(number).saturating_add(Nanos::from_micros(12))
    }

    #[test]
    fn loss_and_delay_are_measured_from_the_handover() {
        let (mut log, sent) = sent_log("near", "mac".parse().expect("a field"));
        let mut live = LiveComparison::new(sent);
        for number in 0..100 {
            send(&mut log, number);
            let mut bytes = frame(number);
            // The MAC address is ignored. Frame 50 is changed, 60 duplicated and 70 lost; 80
            // arrives after 81, the last frame.
            bytes[3] = 9;
            match number {
                50 => bytes[40] = 1,
                60 => live.record(&bytes, arrival(number)),
                70 | 80 => continue,
                _ => {}
            }
            live.record(&bytes, arrival(number));
            if number == 81 {
                live.record(&frame(80), arrival(number));
            }
            if number % 7 == 0 {
                live.settle();
            }
        }
        live.settle();
        let report = live.report();
        assert_eq!(report.trace, "frames sent to near");
        assert_eq!((report.frames, report.matched, report.lost), (100, 98, 1));
        assert_eq!((report.duplicates, report.reordered), (1, 1));
        assert_eq!((report.changed, report.foreign), (1, 0));
        assert_eq!(report.timing.gap_error_us.max, 0.0);
        let delay = live.delay();
        assert_eq!(delay.one_way_us.count, 98);
        assert_eq!((delay.one_way_us.min, delay.one_way_us.p99), (10.0, 80.0));
        assert!((delay.one_way_us.p90 - 10.0).abs() < 0.1);
        assert!(delay.jitter_max_us > 0.0);
    }

    #[test]
    fn a_dead_path_takes_bounded_memory() {
        let (mut log, sent) = sent_log("near", "mac".parse().expect("a field"));
        let mut live = LiveComparison::new(sent);
        for number in 0..600_000 {
            send(&mut log, number);
            if number % 1_000 == 0 {
                live.settle();
            }
        }
        // Receive the last frame, and one that has already been evicted.
        live.record(&frame(599_999), arrival(599_999));
        live.record(&frame(3), arrival(599_999));
        live.settle();
        let report = live.report();
        assert_eq!((report.matched, report.lost), (1, 599_999));
        assert_eq!((report.foreign, report.behind_last), (1, 0));
        assert_eq!(report.timing.gap_error_us.count, 0);
    }

    #[test]
    fn frames_before_the_first_sent_one_are_foreign() {
        let (mut log, sent) = sent_log("near", "mac".parse().expect("a field"));
        let mut live = LiveComparison::new(sent);
        live.record(&frame(1), Nanos::ZERO);
        live.settle();
        send(&mut log, 0);
        live.settle();
        let report = live.report();
        assert_eq!((report.foreign, report.behind_last), (1, 1));
        assert_eq!((report.lost, report.frames), (0, 0));
    }
}
