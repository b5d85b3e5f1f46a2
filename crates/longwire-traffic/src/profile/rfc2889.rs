//! Benchmarks of switches after RFC 2889, as far as two ports go: forwarding
//! rates (5.1, 5.2), how many addresses a switch can keep (5.7) and how fast
//! it learns them (5.8).
//!
//! The document looks for flooded frames at a third port. With one pair of
//! ports the same is seen from the other side: a switch that has learnt an
//! address at the port where frames to it come from does not forward them
//! (IEEE 802.1Q, 8.6.1), and one that has not floods them. So addresses are
//! taught by frames from them, then frames are sent to each of them from the
//! same port: the addresses of those that come out at the other were not learnt.
//! The switch forgets by its own aging time before each trial, and each trial uses
//! new addresses, so that one that was not forgotten is never taken for learnt.

use std::sync::Arc;

use crate::arrivals::{Load, LoadRate};
use crate::sizes::FCS_LEN;
use crate::sizes::SizeModel;
use crate::sizes::fixed::Fixed;
use longwire_engine::Nanos;
use serde::Serialize;

use super::rfc2544::{LossReport, Rfc2544, STEP, WHOLE, as_share};
use super::search::{ATTEMPTS, Search, halve};
use super::trial::{Headers, Length, Outcome, Tester, Trial, Verdict, share};
use crate::generator::{MACS_MAX, MacAddress};

/// The first of the addresses that are taught; the last three octets count.
const FIRST: MacAddress = MacAddress([0x02, 0x28, 0x89, 0, 0, 0]);

/// A test of RFC 2889.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rfc2889Test {
    /// Forwarding rates from the full load down (5.1, 5.2).
    Forwarding,
    /// The number of addresses that are kept (5.7).
    Caching,
    /// The rate at which addresses are learnt (5.8).
    Learning,
}

/// Configuration of the benchmarks of RFC 2889.
#[derive(Clone, Debug)]
pub struct Rfc2889 {
    /// Rates, sizes and lengths of trials, as for RFC 2544.
    pub loads: Rfc2544,
    /// The tests to make.
    pub tests: Vec<Rfc2889Test>,
    /// The most addresses that are tried.
    pub addresses: u64,
    /// The rate at which addresses are taught where their number is searched, and at
    /// which they are looked for.
    pub teaching: LoadRate,
    /// The time after which the switch forgets an address.
    pub aging: Nanos,
}

/// The report of the benchmarks of RFC 2889.
#[derive(Clone, Debug, Serialize)]
pub struct Rfc2889Report {
    /// The rate that counts as 100 %.
    pub rate: String,
    /// How long a trial of forwarding sent, in seconds.
    pub trial_s: f64,
    /// An entry a frame size.
    pub forwarding: Vec<ForwardingReport>,
    /// How many addresses are kept.
    pub caching: Option<CachingReport>,
    /// How fast they are learnt.
    pub learning: Option<LearningReport>,
    /// Whether the maximum forwarding rate was as high as asked for.
    pub passed: bool,
}

/// Forwarding rates of one frame size (5.1, 5.2).
#[derive(Clone, Debug, Serialize)]
pub struct ForwardingReport {
    /// In bytes, with frame check sequence.
    pub frame_size: u32,
    /// The rate of 100 %, in frames a second.
    pub whole_frames_per_s: f64,
    /// Loads from the full rate down.
    pub loads: Vec<LossReport>,
    /// Forwarding rate at the maximum offered load (FRMOL), in frames a
    /// second.
    pub at_maximum_load_per_s: Option<f64>,
    /// Maximum forwarding rate (MFR), in frames a second.
    pub maximum_per_s: Option<f64>,
    /// The load at which it was found, as a share of the whole rate.
    pub maximum_at: Option<f64>,
}

