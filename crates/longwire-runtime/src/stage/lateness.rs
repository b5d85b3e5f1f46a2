//! Lateness of departures: histograms, causes, gap errors, drift, and send stamps.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use hdrhistogram::Histogram;
use longwire_engine::Nanos;
use longwire_io::TxPort;
use longwire_io::port::{SendStamp, StampedBy};

use crate::counters::Artifact;
use crate::sync::locked;
use crate::witness::{PAUSE_MIN, PauseHistory, stood_still};

/// A histogram of up to a minute in nanoseconds, with two significant digits. It is small, because
/// histograms are added on the data path within a few microseconds.
#[derive(Clone, Debug)]
pub(crate) struct NanosHistogram(Histogram<u64>);

impl Default for NanosHistogram {
    fn default() -> NanosHistogram {
        const MINUTE_NS: u64 = 60_000_000_000;
        // Only unordered bounds are rejected.
        let histogram = Histogram::new_with_bounds(1, MINUTE_NS, 2);
        NanosHistogram(histogram.unwrap_or_else(|_| unreachable!("bounds in order")))
    }
}

impl Deref for NanosHistogram {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl DerefMut for NanosHistogram {
    fn deref_mut(&mut self) -> &mut Histogram<u64> {
        &mut self.0
    }
}

/// Records one stage's lateness and periodically adds it to a shared histogram. Blocks on readers
/// only at the end of the run.
#[derive(Debug, Default)]
pub(super) struct LatenessRecorder {
    own: NanosHistogram,
    /// Counts of short values by step, not yet in `own`: most values are short, and a histogram update
    /// costs more than a short frame. Allocated on first use.
    short: Option<ShortValues>,
    flushed: Nanos,
}

/// Counts by steps of [`LATENESS_STEP`].
#[derive(Debug)]
struct ShortValues(Box<[u32; SHORT_STEPS]>);

/// Resolution of recorded values, in nanoseconds.
pub(super) const LATENESS_STEP: u64 = 64;

/// Values below 65 us are short.
const SHORT_STEPS: usize = 1_024;

impl Default for ShortValues {
    fn default() -> ShortValues {
        ShortValues(Box::new([0; SHORT_STEPS]))
    }
}

impl ShortValues {
    /// Moves the counts to a histogram.
    fn drain_to(&mut self, histogram: &mut Histogram<u64>) {
        for (step, count) in self
            .0
            .iter_mut()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let value = step as u64 * LATENESS_STEP;
            histogram.saturating_record_n(value, u64::from(std::mem::take(count)));
        }
    }
}

/// Interval between additions to the shared histogram.
const FLUSH_EVERY: Nanos = Nanos::from_millis(500);

impl LatenessRecorder {
    #[inline]
    pub fn record(&mut self, value: Nanos, times: u64) {
        if times > 0 {
            self.own.saturating_record_n(value.as_nanos(), times);
        }
    }

    /// Returns the counts of values below `bound` and below 65 us, by steps of [`LATENESS_STEP`], and
    /// the histogram for other values.
    #[inline]
    pub fn counts_below(&mut self, bound: Nanos) -> (&mut [u32], &mut NanosHistogram) {
        let ShortValues(short) = self.short.get_or_insert_default();
        let steps = bound.as_nanos() / LATENESS_STEP;
        (&mut short[..SHORT_STEPS.min(steps as usize)], &mut self.own)
    }

    /// Adds to the shared histogram if due and no reader holds the lock; with `force`, in any case.
    /// Returns whether it did.
    pub fn flush(&mut self, now: Nanos, shared: &Mutex<NanosHistogram>, force: bool) -> bool {
        if !force && now.saturating_sub(self.flushed) < FLUSH_EVERY {
            return false;
        }
        let mut total = match shared.try_lock() {
            Ok(total) => total,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if !force => return false,
            Err(TryLockError::WouldBlock) => locked(shared),
        };
        if let Some(short) = &mut self.short {
            short.drain_to(&mut self.own);
        }
        // The bounds are equal, so adding cannot fail.
        let _ = total.add(&*self.own);
        self.own.reset();
        self.flushed = now;
        true
    }
}

