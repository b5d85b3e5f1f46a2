//! Trials between two ports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_runtime::{Artifact, Feed, RunReport, RunningNetwork};
use longwire_units::count_of;

use super::probes::{ProbeReport, UNSENT, sent};
use super::trial::{Length, Outcome, ProfileError, Tester, Trial};
use crate::ARRIVALS;
use crate::arrivals::Load;
use crate::generator::{GeneratorConfig, TogetherFeed};
use crate::receive::{ReceiveConfig, ReceiveReport, Receiver};

/// Starts a run that sends a feed.
pub type StartRun<'a, E> = Box<dyn FnMut(Box<dyn Feed>) -> Result<RunningNetwork, E> + 'a>;

/// Called with each trial and its outcome.
pub type Progress<'a, E> = Box<dyn FnMut(&Trial, &Outcome) -> Result<(), E> + 'a>;

/// Runs trials by sending at one port and receiving at another.
pub struct PortTester<'a, E> {
    /// Frame configuration, unless overridden by a trial. Concurrent trials get consecutive probe
    /// streams, starting with this one.
    pub config: GeneratorConfig,
    /// Name of the receiving port.
    pub receive: &'a str,
    /// Time to wait for frames in flight.
    pub settle: Nanos,
    /// Aborts the trial when set.
    pub stop: &'a AtomicBool,
    /// Starts a run.
    pub start: StartRun<'a, E>,
    /// Reports progress.
    pub progress: Progress<'a, E>,
}

/// Tolerated median lateness, as a share of the trial's duration. A sender that is 0.1 % too slow
/// reaches it.
const LATE_SHARE: f64 = 0.0005;

/// Minimum tolerance in microseconds, for machine pauses in short trials.
const LATE_LEAST_US: f64 = 500.0;

/// Minimum share of the planned frames that must be sent.
const SENT_SHARE: f64 = 0.999;

impl<E> PortTester<'_, E> {
    /// Returns the configuration of concurrent trial `number`.
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
        let sizes = trial.sizes.as_ref().unwrap_or(&self.config.sizes);
        Ok(GeneratorConfig {
            flows,
            probe: Some(self.stream(number)),
            sizes: sizes.clone(),
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
        /// Polling interval of the stop flag.
        const LOOK: Duration = Duration::from_millis(50);
        let configs = trials.iter().enumerate();
        let configs = configs.map(|(number, trial)| self.config(trial, number));
        let configs: Vec<GeneratorConfig> = configs.collect::<Result<_, _>>()?;
        let plan = Plan::of(&configs);
        let feed = TogetherFeed::new(configs).map_err(ProfileError::from)?;
        let sent = feed.sent();
        let receiver = Receiver::open(self.receive, ReceiveConfig::default(), None);
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
        if let Some(error) = report.error.as_ref().or(receiver.error.as_ref()) {
            return Err(ProfileError::Run(error.clone()).into());
        }
        let common = common(&report, &receiver, &plan);
        let mut outcomes = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let sent = sent[number].load(Ordering::Relaxed);
            let found = ProbeReport::of(&report, &receiver, self.stream(number));
            let outcome = Outcome {
                // Unsent frames of several trials cannot be attributed to one of them; they count
                // as excusable losses.
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

/// Frames that concurrent trials are to send.
struct Plan {
    /// Total number of frames.
    frames: f64,
    /// Duration in seconds.
    seconds: f64,
    /// Mean frame size per trial.
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

    /// Divides the received bytes among trials by frame count and mean size, because the receiver
    /// counts all streams together.
    fn share_bytes(&self, bytes: u64, outcomes: &mut [Outcome]) {
        let weights = outcomes.iter().zip(&self.sizes);
        let weights = weights.map(|(outcome, size)| outcome.received as f64 * size);
        let weights: Vec<f64> = weights.collect();
        let all: f64 = weights.iter().sum();
        for (outcome, weight) in outcomes.iter_mut().zip(weights) {
            outcome.received_bytes = (bytes as f64 * weight / all.max(1.0)).round() as u64;
        }
    }
}

/// Returns the values common to all trials in a run: duration, and losses not attributable to the
/// device.
fn common(report: &RunReport, receiver: &ReceiveReport, plan: &Plan) -> Outcome {
    let lateness = report.links.first().map(|link| link.lateness_us);
    let late = lateness.map_or(0.0, |lateness| lateness.p50);
    let allowed = (plan.seconds * 1e6 * LATE_SHARE).max(LATE_LEAST_US);
    let sent = sent(report);
    let frames = |count| count_of(count, "frame");
    let slow = || format!("the generator was too slow: median lateness {late:.0} us");
    let few = || {
        let (sent, planned) = (frames(sent), plan.frames);
        format!("the generator or its port sent only {sent} of {planned:.0}")
    };
    let least = plan.frames * SENT_SHARE - plan.sizes.len() as f64;
    let not_kept = (late > allowed).then(slow);
    let not_kept = not_kept.or_else(|| ((sent as f64) < least).then(few));
    let sum = |kind: Artifact| -> u64 {
        let links = report.links.iter();
        links.map(|link| link.artifacts.of(kind.name())).sum()
    };
    let late = Artifact::ALL.into_iter().filter(|kind| kind.is_late());
    let late: u64 = late.map(sum).sum();
    let unseen = receiver.unseen.total();
    let unsent: u64 = match plan.sizes.len() {
        // A single trial does not count unsent frames as sent.
        1 => 0,
        _ => UNSENT.into_iter().map(sum).sum(),
    };
    let excuse = match (unseen, unsent, late) {
        (0, 0, 0) => None,
        (0, 0, late) => Some(format!("{} sent late, in bursts", frames(late))),
        (0, unsent, _) => Some(format!("could not send {}", frames(unsent))),
        _ => Some(format!(
            "the receiver could not examine {} (ring full, too long or unusable)",
            frames(unseen)
        )),
    };
    Outcome {
        duration_s: receiver.duration_s,
        not_kept,
        excusable: late + unseen + unsent,
        excuse,
        ..Outcome::default()
    }
}
