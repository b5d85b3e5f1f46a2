//! The activation test of one Ethernet service, after ITU-T Y.1564: does it
//! carry what it guarantees, within its limits; does it police the rest; does
//! it last?
//!
//! Left out: several services at once, each with its own rates (run one test
//! for each), bursts of the committed and excess size (CBS, EBS), and colours
//! of frames. Delay variation is the 99.9th percentile of delays less the
//! least.

use std::sync::Arc;

use longwire_engine::models::FRAMING;
use longwire_engine::models::arrivals::{ArrivalModel, LoadRate};
use longwire_engine::models::framing::Framing;
use longwire_engine::{BitRate, Nanos};
use serde::Serialize;

use super::args::ProfileArgs;
use super::search::attempt;
use super::trial::{Length, Outcome, Tester, Trial, Verdict};
use crate::Error;
use crate::cli::TrafficArgs;

/// What is to be tested.
#[derive(Clone, Debug)]
pub struct Y1564 {
    /// Committed information rate.
    pub cir: BitRate,
    /// Excess information rate.
    pub eir: Option<BitRate>,
    /// What the service must keep to.
    pub limits: Limits,
    /// How long each step of the configuration test sends.
    pub step: Nanos,
    /// How long the performance test sends.
    pub performance: Nanos,
    /// How frames are spread.
    pub arrivals: Arc<dyn ArrivalModel>,
}

/// The limits of a service.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Frame loss ratio.
    pub loss: f64,
    /// Frame transfer delay, in microseconds.
    pub delay_us: f64,
    /// Frame delay variation, in microseconds.
    pub jitter_us: f64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Y1564Report {
    /// Committed information rate.
    pub cir: String,
    /// Excess information rate.
    pub eir: Option<String>,
    /// What the service must keep to.
    pub limits: Limits,
    /// The configuration test's steps, then the performance test.
    pub steps: Vec<StepReport>,
    /// Whether every step passed.
    pub passed: bool,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    /// What it is called.
    pub name: String,
    /// Information rate sent, in bits a second.
    pub sent_bits_per_s: f64,
    /// Information rate received, in bits a second.
    pub received_bits_per_s: f64,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// The share that was lost.
    pub loss: f64,
    /// The greatest delay, in microseconds.
    pub delay_max_us: f64,
    /// Delay variation, in microseconds.
    pub jitter_us: f64,
    /// Whether it passed.
    pub passed: bool,
    /// What was wrong.
    pub reasons: Vec<String>,
    /// Whether what was wrong is not the service's doing.
    pub void: bool,
}

/// What a step asks of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// All limits.
    Guarantee,
    /// The guaranteed rate comes out, whatever else.
    AtLeastCir,
    /// No more than both rates comes out.
    Policed,
}

/// What may come out beyond both rates and still count as policed: the burst
/// that a policer lets through, and what rates are rounded to.
const POLICING_MARGIN: f64 = 0.05;

/// How much of the guaranteed rate must come out when more is sent.
const RATE_MARGIN: f64 = 0.01;

