//! RFC 2544, section 26: throughput, latency, frame loss rate and back-to-back frames.
//!
//! Differences from the RFC: a latency trial measures every frame instead of one per 120 s. Latency
//! is the time from a frame's due time to its kernel receive timestamp, including the transit
//! through the sending port. System recovery and reset (26.5, 26.6) need a person at the device and
//! are omitted. The loss table also has forwarding rates, which RFC 2889 uses.

use std::sync::Arc;

use crate::arrivals::{Load, LoadRate};
use crate::sizes::FCS_LEN;
use crate::sizes::fixed::Fixed;
use longwire_engine::Nanos;
use serde::Serialize;

use super::search::{Limit, attempt, highest};
use super::trial::{Headers, Length, Tester, Trial, Verdict, share};
use longwire_runtime::Spread;

/// 100 %, in parts per million.
pub(super) const WHOLE: u32 = 1_000_000;

/// Step in the loss test (26.3 allows at most 10 %).
pub(super) const STEP: u32 = WHOLE / 10;

/// An RFC 2544 test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rfc2544Test {
    /// Maximum rate without loss (26.1).
    Throughput,
    /// Delay at the throughput rate (26.2).
    Latency,
    /// Loss at loads from the full rate downwards (26.3).
    Loss,
    /// Longest burst without loss (26.4).
    BackToBack,
}

/// RFC 2544 benchmark configuration.
#[derive(Clone, Debug)]
pub struct Rfc2544 {
    /// Rate that counts as 100 %.
    pub rate: LoadRate,
    /// Frame sizes in bytes, without FCS.
    pub sizes: Vec<u32>,
    /// Tests to run.
    pub tests: Vec<Rfc2544Test>,
    /// Duration of a trial.
    pub trial: Nanos,
    /// Resolution of the rate search, in parts per million of `rate`.
    pub resolution: u32,
    /// Maximum loss ratio that counts as no loss.
    pub acceptable_loss: f64,
    /// Throughput required to pass, in parts per million of `rate`.
    pub min_throughput: u32,
    /// Number of searches for the longest burst.
    pub bursts: u32,
}

/// RFC 2544 benchmark report.
#[derive(Clone, Debug, Serialize)]
pub struct Rfc2544Report {
    /// Rate that counts as 100 %.
    pub rate: String,
    /// Duration of a trial in seconds.
    pub trial_s: f64,
    /// Results per frame size.
    pub sizes: Vec<SizeReport>,
    /// Whether throughput met the requirement at every size.
    pub passed: bool,
}

/// Results for one frame size.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizeReport {
    /// Frame size in bytes, with FCS.
    pub frame_size: u32,
    /// Frames/s at 100 %.
    pub whole_frames_per_s: f64,
    /// Maximum rate without loss.
    pub throughput: Option<ThroughputReport>,
    /// Delay at the throughput rate.
    pub latency: Option<LatencyReport>,
    /// Loss at loads from the full rate downwards.
    pub loss: Vec<LossReport>,
    /// Longest burst without loss.
    pub bursts: Option<BurstReport>,
}

/// Throughput (26.1).
#[derive(Clone, Debug, Serialize)]
pub struct ThroughputReport {
    /// Share of the full rate.
    pub share: f64,
    /// Frames per second.
    pub frames_per_s: f64,
    /// Bits per second, counting frames with FCS.
    pub bits_per_s: f64,
    /// Reason why no higher rate passed.
    #[serde(flatten)]
    pub limit: Limit,
    /// Number of trials.
    pub trials: u32,
}

/// Latency (26.2).
#[derive(Clone, Debug, Serialize)]
pub struct LatencyReport {
    /// Load as a share of the full rate.
    pub share: f64,
    /// Delay in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550), in microseconds.
    pub jitter_us: f64,
}

/// Frame loss rate at one load (26.3).
#[derive(Clone, Debug, Serialize)]
pub struct LossReport {
    /// Load as a share of the full rate.
    pub share: f64,
    /// Frames that entered the device.
    pub sent: u64,
    /// Frames that left the device.
    pub received: u64,
    /// Loss ratio.
    pub loss: f64,
    /// Forwarding rate in frames/s.
    pub forwarding_per_s: f64,
    /// Reason why the trial is inconclusive, if it is.
    pub void: Option<String>,
}

/// Back-to-back frames (26.4).
#[derive(Clone, Debug, Serialize)]
pub struct BurstReport {
    /// Mean length of the longest bursts, in frames.
    pub frames_mean: f64,
    /// Minimum length of the longest bursts, in frames.
    pub frames_min: u64,
    /// Number of searches.
    pub tries: u32,
    /// Longest burst tested.
    pub frames_tried: u64,
    /// Reason why no longer burst passed.
    #[serde(flatten)]
    pub limit: Limit,
}

/// Converts parts per million to a share.
pub(super) fn as_share(parts: u64) -> f64 {
    parts as f64 / f64::from(WHOLE)
}

