//! Trials between two ports.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longwire_engine::models::ARRIVALS;
use longwire_engine::models::arrivals::Load;
use longwire_runtime::RunReport;
use longwire_runtime::feed::generator::GeneratorConfig;
use longwire_runtime::receive::ReceiveReport;

use super::received::{Received, sent};
use super::trial::{Length, Outcome, Tester, Trial};
use crate::commands::generate::{GenerateArgs, receive, say, settle, start_run};
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

    fn config(&self, trial: &Trial) -> Result<GeneratorConfig, Error> {
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
        Ok(GeneratorConfig {
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

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Tester for Live<'_> {
    fn trial(&mut self, trial: &Trial) -> Result<Outcome, Error> {
        /// How soon a signal is seen.
        const LOOK: Duration = Duration::from_millis(50);
        let config = self.config(trial)?;
        let planned = planned(&config);
        let receiver = receive(self.args.receive.as_deref().unwrap_or_default())?;
        let (replaying, _) = start_run(&self.args.pump, config, &self.quiet)?;
        while !self.interrupted() && !replaying.wait(LOOK) {}
        let report = replaying.stop();
        let receiver = settle(receiver, &report, self.args.settle, self.stop);
        if self.interrupted() {
            return Err(Error::Failed("interrupted; no result".to_owned()));
        }
        let failed = report.error.as_ref().or(receiver.error.as_ref());
        if let Some(error) = failed {
            return Err(Error::Failed(error.clone()));
        }
        let outcome = outcome(&report, &receiver, planned, self.args.traffic.stream);
        self.tell(trial, &outcome)?;
        Ok(outcome)
    }
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

/// How many frames are to be sent, and how long that is to take, in seconds.
fn planned(config: &GeneratorConfig) -> (f64, f64) {
    let Some(rate) = config.rate else {
        return (0.0, 0.0);
    };
    let per_second = Load::new(rate, &*config.sizes).packets_per_sec();
    match (config.count, config.time) {
        (Some(count), _) => (count as f64, count as f64 / per_second),
        (None, Some(time)) => (per_second * time.as_secs_f64(), time.as_secs_f64()),
        (None, None) => (0.0, 0.0),
    }
}

/// What a run came to, and what of it is not the device's doing.
fn outcome(
    report: &RunReport,
    receiver: &ReceiveReport,
    (frames, seconds): (f64, f64),
    stream: u32,
) -> Outcome {
    let received = Received::of(report, receiver, stream);
    let lateness = report.links.first().map(|link| link.lateness_us);
    let late = lateness.map_or(0.0, |lateness| lateness.p50);
    let allowed = (seconds * 1e6 * LATE_SHARE).max(LATE_LEAST_US);
    let sent = sent(report);
    let not_kept = if late > allowed {
        Some(format!(
            "the generator could not keep the rate: half of its frames left {late:.0} us late and \
             more"
        ))
    } else if (sent as f64) < frames * SENT_SHARE - 1.0 {
        Some(format!(
            "the generator or its port sent {sent} frames of {frames:.0}"
        ))
    } else {
        None
    };
    let artifacts = report
        .links
        .iter()
        .filter_map(|link| link.artifacts.get("late"));
    let (late, unseen) = (artifacts.sum::<u64>(), receiver.unseen.total());
    let excuse = match (late, unseen) {
        (0, 0) => None,
        (late, 0) => Some(format!("{late} frames were sent late, and so in bursts")),
        (_, unseen) => Some(format!("the receiver had no room for {unseen} frames")),
    };
    Outcome {
        sent,
        received: received.received,
        received_bytes: receiver.bytes,
        duration_s: receiver.duration_s,
        delay_us: received.delay_us,
        jitter_us: received.jitter_us,
        reordered: received.reordered,
        not_kept,
        excusable: late + unseen,
        excuse,
    }
}
