//! ITU-T Y.1564 activation test for Ethernet services: committed rates within limits, policing of
//! excess traffic, and all services together.
//!
//! Each service is tested alone: at 25, 50, 75 and 100 % of its committed rate, then with the
//! excess rate, then above both. If all services pass, they send at their committed rates together.
//! In colour-aware mode, excess frames are a separate stream, while committed frames must still
//! meet all limits.
//!
//! Bursts of the committed and excess size (CBS, EBS) are not tested. Delay variation is the 99.9th
//! percentile of the delay minus its minimum.

use std::sync::Arc;

use longwire_engine::models::FRAMING;
use longwire_engine::models::framing::Framing;
use longwire_engine::{BitRate, Nanos};
use serde::Serialize;

use super::search::attempt_together;
use super::trial::{Headers, Length, Outcome, ProfileError, Tester, Trial, Verdict};
use crate::arrivals::{ArrivalModel, LoadRate};
use crate::sizes::SizeModel;

/// A service's limits.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Frame loss ratio.
    pub loss: f64,
    /// Frame transfer delay, in microseconds.
    pub delay_us: f64,
    /// Frame delay variation, in microseconds.
    pub jitter_us: f64,
}

/// An Ethernet service under test.
#[derive(Clone, Debug)]
pub struct Service {
    /// Name.
    pub name: String,
    /// Committed information rate.
    pub cir: BitRate,
    /// Excess information rate.
    pub eir: Option<BitRate>,
    /// Limits.
    pub limits: Limits,
    /// Frame sizes; the generator's by default.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// Header fields that mark committed frames.
    pub committed: Headers,
    /// Header fields that mark excess frames in colour-aware mode.
    pub excess: Option<Headers>,
}

/// Activation test configuration.
#[derive(Clone, Debug)]
pub struct Y1564 {
    /// The services.
    pub services: Vec<Service>,
    /// Duration of a step of the configuration test.
    pub step: Nanos,
    /// Duration of the performance test.
    pub performance: Nanos,
    /// Arrival model.
    pub arrivals: Arc<dyn ArrivalModel>,
}

/// Activation test report.
#[derive(Clone, Debug, Serialize)]
pub struct Y1564Report {
    /// Results per service.
    pub services: Vec<ServiceReport>,
    /// Whether all steps of all services passed.
    pub passed: bool,
}

/// Results of one service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceReport {
    /// Name.
    pub name: String,
    /// Committed information rate.
    pub cir: String,
    /// Excess information rate.
    pub eir: Option<String>,
    /// Limits.
    pub limits: Limits,
    /// Steps of the configuration test, then the performance test with all services together.
    pub steps: Vec<StepReport>,
    /// Whether all steps passed.
    pub passed: bool,
}

/// Results of one step.
#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    /// Name.
    pub name: String,
    /// Information rate sent, in bit/s.
    pub sent_bits_per_s: f64,
    /// Information rate received, in bit/s.
    pub received_bits_per_s: f64,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Loss ratio.
    pub loss: f64,
    /// Maximum delay in microseconds.
    pub delay_max_us: f64,
    /// Delay variation, in microseconds.
    pub jitter_us: f64,
    /// Whether the step passed.
    pub passed: bool,
    /// Reasons for the failure.
    pub reasons: Vec<String>,
    /// Whether the failure is not attributable to the service.
    pub void: bool,
}

/// Requirement on a stream in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// All limits must be met.
    Guarantee,
    /// The received rate must reach the committed rate.
    AtLeastCir,
    /// The received rate must not exceed the sum of both rates.
    Policed,
    /// No requirement: another row of the step is judged.
    Nothing,
}

/// Tolerance of policing above the sum of both rates, for the policer's burst and rounding.
const POLICING_MARGIN: f64 = 0.05;

/// Tolerance below the committed rate if the service sends more.
const RATE_MARGIN: f64 = 0.01;