/// Attributes lateness to causes.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Maximum lateness; later handovers are artifacts.
    pub tolerance: Nanos,
    /// Frames released before this time belong to the start.
    pub grace_until: Nanos,
    /// Pauses of the threads that receive and send the frames.
    pub threads: Vec<Arc<PauseHistory>>,
    /// Differences between own and total lateness since they were last shared.
    corrections: Option<Box<Corrections>>,
}

/// Values to remove from and to add to the histogram of total lateness, to obtain the emulator's
/// own lateness.
#[derive(Debug, Default)]
pub(crate) struct Corrections {
    out: NanosHistogram,
    in_place: NanosHistogram,
}

/// A direction's corrections, if any.
pub(crate) type CorrectionsShared = Mutex<Option<Box<Corrections>>>;

/// Returns the emulator's own lateness, from the histogram of total lateness.
pub(crate) fn own(shared: &CorrectionsShared, mut all: NanosHistogram) -> NanosHistogram {
    if let Some(corrections) = locked(shared).as_deref() {
        // The bounds are equal, and removed values were recorded before.
        let _ = all.subtract(&*corrections.out);
        let _ = all.add(&*corrections.in_place);
    }
    all
}

impl Judge {
    pub fn new(tolerance: Nanos, grace_until: Nanos) -> Judge {
        Judge {
            tolerance,
            grace_until,
            ..Judge::default()
        }
    }

    /// Returns the lateness below which no cause is determined.
    #[inline]
    pub fn threshold(&self) -> Nanos {
        self.tolerance.min(PAUSE_MIN)
    }

    /// Returns the cause of a frame's lateness as an artifact (`None` within the tolerance), and
    /// the emulator's own lateness.
    pub fn cause(&self, release: Nanos, lateness: Nanos) -> (Option<Artifact>, Nanos) {
        let still = stood_still(&self.threads, release, release.saturating_add(lateness));
        let own = lateness.saturating_sub(still);
        let cause = if lateness <= self.tolerance {
            None
        } else if own <= self.tolerance {
            Some(Artifact::LatePaused)
        } else if release < self.grace_until {
            Some(Artifact::LateStart)
        } else {
            Some(Artifact::Late)
        };
        (cause, own)
    }

    /// Like [`Judge::cause`], but also records the correction from `recorded`, the frame's value in
    /// the histogram of total lateness.
    #[cold]
    pub fn judge(
        &mut self,
        release: Nanos,
        lateness: Nanos,
        recorded: Nanos,
        times: u64,
    ) -> Option<Artifact> {
        let (cause, own) = self.cause(release, lateness);
        let starts = release < self.grace_until;
        if own < lateness || starts {
            let Corrections { out, in_place } = &mut **self.corrections.get_or_insert_default();
            out.saturating_record_n(recorded.as_nanos(), times);
            if !starts {
                in_place.saturating_record_n(own.min(recorded).as_nanos(), times);
            }
        }
        cause
    }

    /// Shares the corrections. Call after sharing the histogram of total lateness.
    pub fn share(&mut self, shared: &CorrectionsShared) {
        let Some(own) = self.corrections.take() else {
            return;
        };
        let mut shared = locked(shared);
        let total = shared.get_or_insert_default();
        // The bounds are equal, so adding cannot fail.
        let _ = total.out.add(&*own.out);
        let _ = total.in_place.add(&*own.in_place);
    }
}

/// Gap errors and drift of a stage's departures.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    gap_errors: LatenessRecorder,
    drift: Drift,
    /// Lateness of the last frame.
    last: Option<Nanos>,
}

/// The published state, for reports.
#[derive(Debug, Default)]
pub(crate) struct DeparturesShared {
    pub gap_errors: Mutex<NanosHistogram>,
    pub drift: Mutex<Drift>,
}

impl Departures {
    /// Records the lateness of a frame due at `release`. A gap error is the difference between two
    /// consecutive lateness values.
    #[inline]
    pub fn record(&mut self, release: Nanos, lateness: Nanos) {
        if let Some(last) = self.last.replace(lateness) {
            let error = lateness.as_nanos().abs_diff(last.as_nanos());
            self.gap_errors.record(Nanos::from_nanos(error), 1);
        }
        self.drift.add(release, lateness);
    }