/// Address caching capacity (5.7).
#[derive(Clone, Debug, Serialize)]
pub struct CachingReport {
    /// The most addresses that were all kept.
    pub addresses: u64,
    /// The most that were tried.
    pub addresses_tried: u64,
    /// `none`: all that were tried are kept; `device`: more are not;
    /// `unknown`: more could not be tested.
    pub limit: &'static str,
    /// Why they could not.
    pub reason: Option<String>,
    /// How many trials it took.
    pub trials: u32,
}

/// Address learning rate (5.8).
#[derive(Clone, Debug, Serialize)]
pub struct LearningReport {
    /// How many addresses are taught in a trial.
    pub addresses: u64,
    /// The highest rate at which all were learnt, as a share of the whole one.
    pub share: f64,
    /// The same in frames, and so in addresses, a second.
    pub frames_per_s: f64,
    /// As in the caching capacity.
    pub limit: &'static str,
    /// Why more could not be tested.
    pub reason: Option<String>,
    /// How many trials it took.
    pub trials: u32,
}

impl Rfc2889 {
    /// Makes the tests.
    ///
    /// # Errors
    /// If a trial cannot be made.
    pub fn run<T: Tester>(&self, tester: &mut T) -> Result<Rfc2889Report, T::Error> {
        let asks = |test| self.tests.contains(&test);
        let mut forwarding = Vec::new();
        if asks(Rfc2889Test::Forwarding) {
            for size in &self.loads.sizes {
                forwarding.push(self.forwarding(*size, tester)?);
            }
        }
        let mut taught = Taught::default();
        let mut caching = None;
        if asks(Rfc2889Test::Caching) {
            caching = Some(self.caching(&mut taught, tester)?);
        }
        let kept = caching
            .as_ref()
            .map_or(self.addresses, |found| found.addresses);
        let mut learning = None;
        if asks(Rfc2889Test::Learning) && kept > 0 {
            learning = Some(self.learning(kept, &mut taught, tester)?);
        }
        let needed = as_share(self.loads.min_throughput.into());
        let enough = |found: &ForwardingReport| {
            found.maximum_per_s.unwrap_or(0.0) >= needed * found.whole_frames_per_s
        };
        Ok(Rfc2889Report {
            rate: self.loads.rate.to_string(),
            trial_s: self.loads.trial.as_secs_f64(),
            passed: forwarding.iter().all(enough),
            forwarding,
            caching,
            learning,
        })
    }

    fn forwarding<T: Tester>(
        &self,
        size: u32,
        tester: &mut T,
    ) -> Result<ForwardingReport, T::Error> {
        let mut loads = Vec::new();
        for parts in (1..=WHOLE / STEP).rev().map(|step| step * STEP) {
            loads.push(self.loads.offer(size, parts, "forwarding", tester)?.0);
        }
        let told = || loads.iter().filter(|load| load.void.is_none());
        let order = |one: &&LossReport, other: &&LossReport| {
            one.forwarding_per_s.total_cmp(&other.forwarding_per_s)
        };
        let (maximum, whole) = (told().max_by(order), told().find(|load| load.share == 1.0));
        Ok(ForwardingReport {
            frame_size: size + FCS_LEN,
            whole_frames_per_s: Load::new(self.loads.rate, &Fixed::new(size)).packets_per_sec(),
            at_maximum_load_per_s: whole.map(|load| load.forwarding_per_s),
            maximum_per_s: maximum.map(|load| load.forwarding_per_s),
            maximum_at: maximum.map(|load| load.share),
            loads,
        })
    }

    fn caching<T: Tester>(
        &self,
        taught: &mut Taught,
        tester: &mut T,
    ) -> Result<CachingReport, T::Error> {
        let most = self.addresses;
        let finest = u128::from(most) * u128::from(self.loads.resolution) / u128::from(WHOLE);
        let search = halve(most, finest as u64, &mut |addresses| {
            self.teach(addresses, self.teaching, taught, tester)
        })?;
        Ok(CachingReport {
            addresses: found(&search),
            addresses_tried: most,
            limit: search.limit.name(),
            reason: search.limit.reason(),
            trials: search.trials,
        })
    }

