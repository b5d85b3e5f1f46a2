//! Trials between two ports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ARRIVALS;
use crate::arrivals::Load;
use longwire_engine::Nanos;
use longwire_runtime::{Artifact, Feed, RunReport, RunningNetwork};
use longwire_units::grouped;

use super::error::ProfileError;
use super::probes::{ProbeReport, UNSENT, sent};
use super::trial::{Length, Outcome, Tester, Trial};
use crate::generator::{GeneratorConfig, TogetherFeed};
use crate::receive::{ReceiveConfig, ReceiveReport, Receiver};

/// A function that starts the run that sends a feed.
pub type StartRun<'a, E> = Box<dyn FnMut(Box<dyn Feed>) -> Result<RunningNetwork, E> + 'a>;

/// A function that is called with each trial and its outcome.
pub type Progress<'a, E> = Box<dyn FnMut(&Trial, &Outcome) -> Result<(), E> + 'a>;

/// A tester that sends at one port and receives at another, in one run for each trial.
pub struct PortTester<'a, E> {
    /// The frames of trials, where a trial does not set them. The first trial of those
    /// at the same time has the configuration's stream of probes, the others the
    /// following ones.
    pub config: GeneratorConfig,
    /// The name of the receiving port.
    pub receive: &'a str,
    /// How long to wait for frames under way after all have been sent.
    pub settle: Nanos,
    /// Ends the trial when it is set.
    pub stop: &'a AtomicBool,
    /// Starts the run that sends a feed.
    pub start: StartRun<'a, E>,
    /// Reports the progress of the test.
    pub progress: Progress<'a, E>,
}

/// A rate counts as kept if half of all frames left so much of the trial's
/// length late at the most: one that is too high by a thousandth is not.
const LATE_SHARE: f64 = 0.0005;

/// Lateness that is always allowed, in microseconds: pauses of the machine disturb short
/// trials.
const LATE_LEAST_US: f64 = 500.0;

/// The share of the frames planned that must have been sent.
const SENT_SHARE: f64 = 0.999;

