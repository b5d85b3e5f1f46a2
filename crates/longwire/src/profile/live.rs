//! Trials between two ports.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_engine::models::ARRIVALS;
use longwire_engine::models::arrivals::Load;
use longwire_runtime::RunReport;
use longwire_runtime::feed::generator::{GeneratorConfig, TogetherFeed};
use longwire_runtime::receive::ReceiveReport;

use super::received::{Received, UNSENT, sent};
use super::trial::{Length, Outcome, Tester, Trial};
use crate::commands::generate::{GenerateArgs, receive, say, settle, start_feed};
use crate::report::artifacts::is_late;
use crate::report::text::count_of;
use crate::{Error, Globals};

/// Sends and receives, one run a trial.
pub(super) struct Live<'a> {
    args: &'a GenerateArgs,
    /// Of the runs themselves nothing is said but errors.
    quiet: Globals,
    globals: &'a Globals,
    stop: &'a AtomicBool,
    config: GeneratorConfig,
}

/// A rate counts as kept if half of all frames left so much of the trial's
/// length late at the most: one that is too high by a thousandth is not.
const LATE_SHARE: f64 = 0.0005;

/// So late a frame may always be: what the machine's pauses cost short trials.
const LATE_LEAST_US: f64 = 500.0;

/// So much of what was to be sent must have been.
const SENT_SHARE: f64 = 0.999;

impl<'a> Live<'a> {
    pub fn new(
        args: &'a GenerateArgs,
        globals: &'a Globals,
        stop: &'a AtomicBool,
    ) -> Result<Live<'a>, Error> {
        let config = args.traffic.config(args.pump.seed.seed)?;
        let quiet = Globals {
            quiet: true,
            verbose: false,
            ..globals.clone()
        };
        Ok(Live {
            args,
            quiet,
            globals,
            stop,
            config,
        })
    }

    /// What the trial of this number sends, of those at the same time.
    fn config(&self, trial: &Trial, number: usize) -> Result<GeneratorConfig, Error> {
        let arrivals = match &trial.arrivals {
            Some(arrivals) => arrivals.clone(),
            None => {
                let constant = ARRIVALS.parse("constant");
                constant
                    .map_err(|error| Error::Failed(error.to_string()))?
                    .into()
            }
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
        self.args.traffic.stream + number as u32
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Tester for Live<'_> {
    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, Error> {
        /// How soon a signal is seen.
        const LOOK: Duration = Duration::from_millis(50);
        let configs = trials.iter().enumerate();
        let configs = configs.map(|(number, trial)| self.config(trial, number));
        let configs: Vec<GeneratorConfig> = configs.collect::<Result<_, _>>()?;
        let plan = Plan::of(&configs);
        let feed = TogetherFeed::new(configs).map_err(|error| Error::Usage(error.to_string()))?;
        let sent = feed.sent();
        let receiver = receive(self.args.receive.as_deref().unwrap_or_default())?;
        let (replaying, _) = start_feed(&self.args.pump, Box::new(feed), &self.quiet)?;
        while !self.interrupted() && !replaying.wait(LOOK) {}
        let report = replaying.stop();
        let receiver = settle(receiver, &report, self.args.settle, self.stop);
        if self.interrupted() {
            return Err(interrupted());
        }
        let failed = report.error.as_ref().or(receiver.error.as_ref());
        if let Some(error) = failed {
            return Err(Error::Failed(error.clone()));
        }
        let common = common(&report, &receiver, &plan);
        let mut outcomes = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let sent = sent[number].load(Ordering::Relaxed);
            let found = Received::of(&report, &receiver, self.stream(number));
            let outcome = Outcome {
                // Nobody knows whose frames were kept from the device if there
                // were several: they are lost, and excusable.
                sent: if trials.len() == 1 { found.sent } else { sent },
                received: found.received,
                delay_us: found.delay_us,
                jitter_us: found.jitter_us,
                reordered: found.reordered,
                ..common.clone()
            };
            self.tell(trial, &outcome)?;
            outcomes.push(outcome);
        }
        plan.share_bytes(receiver.bytes, &mut outcomes);
        Ok(outcomes)
    }

    fn pause(&mut self, time: Nanos) -> Result<(), Error> {
        const LOOK: Duration = Duration::from_millis(20);
        let until = Instant::now() + Duration::from_nanos(time.as_nanos());
        while Instant::now() < until {
            if self.interrupted() {
                return Err(interrupted());
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

fn interrupted() -> Error {
    Error::Failed("interrupted; no result".to_owned())
}

impl Live<'_> {
    fn tell(&self, trial: &Trial, outcome: &Outcome) -> io::Result<()> {
        let loss = outcome.loss() * 100.0;
        let remark = outcome.not_kept.as_ref().or(outcome.excuse.as_ref());
        let remark = remark.map_or(String::new(), |remark| format!(" ({remark})"));
        let line = format!(
            "{}: {} sent, {} received, {loss:.4} % lost{remark}",
            trial.purpose, outcome.sent, outcome.received
        );
        say(&line, self.globals)
    }
}

/// What trials at the same time come to if all goes well.
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
            let Some(rate) = config.rate else {
                continue;
            };
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

    /// Shares what was received out to trials, by their frames and the mean of
    /// their sizes: the receiver counts bytes of all streams together.
    fn share_bytes(&self, bytes: u64, outcomes: &mut [Outcome]) {
        let weights = outcomes.iter().zip(&self.sizes);
        let weights = weights.map(|(outcome, size)| outcome.received as f64 * size);
        let weights: Vec<f64> = weights.collect();
        let all: f64 = weights.iter().sum();
        for (outcome, weight) in outcomes.iter_mut().zip(weights) {
            outcome.received_bytes = match all > 0.0 {
                true => (bytes as f64 * weight / all).round() as u64,
                false => 0,
            };
        }
    }
}

/// What a run came to that is not one trial's alone, and is not the device's
/// doing.
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
            count_of(sent, "frame"),
            plan.frames
        ))
    } else {
        None
    };
    let sum = |kind: &str| {
        let links = report.links.iter();
        links
            .filter_map(|link| link.artifacts.get(kind))
            .sum::<u64>()
    };
    let artifacts = report.links.iter().flat_map(|link| &link.artifacts);
    let late = artifacts.filter(|(kind, _)| is_late(kind));
    let late: u64 = late.map(|(_, count)| *count).sum();
    let unseen = receiver.unseen.total();
    let unsent: u64 = match plan.sizes.len() {
        // One trial's are not counted as sent.
        1 => 0,
        _ => UNSENT.into_iter().map(sum).sum(),
    };
    let excuse = if unseen > 0 {
        Some(format!(
            "the receiver had no room for {}",
            count_of(unseen, "frame")
        ))
    } else if unsent > 0 {
        Some(format!("could not send {}", count_of(unsent, "frame")))
    } else {
        (late > 0).then(|| format!("{} sent late, and so in bursts", count_of(late, "frame")))
    };
    Outcome {
        duration_s: receiver.duration_s,
        not_kept,
        excusable: late + unseen + unsent,
        excuse,
        ..Outcome::default()
    }
}