/// One stream of a step.
struct Part<'a> {
    service: &'a Service,
    name: String,
    bits: u64,
    headers: Headers,
    ask: Ask,
}

impl<'a> Part<'a> {
    fn committed(service: &'a Service, name: &str, bits: u64, ask: Ask) -> Part<'a> {
        Part {
            service,
            name: name.to_owned(),
            bits,
            headers: service.committed,
            ask,
        }
    }
}

impl Y1564 {
    /// Runs the tests. The performance test runs only if every configuration test passed.
    ///
    /// # Errors
    /// If a trial cannot be run.
    pub fn run<T: Tester>(&self, tester: &mut T) -> Result<Y1564Report, T::Error> {
        let mut steps = Vec::new();
        for service in &self.services {
            steps.push(self.configuration(service, tester)?);
        }
        if steps.iter().flatten().all(|step| step.passed) {
            let parts = self.services.iter().map(|service| {
                let cir = service.cir.bits_per_sec();
                Part::committed(service, "performance at CIR", cir, Ask::Guarantee)
            });
            let parts: Vec<Part<'_>> = parts.collect();
            let found = self.step(&parts, self.performance, tester)?;
            for (steps, found) in steps.iter_mut().zip(found) {
                steps.push(found);
            }
        }
        let services = self.services.iter().zip(steps);
        let services = services.map(|(service, steps)| ServiceReport {
            name: service.name.clone(),
            cir: service.cir.to_string(),
            eir: service.eir.map(|eir| eir.to_string()),
            limits: service.limits,
            passed: steps.iter().all(|step| step.passed),
            steps,
        });
        let services: Vec<ServiceReport> = services.collect();
        Ok(Y1564Report {
            passed: services.iter().all(|service| service.passed),
            services,
        })
    }

    /// Runs the configuration test of one service.
    fn configuration<T: Tester>(
        &self,
        service: &Service,
        tester: &mut T,
    ) -> Result<Vec<StepReport>, T::Error> {
        let cir = service.cir.bits_per_sec();
        let mut steps = Vec::new();
        for percent in [25, 50, 75, 100] {
            let name = format!("{percent} % of CIR");
            let bits = (cir / 100 * percent + cir % 100 * percent / 100).max(1);
            let part = Part::committed(service, &name, bits, Ask::Guarantee);
            steps.extend(self.step(&[part], self.step, tester)?);
        }
        let Some(eir) = service.eir.map(BitRate::bits_per_sec) else {
            return Ok(steps);
        };
        let sum = |one: u64, other: u64| one.saturating_add(other);
        // Y.1564, 8.1.2: the overload is relative to the larger rate.
        let (name, over) = if eir.saturating_mul(5) >= cir {
            ("policing: CIR + 125 % of EIR", sum(eir, eir / 4))
        } else {
            ("policing: 125 % of CIR + EIR", sum(eir, cir / 4))
        };
        for (name, beyond, ask) in [
            ("CIR + EIR", eir, Ask::AtLeastCir),
            (name, over, Ask::Policed),
        ] {
            let parts = match service.excess {
                None => vec![Part::committed(service, name, sum(cir, beyond), ask)],
                Some(headers) => vec![
                    Part::committed(service, &format!("{name}, committed"), cir, Ask::Guarantee),
                    Part {
                        service,
                        name: format!("{name}, excess"),
                        bits: beyond,
                        headers,
                        ask: Ask::Nothing,
                    },
                ],
            };
            let mut found = self.step(&parts, self.step, tester)?;
            if ask == Ask::Policed && found.len() == 2 {
                police(&mut found, service);
            }
            steps.extend(found);
        }
        Ok(steps)
    }