    fn learning<T: Tester>(
        &self,
        addresses: u64,
        taught: &mut Taught,
        tester: &mut T,
    ) -> Result<LearningReport, T::Error> {
        let rate = self.loads.rate;
        let finest = u64::from(self.loads.resolution);
        let search = halve(WHOLE.into(), finest, &mut |parts| {
            self.teach(addresses, share(rate, parts as u32), taught, tester)
        })?;
        let parts = found(&search);
        let whole = Load::new(rate, &*self.shortest()).packets_per_sec();
        Ok(LearningReport {
            addresses,
            share: as_share(parts),
            frames_per_s: as_share(parts) * whole,
            limit: search.limit.name(),
            reason: search.limit.reason(),
            trials: search.trials,
        })
    }

    /// Frames that addresses are taught with: the shortest of all sizes.
    fn shortest(&self) -> Arc<dyn SizeModel> {
        let shortest = self.loads.sizes.iter().copied().min();
        Arc::new(Fixed::new(shortest.unwrap_or(60)))
    }

    /// Teaches addresses at a rate and looks whether all were learnt; again,
    /// with others, if that says nothing of the switch.
    fn teach<T: Tester>(
        &self,
        addresses: u64,
        rate: LoadRate,
        taught: &mut Taught,
        tester: &mut T,
    ) -> Result<(Outcome, Verdict), T::Error> {
        let mut attempts = 0;
        loop {
            let (outcome, verdict) = self.teach_once(addresses, rate, taught, tester)?;
            attempts += 1;
            if attempts == ATTEMPTS || !matches!(verdict, Verdict::Void(_)) {
                return Ok((outcome, verdict));
            }
        }
    }

    fn teach_once<T: Tester>(
        &self,
        addresses: u64,
        rate: LoadRate,
        taught: &mut Taught,
        tester: &mut T,
    ) -> Result<(Outcome, Verdict), T::Error> {
        if taught.trials > 0 {
            tester.pause(self.aging)?;
        }
        let first = taught.next(addresses);
        let trial = |rate, headers, purpose: &str| Trial {
            sizes: Some(self.shortest()),
            rate,
            arrivals: None,
            length: Length::Frames(addresses),
            headers,
            purpose: format!("{purpose} {addresses} addresses"),
        };
        let from = Headers {
            sources: Some((first, addresses)),
            ..Headers::default()
        };
        let teaching = tester.trial(&trial(rate, from, "teaching"))?;
        let to = Headers {
            // It is one of those that were taught: it takes no further place.
            sources: Some((first, 1)),
            destinations: Some((first, addresses)),
            ..Headers::default()
        };
        let asking = tester.trial(&trial(self.teaching, to, "looking for"))?;
        let verdict = judge(&teaching, &asking, addresses);
        Ok((asking, verdict))
    }
}

/// Returns the verdict when addresses have been taught and looked for.
fn judge(teaching: &Outcome, asking: &Outcome, addresses: u64) -> Verdict {
    for outcome in [teaching, asking] {
        if let Some(reason) = &outcome.not_kept {
            return Verdict::Void(reason.clone());
        }
        if outcome.sent < addresses {
            return Verdict::Void(format!("{} of {addresses} frames were sent", outcome.sent));
        }
    }
    if teaching.received == 0 {
        // Then no flooding is no evidence.
        return Verdict::Void("no frame at all comes out of the device".to_owned());
    }
    match asking.received {
        0 => Verdict::Passed,
        _ => Verdict::Lost,
    }
}

fn found(search: &Search) -> u64 {
    search.best.as_ref().map_or(0, |(found, _)| *found)
}

/// Addresses that were taught before.
#[derive(Debug, Default)]
struct Taught {
    trials: u64,
    addresses: u64,
}

impl Taught {
    /// Returns the first of `count` addresses that no trial had before, as long as there
    /// are any.
    fn next(&mut self, count: u64) -> MacAddress {
        let first = self.addresses % MACS_MAX;
        self.addresses += count;
        self.trials += 1;
        FIRST.number(first)
    }
}