impl Y1564 {
    /// As the options say.
    ///
    /// # Errors
    /// If the guaranteed rate is missing, or the arrivals are wrong.
    pub fn new(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Y1564, Error> {
        let cir = args.cir;
        Ok(Y1564 {
            cir: cir.ok_or_else(|| Error::Usage("give --cir".to_owned()))?,
            eir: args.eir,
            limits: Limits {
                loss: args.max_loss.as_f64(),
                delay_us: args.max_delay.as_micros_f64(),
                jitter_us: args.max_jitter.as_micros_f64(),
            },
            step: args.trial,
            performance: args.performance_time,
            arrivals: traffic.arrival_model()?,
        })
    }

    /// Makes the tests. The performance test is made only of a service whose
    /// configuration is right.
    ///
    /// # Errors
    /// If a trial cannot be made.
    pub fn run(&self, tester: &mut dyn Tester) -> Result<Y1564Report, Error> {
        let cir = self.cir.bits_per_sec();
        let mut steps = Vec::new();
        for percent in [25, 50, 75, 100] {
            let name = format!("{percent} % of CIR");
            let bits = (cir * percent / 100).max(1);
            steps.push(self.step(&name, bits, self.step, Ask::Guarantee, tester)?);
        }
        if let Some(eir) = self.eir.map(BitRate::bits_per_sec) {
            steps.push(self.step("CIR + EIR", cir + eir, self.step, Ask::AtLeastCir, tester)?);
            // Y.1564, 8.1.2: an excess that is small beside the guaranteed
            // rate is overstepped by more.
            let (name, bits) = match eir * 5 >= cir {
                true => ("policing: CIR + 125 % of EIR", cir + eir * 5 / 4),
                false => ("policing: 125 % of CIR + EIR", cir * 5 / 4 + eir),
            };
            steps.push(self.step(name, bits, self.step, Ask::Policed, tester)?);
        }
        if steps.iter().all(|step| step.passed) {
            let time = self.performance;
            steps.push(self.step("performance at CIR", cir, time, Ask::Guarantee, tester)?);
        }
        Ok(Y1564Report {
            cir: self.cir.to_string(),
            eir: self.eir.map(|eir| eir.to_string()),
            limits: self.limits,
            passed: steps.iter().all(|step| step.passed),
            steps,
        })
    }

    fn step(
        &self,
        name: &str,
        bits: u64,
        time: Nanos,
        ask: Ask,
        tester: &mut dyn Tester,
    ) -> Result<StepReport, Error> {
        let rate = BitRate::from_bits_per_sec(bits);
        let rate = rate.ok_or_else(|| Error::Usage(format!("{name}: the rate is too high")))?;
        let trial = Trial {
            sizes: None,
            rate: LoadRate::Bits(rate, information_rate()?),
            arrivals: Some(Arc::clone(&self.arrivals)),
            length: Length::Time(time),
            purpose: name.to_owned(),
        };
        let acceptable = match ask {
            Ask::Guarantee => self.limits.loss,
            // Loss is what is asked for.
            Ask::AtLeastCir | Ask::Policed => 1.0,
        };
        let (outcome, verdict) = attempt(tester, &trial, acceptable, &mut 0)?;
        Ok(self.judge(
            name,
            &outcome,
            verdict,
            (bits as f64, time.as_secs_f64()),
            ask,
        ))
    }

    fn judge(
        &self,
        name: &str,
        outcome: &Outcome,
        verdict: Verdict,
        (sent_bits, seconds): (f64, f64),
        ask: Ask,
    ) -> StepReport {
        // With the frame check sequence, which no port hands in.
        let bits = (outcome.received_bytes as f64 + 4.0 * outcome.received as f64) * 8.0;
        let received_bits = bits / seconds;
        let delay_max_us = outcome.delay_us.max;
        let jitter_us = outcome.delay_us.p999 - outcome.delay_us.min;
        let (cir, eir) = (
            self.cir.bits_per_sec() as f64,
            self.eir.map_or(0, BitRate::bits_per_sec) as f64,
        );
        let mut reasons = Vec::new();
        let mut void = false;
        match verdict {
            Verdict::Void(reason) => {
                void = true;
                reasons.push(reason);
            }
            Verdict::Lost => reasons.push(format!("loss {:.4} %", outcome.loss() * 100.0)),
            Verdict::Passed => {}
        }
        match ask {
            Ask::Guarantee => {
                if delay_max_us > self.limits.delay_us {
                    reasons.push(format!("delay {delay_max_us:.0} us"));
                }
                if jitter_us > self.limits.jitter_us {
                    reasons.push(format!("jitter {jitter_us:.0} us"));
                }
            }
            Ask::AtLeastCir if received_bits < cir * (1.0 - RATE_MARGIN) => {
                reasons.push("less than CIR came out".to_owned());
            }
            Ask::Policed if received_bits > (cir + eir) * (1.0 + POLICING_MARGIN) => {
                reasons.push("more than CIR + EIR came out".to_owned());
            }
            Ask::Policed if received_bits < cir * (1.0 - RATE_MARGIN) => {
                reasons.push("less than CIR came out".to_owned());
            }
            Ask::AtLeastCir | Ask::Policed => {}
        }
        StepReport {
            name: name.to_owned(),
            sent_bits_per_s: sent_bits,
            received_bits_per_s: received_bits,
            sent: outcome.sent,
            received: outcome.received,
            loss: outcome.loss(),
            delay_max_us,
            jitter_us,
            passed: reasons.is_empty(),
            reasons,
            void,
        }
    }
}

/// Information rate: from the destination MAC address to the frame check
/// sequence (Y.1564, 3.2).
fn information_rate() -> Result<Framing, Error> {
    let framing = FRAMING.parse("bytes:overhead=4");
    framing.map_err(|error| Error::Failed(error.to_string()))
}