    /// Sends all streams concurrently and judges each.
    fn step<T: Tester>(
        &self,
        parts: &[Part<'_>],
        time: Nanos,
        tester: &mut T,
    ) -> Result<Vec<StepReport>, T::Error> {
        let mut asked = Vec::new();
        for part in parts {
            let rate = BitRate::from_bits_per_sec(part.bits);
            let too_high = || ProfileError::RateTooHigh {
                step: part.name.clone(),
            };
            let trial = Trial {
                sizes: part.service.sizes.clone(),
                rate: LoadRate::Bits(rate.ok_or_else(too_high)?, information_rate()?),
                arrivals: Some(Arc::clone(&self.arrivals)),
                length: Length::Time(time),
                headers: part.headers,
                purpose: match self.services.len() {
                    1 => part.name.clone(),
                    _ => format!("{}, {}", part.service.name, part.name),
                },
            };
            let acceptable = match part.ask {
                Ask::Guarantee => part.service.limits.loss,
                // Loss is expected in these steps.
                Ask::AtLeastCir | Ask::Policed | Ask::Nothing => 1.0,
            };
            asked.push((trial, acceptable));
        }
        let judged = attempt_together(tester, &asked, &mut 0)?;
        let steps = parts.iter().zip(judged);
        let seconds = time.as_secs_f64();
        Ok(steps
            .map(|(part, (outcome, verdict))| part.judge(&outcome, verdict, seconds))
            .collect())
    }
}

impl Part<'_> {
    fn judge(&self, outcome: &Outcome, verdict: Verdict, seconds: f64) -> StepReport {
        let service = self.service;
        // Add the FCS, which ports do not deliver.
        let bits = (outcome.received_bytes as f64 + 4.0 * outcome.received as f64) * 8.0;
        let received_bits = bits / seconds;
        let delay_max_us = outcome.delay_us.max;
        let jitter_us = outcome.delay_us.p999 - outcome.delay_us.min;
        let mut reasons = Vec::new();
        let mut void = false;
        match verdict {
            Verdict::Void(reason) => {
                void = true;
                reasons.push(reason);
            }
            Verdict::Lost => reasons.push(format!(
                "loss {:.4} % is above the limit",
                outcome.loss() * 100.0
            )),
            Verdict::Passed => {}
        }
        let least = service.cir.bits_per_sec() as f64 * (1.0 - RATE_MARGIN);
        match self.ask {
            Ask::Guarantee => {
                if delay_max_us > service.limits.delay_us {
                    reasons.push(format!("delay {delay_max_us:.0} us is above the limit"));
                }
                if jitter_us > service.limits.jitter_us {
                    reasons.push(format!("jitter {jitter_us:.0} us is above the limit"));
                }
            }
            Ask::Policed if received_bits > most(service) => reasons.push(TOO_MUCH.to_owned()),
            Ask::AtLeastCir | Ask::Policed if received_bits < least => {
                reasons.push("received less than CIR".to_owned());
            }
            Ask::AtLeastCir | Ask::Policed | Ask::Nothing => {}
        }
        StepReport {
            name: self.name.clone(),
            sent_bits_per_s: self.bits as f64,
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

/// Policing failure.
const TOO_MUCH: &str = "received more than CIR + EIR";

/// Returns a service's maximum permitted output in bit/s.
fn most(service: &Service) -> f64 {
    let eir = service.eir.map_or(0, BitRate::bits_per_sec);
    (service.cir.bits_per_sec() as f64 + eir as f64) * (1.0 + POLICING_MARGIN)
}

/// Judges the sum of a service's two streams; attributes a violation to the excess stream.
fn police(steps: &mut [StepReport], service: &Service) {
    let out: f64 = steps.iter().map(|step| step.received_bits_per_s).sum();
    if let Some(excess) = steps.last_mut().filter(|_| out > most(service)) {
        excess.reasons.push(TOO_MUCH.to_owned());
        excess.passed = false;
    }
}

/// Framing of the information rate: from the destination MAC address to the FCS (Y.1564, 3.2).
fn information_rate() -> Result<Framing, ProfileError> {
    Ok(FRAMING.parse("bytes:overhead=4")?)
}