    /// Adds to the published state if due.
    pub fn flush(&mut self, now: Nanos, shared: &DeparturesShared, force: bool) {
        if self.gap_errors.flush(now, &shared.gap_errors, force) {
            *locked(&shared.drift) = self.drift;
        }
    }
}

/// Least-squares fit of lateness over time, whose slope is the drift.
///
/// Sums are relative to the first frame, in seconds and microseconds, so 64-bit floats are precise
/// enough for days.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    origin: Option<Nanos>,
    frames: f64,
    time: f64,
    late: f64,
    time_squared: f64,
    time_late: f64,
}

impl Drift {
    #[inline]
    fn add(&mut self, release: Nanos, lateness: Nanos) {
        let origin = *self.origin.get_or_insert(release);
        let time = release.saturating_sub(origin).as_nanos() as f64 * 1e-9;
        let late = lateness.as_nanos() as f64 * 1e-3;
        self.frames += 1.0;
        self.time += time;
        self.late += late;
        self.time_squared += time * time;
        self.time_late += time * late;
    }

    /// Returns the slope in microseconds per second, which is ppm. `None` if there are too few
    /// frames, or if all have the same due time.
    pub fn parts_per_million(&self) -> Option<f64> {
        let spread = self.frames * self.time_squared - self.time * self.time;
        let slope = (self.frames * self.time_late - self.time * self.late) / spread;
        (self.frames >= 2.0 && spread > 0.0).then_some(slope)
    }
}

/// Interval at which the port's stamps are read.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// Maximum number of stamps per reading. Each may cost a system call (about 1 us) while a departure
/// waits. At higher rates, readings are proportionally more frequent.
const PER_LOOK: u64 = 32;

/// Minimum interval between readings.
const LOOK_MIN: Nanos = Nanos::from_millis(1);

/// Number of readings for outstanding stamps at the end, and the wait before each.
const LAST_LOOKS: usize = 5;
const LAST_WAIT: Duration = Duration::from_millis(2);

/// A stage's send stamps.
#[derive(Debug)]
pub(super) struct SendStamps {
    counts: SendStampCounts,
    lateness: LatenessRecorder,
    looked: Nanos,
    look_at: Nanos,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SendStampCounts {
    /// Source of the stamps.
    pub by: StampedBy,
    /// Sampling interval in frames.
    pub every: u32,
    /// Stamps received.
    pub count: u64,
    /// Stamps before their release, which count as not late.
    pub early: u64,
    /// Maximum time by which a stamp preceded its release.
    pub earliest: Nanos,
}

/// The published state, for reports.
#[derive(Debug, Default)]
pub(crate) struct SendStampsShared {
    pub lateness: Mutex<NanosHistogram>,
    /// `None` if the port makes no stamps.
    pub counts: Mutex<Option<SendStampCounts>>,
}

impl SendStamps {
    pub fn new(by: StampedBy, every: u32, shared: &SendStampsShared) -> SendStamps {
        let counts = SendStampCounts {
            by,
            every,
            count: 0,
            early: 0,
            earliest: Nanos::ZERO,
        };
        *locked(&shared.counts) = Some(counts);
        SendStamps {
            counts,
            lateness: LatenessRecorder::default(),
            looked: Nanos::ZERO,
            look_at: Nanos::ZERO,
        }
    }

    /// Returns whether a reading is due.
    #[inline]
    pub fn is_time(&self, now: Nanos) -> bool {
        now >= self.look_at
    }

    /// Reads the stamps received so far.
    #[cold]
    pub fn look(&mut self, now: Nanos, port: &mut impl TxPort, shared: &SendStampsShared) {
        let came = self.take(port);
        let since = now.saturating_sub(self.looked).min(LOOK_EVERY);
        let pause = Nanos::from_nanos(since.as_nanos() * PER_LOOK / came.max(1));
        self.looked = now;
        self.look_at = now.saturating_add(pause.clamp(LOOK_MIN, LOOK_EVERY));
        if self.lateness.flush(now, &shared.lateness, false) {
            *locked(&shared.counts) = Some(self.counts);
        }
    }