impl<E> PortTester<'_, E> {
    /// Returns the configuration of trial `number` of those at the same time.
    fn config(&self, trial: &Trial, number: usize) -> Result<GeneratorConfig, ProfileError> {
        let arrivals = match &trial.arrivals {
            Some(arrivals) => arrivals.clone(),
            None => ARRIVALS.parse("constant")?.into(),
        };
        let (count, time) = match trial.length {
            Length::Time(time) => (None, Some(time)),
            Length::Frames(frames) => (Some(frames), None),
        };
        let mut flows = self.config.flows.clone();
        trial.headers.apply(&mut flows);
        Ok(GeneratorConfig {
            flows,
            probe: Some(self.stream(number)),
            sizes: trial
                .sizes
                .clone()
                .unwrap_or_else(|| self.config.sizes.clone()),
            arrivals,
            rate: Some(trial.rate),
            count,
            time,
            ..self.config.clone()
        })
    }

    fn stream(&self, number: usize) -> u32 {
        self.config.probe.unwrap_or(0) + number as u32
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<E: From<ProfileError>> Tester for PortTester<'_, E> {
    type Error = E;

    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, E> {
        /// How soon a signal is seen.
        const LOOK: Duration = Duration::from_millis(50);
        let configs = trials.iter().enumerate();
        let configs = configs.map(|(number, trial)| self.config(trial, number));
        let configs: Vec<GeneratorConfig> = configs.collect::<Result<_, _>>()?;
        let plan = Plan::of(&configs);
        let feed = TogetherFeed::new(configs).map_err(ProfileError::from)?;
        let sent = feed.sent();
        let receiver = Receiver::open(self.receive, ReceiveConfig::default());
        let receiver = receiver.map_err(|source| ProfileError::Receive {
            port: self.receive.to_owned(),
            source: Box::new(source),
        })?;
        let replaying = (self.start)(Box::new(feed))?;
        while !self.interrupted() && !replaying.wait(LOOK) {}
        let report = replaying.stop();
        let receiver = receiver.settle(&report, self.settle, self.stop);
        if self.interrupted() {
            return Err(ProfileError::Interrupted.into());
        }
        let failed = report.error.as_ref().or(receiver.error.as_ref());
        if let Some(error) = failed {
            return Err(ProfileError::Run(error.clone()).into());
        }
        let common = common(&report, &receiver, &plan);
        let mut outcomes = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let sent = sent[number].load(Ordering::Relaxed);
            let found = ProbeReport::of(&report, &receiver, self.stream(number));
            let outcome = Outcome {
                // Of several trials, it is unknown whose frames were never sent: they
                // are lost, and excusable.
                sent: if trials.len() == 1 { found.sent } else { sent },
                received: found.received,
                delay_us: found.delay_us,
                jitter_us: found.jitter_us,
                reordered: found.reordered,
                ..common.clone()
            };
            (self.progress)(trial, &outcome)?;
            outcomes.push(outcome);
        }
        plan.share_bytes(receiver.bytes, &mut outcomes);
        Ok(outcomes)
    }

    fn pause(&mut self, time: Nanos) -> Result<(), E> {
        const LOOK: Duration = Duration::from_millis(20);
        let until = Instant::now() + Duration::from_nanos(time.as_nanos());
        while Instant::now() < until {
            if self.interrupted() {
                return Err(ProfileError::Interrupted.into());
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

/// The frames that trials at the same time send if all goes well.
struct Plan {
    /// How many frames are to be sent in all.
    frames: f64,
    /// How long that takes, in seconds.
    seconds: f64,
    /// The mean size of each trial's frames.
    sizes: Vec<f64>,
}

impl Plan {
    fn of(configs: &[GeneratorConfig]) -> Plan {
        let (mut frames, mut seconds) = (0.0, 0.0f64);
        for config in configs {
            let Some(rate) = config.rate else { continue };
            let per_second = Load::new(rate, &*config.sizes).packets_per_sec();
            let (count, time) = match (config.count, config.time) {
                (Some(count), _) => (count as f64, count as f64 / per_second),
                (None, Some(time)) => (per_second * time.as_secs_f64(), time.as_secs_f64()),
                (None, None) => (0.0, 0.0),
            };
            frames += count;
            seconds = seconds.max(time);
        }
        Plan {
            frames,
            seconds,
            sizes: configs.iter().map(|config| config.sizes.mean()).collect(),
        }
    }

    /// Distributes the bytes received over the trials, by their frames and the mean of
    /// their sizes: the receiver counts the bytes of all streams together.
    fn share_bytes(&self, bytes: u64, outcomes: &mut [Outcome]) {
        let weights = outcomes.iter().zip(&self.sizes);
        let weights = weights.map(|(outcome, size)| outcome.received as f64 * size);
        let weights: Vec<f64> = weights.collect();
        let all: f64 = weights.iter().sum();
        for (outcome, weight) in outcomes.iter_mut().zip(weights) {
            outcome.received_bytes = if all > 0.0 {
                (bytes as f64 * weight / all).round() as u64
            } else {
                0
            };
        }
    }
}

/// Returns the part of a run's outcome that all its trials share and that is not the
/// device's doing.
fn common(report: &RunReport, receiver: &ReceiveReport, plan: &Plan) -> Outcome {
    let lateness = report.links.first().map(|link| link.lateness_us);
    let late = lateness.map_or(0.0, |lateness| lateness.p50);
    let allowed = (plan.seconds * 1e6 * LATE_SHARE).max(LATE_LEAST_US);
    let sent = sent(report);
    let not_kept = if late > allowed {
        Some(format!(
            "the generator could not keep the rate: half of its frames left {late:.0} us late and \
             more"
        ))
    } else if (sent as f64) < plan.frames * SENT_SHARE - plan.sizes.len() as f64 {
        Some(format!(
            "the generator or its port sent {} of {:.0}",
            frames(sent),
            plan.frames
        ))
    } else {
        None
    };
    let sum = |kind: Artifact| {
        let links = report.links.iter();
        links
            .map(|link| link.artifacts.of(kind.name()))
            .sum::<u64>()
    };
    let late = Artifact::ALL.into_iter().filter(|kind| kind.is_late());
    let late: u64 = late.map(sum).sum();
    let unseen = receiver.unseen.total();
    let unsent: u64 = match plan.sizes.len() {
        // One trial's are not counted as sent.
        1 => 0,
        _ => UNSENT.into_iter().map(sum).sum(),
    };
    let excuse = if unseen > 0 {
        Some(format!("the receiver had no room for {}", frames(unseen)))
    } else if unsent > 0 {
        Some(format!("could not send {}", frames(unsent)))
    } else {
        (late > 0).then(|| format!("{} sent late, and so in bursts", frames(late)))
    };
    Outcome {
        duration_s: receiver.duration_s,
        not_kept,
        excusable: late + unseen + unsent,
        excuse,
        ..Outcome::default()
    }
}

/// Returns a count of frames in words: `1,234 frames`.
fn frames(count: u64) -> String {
    match count {
        1 => "1 frame".to_owned(),
        count => format!("{} frames", grouped(count)),
    }
}