impl Rfc2544 {
    /// Runs the tests.
    ///
    /// # Errors
    /// If a trial cannot be run.
    pub fn run<T: Tester>(&self, tester: &mut T) -> Result<Rfc2544Report, T::Error> {
        let mut sizes = Vec::new();
        for size in &self.sizes {
            sizes.push(self.size(*size, tester)?);
        }
        let needed = as_share(self.min_throughput.into());
        let enough = |size: &SizeReport| {
            let throughput = size.throughput.as_ref();
            throughput.is_none_or(|found| found.share >= needed)
        };
        Ok(Rfc2544Report {
            rate: self.rate.to_string(),
            trial_s: self.trial.as_secs_f64(),
            passed: sizes.iter().all(enough),
            sizes,
        })
    }

    fn asks(&self, test: Rfc2544Test) -> bool {
        self.tests.contains(&test)
    }

    fn size<T: Tester>(&self, size: u32, tester: &mut T) -> Result<SizeReport, T::Error> {
        let whole = Load::new(self.rate, &Fixed::new(size)).packets_per_sec();
        let mut report = SizeReport {
            frame_size: size + FCS_LEN,
            whole_frames_per_s: whole,
            ..SizeReport::default()
        };
        // Latency is measured at the throughput rate.
        if self.asks(Rfc2544Test::Throughput) || self.asks(Rfc2544Test::Latency) {
            let trial = |parts| self.trial(size, parts, Length::Time(self.trial), "throughput");
            let (most, resolution) = (WHOLE.into(), self.resolution.into());
            let search = highest(tester, most, resolution, self.acceptable_loss, &trial)?;
            let share = as_share(search.best);
            if self.asks(Rfc2544Test::Latency) && search.best > 0 {
                let length = Length::Time(self.trial);
                let outcome = tester.trial(&self.trial(size, search.best, length, "latency"))?;
                report.latency = Some(LatencyReport {
                    share,
                    delay_us: outcome.delay_us,
                    jitter_us: outcome.jitter_us,
                });
            }
            report.throughput = Some(ThroughputReport {
                share,
                frames_per_s: share * whole,
                bits_per_s: share * whole * f64::from((size + FCS_LEN) * 8),
                limit: search.limit,
                trials: search.trials,
            });
        }
        if self.asks(Rfc2544Test::Loss) {
            report.loss = self.loss(size, tester)?;
        }
        if self.asks(Rfc2544Test::BackToBack) {
            report.bursts = Some(self.bursts(size, whole, tester)?);
        }
        Ok(report)
    }

    fn trial(&self, size: u32, parts: u64, length: Length, test: &str) -> Trial {
        let at = as_share(parts) * 100.0;
        Trial {
            sizes: Some(Arc::new(Fixed::new(size))),
            rate: share(self.rate, parts as u32),
            arrivals: None,
            length,
            headers: Headers::default(),
            purpose: format!("{test}, {} bytes, {at:.2} %", size + FCS_LEN),
        }
    }

    /// Tests decreasing loads until two consecutive ones are lossless.
    fn loss<T: Tester>(&self, size: u32, tester: &mut T) -> Result<Vec<LossReport>, T::Error> {
        let (mut steps, mut whole) = (Vec::new(), 0);
        for parts in (1..=WHOLE / STEP).rev().map(|step| step * STEP) {
            let (step, verdict) = self.offer(size, parts, "loss", tester)?;
            whole = if verdict == Verdict::Passed {
                whole + 1
            } else {
                0
            };
            steps.push(step);
            if whole == 2 {
                break;
            }
        }
        Ok(steps)
    }

    /// Runs a trial at one load.
    pub(super) fn offer<T: Tester>(
        &self,
        size: u32,
        parts: u32,
        test: &str,
        tester: &mut T,
    ) -> Result<(LossReport, Verdict), T::Error> {
        let trial = self.trial(size, parts.into(), Length::Time(self.trial), test);
        // Any loss counts in this test, so trials with excusable loss are repeated.
        let (outcome, verdict) = attempt(tester, &trial, 0.0, &mut 0)?;
        let report = LossReport {
            share: as_share(parts.into()),
            sent: outcome.sent,
            received: outcome.received,
            loss: outcome.loss(),
            forwarding_per_s: outcome.received as f64 / self.trial.as_secs_f64(),
            void: match &verdict {
                Verdict::Void(reason) => Some(reason.clone()),
                Verdict::Passed | Verdict::Lost => None,
            },
        };
        Ok((report, verdict))
    }

    fn bursts<T: Tester>(
        &self,
        size: u32,
        whole: f64,
        tester: &mut T,
    ) -> Result<BurstReport, T::Error> {
        let most = ((whole * self.trial.as_secs_f64()) as u64).max(1);
        let finest = u128::from(most) * u128::from(self.resolution) / u128::from(WHOLE);
        let trial = |frames| self.trial(size, WHOLE.into(), Length::Frames(frames), "back-to-back");
        let (mut found, mut limit) = (Vec::new(), Limit::NONE);
        for _ in 0..self.bursts {
            let search = highest(tester, most, finest as u64, self.acceptable_loss, &trial)?;
            found.push(search.best);
            if search.limit != Limit::NONE {
                limit = search.limit;
            }
        }
        Ok(BurstReport {
            frames_mean: found.iter().sum::<u64>() as f64 / found.len().max(1) as f64,
            frames_min: found.iter().copied().min().unwrap_or(0),
            tries: self.bursts,
            frames_tried: most,
            limit,
        })
    }
}