    /// Reads outstanding stamps at the end.
    pub fn finish(&mut self, port: &mut impl TxPort, shared: &SendStampsShared) {
        self.take(port);
        for _ in 0..LAST_LOOKS {
            std::thread::sleep(LAST_WAIT);
            self.take(port);
        }
        self.lateness.flush(Nanos::ZERO, &shared.lateness, true);
        *locked(&shared.counts) = Some(self.counts);
    }

    /// Reads stamps and returns their number.
    fn take(&mut self, port: &mut impl TxPort) -> u64 {
        let before = self.counts.count;
        port.sampled(&mut |stamp| self.record(stamp));
        self.counts.count - before
    }

    fn record(&mut self, stamp: SendStamp) {
        let SendStamp { release, left, by } = stamp;
        let counts = &mut self.counts;
        counts.by = by;
        counts.count += 1;
        counts.early += u64::from(left < release);
        counts.earliest = counts.earliest.max(release.saturating_sub(left));
        self.lateness.record(left.saturating_sub(release), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn judge() -> Judge {
        Judge {
            tolerance: MS(1),
            grace_until: MS(100),
            ..Judge::default()
        }
    }

    #[test]
    fn late_frames_at_the_start_are_the_starts() {
        let judge = judge();
        assert_eq!(judge.cause(MS(99), MS(2)).0, Some(Artifact::LateStart));
        assert_eq!(judge.cause(MS(100), MS(2)).0, Some(Artifact::Late));
        assert_eq!(judge.cause(MS(99), MS(1)).0, None);
    }

    #[test]
    fn own_lateness_is_all_without_what_was_corrected() {
        let mut judge = judge();
        let mut all = NanosHistogram::default();
        for (release, lateness) in [(50, 5), (200, 7), (300, 0)] {
            all.record(MS(lateness).as_nanos()).expect("within bounds");
            if MS(lateness) >= judge.threshold() {
                judge.judge(MS(release), MS(lateness), MS(lateness), 1);
            }
        }
        let shared = CorrectionsShared::default();
        judge.share(&shared);
        let own = own(&shared, all.clone());
        assert_eq!((all.len(), own.len()), (3, 2));
        assert!(own.max() >= MS(7).as_nanos());
    }

    /// Returns the departures of frames every 70 us, with lateness `late(frame number)`.
    fn departures(late: impl Fn(u64) -> u64) -> (Departures, DeparturesShared) {
        let (mut departures, shared) = (Departures::default(), DeparturesShared::default());
        for number in 0..100_000 {
            let release = Nanos::from_micros(1_000_000 + 70 * number);
            departures.record(release, Nanos::from_nanos(late(number)));
        }
        departures.flush(Nanos::ZERO, &shared, true);
        (departures, shared)
    }

    #[test]
    fn only_changes_of_lateness_spoil_gaps_and_are_drift() {
        let drift = |of: &Departures| of.drift.parts_per_million().unwrap();
        let (constant, shared) = departures(|_| 1_500);
        assert_eq!(shared.gap_errors.lock().unwrap().max(), 0);
        assert!(drift(&constant).abs() < 1e-6);
        // One late frame changes two gaps.
        let (_, shared) = departures(|number| if number == 500 { 4_000 } else { 0 });
        let histogram = shared.gap_errors.lock().unwrap();
        assert_eq!(histogram.count_between(3_900, 4_100), 2);
        assert_eq!(histogram.len(), 99_999);
        // 7 ns per 70 us.
        let (slow, _) = departures(|number| 7 * number);
        assert!((drift(&slow) - 100.0).abs() < 1e-6, "{}", drift(&slow));
    }

    #[test]
    fn a_single_moment_has_no_drift() {
        let mut drift = Drift::default();
        drift.add(Nanos::from_secs(1), Nanos::ZERO);
        drift.add(Nanos::from_secs(1), Nanos::from_secs(1));
        assert_eq!(drift.parts_per_million(), None);
    }
}
