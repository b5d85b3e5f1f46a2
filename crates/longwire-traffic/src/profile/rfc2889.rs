//! RFC 2889 with two ports: forwarding rates (5.1, 5.2), address caching capacity (5.7) and address
//! learning rate (5.8).
//!
//! RFC 2889 detects flooded frames at a third port, but two ports suffice. A switch does not
//! forward a frame to the port at which it learned the destination (IEEE 802.1Q, 8.6.1), but floods
//! a frame whose destination is unknown. A trial therefore sends frames from the addresses, then
//! frames to the addresses into the same port: an address was not learned if its frame leaves the
//! other port. Addresses age out before each trial, and each trial uses new ones, so that a stale
//! entry never counts as learned.

use std::sync::Arc;

use crate::arrivals::{Load, LoadRate};
use crate::sizes::fixed::Fixed;
use crate::sizes::{FCS_LEN, SizeModel};
use longwire_engine::Nanos;
use serde::Serialize;

use super::rfc2544::{LossReport, Rfc2544, STEP, WHOLE, as_share};
use super::search::{ATTEMPTS, Limit, halve};
use super::trial::{Headers, Length, Outcome, Tester, Trial, Verdict, share};
use crate::generator::{MACS_MAX, MacAddress};

/// First test address; the last three octets are incremented.
const FIRST: MacAddress = MacAddress([0x02, 0x28, 0x89, 0, 0, 0]);

/// An RFC 2889 test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rfc2889Test {
    /// Forwarding rates at loads from the full rate downwards (5.1, 5.2).
    Forwarding,
    /// Number of addresses kept (5.7).
    Caching,
    /// Rate at which addresses are learned (5.8).
    Learning,
}

/// RFC 2889 benchmark configuration.
#[derive(Clone, Debug)]
pub struct Rfc2889 {
    /// Rates, sizes and durations, as for RFC 2544.
    pub loads: Rfc2544,
    /// Tests to run.
    pub tests: Vec<Rfc2889Test>,
    /// Maximum number of addresses tested.
    pub addresses: u64,
    /// Rate of address frames in the capacity test, and of probing frames.
    pub learning_rate: LoadRate,
    /// Ageing time of the switch.
    pub aging: Nanos,
}

/// RFC 2889 benchmark report.
#[derive(Clone, Debug, Serialize)]
pub struct Rfc2889Report {
    /// Rate that counts as 100 %.
    pub rate: String,
    /// Duration of a forwarding trial in seconds.
    pub trial_s: f64,
    /// Results per frame size.
    pub forwarding: Vec<ForwardingReport>,
    /// Address caching capacity.
    pub caching: Option<CachingReport>,
    /// Address learning rate.
    pub learning: Option<LearningReport>,
    /// Whether the maximum forwarding rate met the requirement.
    pub passed: bool,
}

/// Forwarding rates for one frame size (5.1, 5.2).
#[derive(Clone, Debug, Serialize)]
pub struct ForwardingReport {
    /// Frame size in bytes, with FCS.
    pub frame_size: u32,
    /// Frames/s at 100 %.
    pub whole_frames_per_s: f64,
    /// Loads from the full rate downwards.
    pub loads: Vec<LossReport>,
    /// Forwarding rate at maximum offered load (FRMOL), in frames/s.
    pub at_maximum_load_per_s: Option<f64>,
    /// Maximum forwarding rate (MFR), in frames/s.
    pub maximum_per_s: Option<f64>,
    /// Load at the maximum, as a share of the full rate.
    pub maximum_at: Option<f64>,
}

/// Address caching capacity (5.7).
#[derive(Clone, Debug, Serialize)]
pub struct CachingReport {
    /// Largest tested number of addresses that the switch kept completely.
    pub addresses: u64,
    /// Largest number tested.
    pub addresses_tried: u64,
    /// Reason why no larger number was kept.
    #[serde(flatten)]
    pub limit: Limit,
    /// Number of trials.
    pub trials: u32,
}

/// Address learning rate (5.8).
#[derive(Clone, Debug, Serialize)]
pub struct LearningReport {
    /// Number of addresses per trial.
    pub addresses: u64,
    /// Maximum rate at which all addresses were learned, as a share of the full rate.
    pub share: f64,
    /// The same rate in frames/s, which equals addresses/s.
    pub frames_per_s: f64,
    /// Reason why no higher rate passed.
    #[serde(flatten)]
    pub limit: Limit,
    /// Number of trials.
    pub trials: u32,
}

impl Rfc2889 {
    /// Runs the tests.
    ///
    /// # Errors
    /// If a trial cannot be run.
    pub fn run<T: Tester>(&self, tester: &mut T) -> Result<Rfc2889Report, T::Error> {
        let asks = |test| self.tests.contains(&test);
        let mut forwarding = Vec::new();
        let sizes = self.loads.sizes.iter();
        for size in sizes.filter(|_| asks(Rfc2889Test::Forwarding)) {
            forwarding.push(self.forwarding(*size, tester)?);
        }
        let mut pool = AddressPool::default();
        let mut caching = None;
        if asks(Rfc2889Test::Caching) {
            caching = Some(self.caching(&mut pool, tester)?);
        }
        let found = caching.as_ref();
        let kept = found.map_or(self.addresses, |found| found.addresses);
        let mut learning = None;
        if asks(Rfc2889Test::Learning) && kept > 0 {
            learning = Some(self.learning(kept, &mut pool, tester)?);
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
        let valid = || loads.iter().filter(|load| load.void.is_none());
        let order = |one: &&LossReport, other: &&LossReport| {
            one.forwarding_per_s.total_cmp(&other.forwarding_per_s)
        };
        let maximum = valid().max_by(order);
        let whole = valid().find(|load| load.share == 1.0);
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
        pool: &mut AddressPool,
        tester: &mut T,
    ) -> Result<CachingReport, T::Error> {
        let most = self.addresses;
        let finest = u128::from(most) * u128::from(self.loads.resolution) / u128::from(WHOLE);
        let search = halve(most, finest as u64, &mut |addresses| {
            self.learn(addresses, self.learning_rate, pool, tester)
        })?;
        Ok(CachingReport {
            addresses: search.best,
            addresses_tried: most,
            limit: search.limit,
            trials: search.trials,
        })
    }

    fn learning<T: Tester>(
        &self,
        addresses: u64,
        pool: &mut AddressPool,
        tester: &mut T,
    ) -> Result<LearningReport, T::Error> {
        let rate = self.loads.rate;
        let finest = u64::from(self.loads.resolution);
        let search = halve(WHOLE.into(), finest, &mut |parts| {
            self.learn(addresses, share(rate, parts as u32), pool, tester)
        })?;
        let share = as_share(search.best);
        Ok(LearningReport {
            addresses,
            share,
            frames_per_s: share * Load::new(rate, &*self.shortest()).packets_per_sec(),
            limit: search.limit,
            trials: search.trials,
        })
    }

    /// Returns the size of learning frames: the minimum.
    fn shortest(&self) -> Arc<dyn SizeModel> {
        let shortest = self.loads.sizes.iter().copied().min();
        Arc::new(Fixed::new(shortest.unwrap_or(60)))
    }

    /// Sends frames from `addresses` addresses at a rate, and checks whether all were learned.
    /// Repeats void trials with new addresses.
    fn learn<T: Tester>(
        &self,
        addresses: u64,
        rate: LoadRate,
        pool: &mut AddressPool,
        tester: &mut T,
    ) -> Result<Verdict, T::Error> {
        let mut attempts = 0;
        loop {
            let verdict = self.learn_once(addresses, rate, pool, tester)?;
            attempts += 1;
            if attempts == ATTEMPTS || !matches!(verdict, Verdict::Void(_)) {
                return Ok(verdict);
            }
        }
    }

    fn learn_once<T: Tester>(
        &self,
        addresses: u64,
        rate: LoadRate,
        pool: &mut AddressPool,
        tester: &mut T,
    ) -> Result<Verdict, T::Error> {
        if pool.trials > 0 {
            tester.pause(self.aging)?;
        }
        let first = pool.next(addresses);
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
        let learning = tester.trial(&trial(rate, from, "learning"))?;
        let to = Headers {
            // Use an address from the test as source, so that the switch learns no further address.
            sources: Some((first, 1)),
            destinations: Some((first, addresses)),
            ..Headers::default()
        };
        let probing = tester.trial(&trial(self.learning_rate, to, "probing"))?;
        Ok(judge(&learning, &probing, addresses))
    }
}

/// Returns the verdict on a learning trial and a probing trial.
fn judge(learning: &Outcome, probing: &Outcome, addresses: u64) -> Verdict {
    for outcome in [learning, probing] {
        if let Some(reason) = &outcome.not_kept {
            return Verdict::Void(reason.clone());
        }
        if outcome.sent < addresses {
            return Verdict::Void(format!("{} of {addresses} frames were sent", outcome.sent));
        }
    }
    if learning.received == 0 {
        // If the device forwards nothing, the absence of flooding proves nothing.
        return Verdict::Void("the device forwards no frames".to_owned());
    }
    match probing.received {
        0 => Verdict::Passed,
        _ => Verdict::Lost,
    }
}

/// Allocates test addresses.
#[derive(Debug, Default)]
struct AddressPool {
    trials: u64,
    addresses: u64,
}

impl AddressPool {
    /// Returns the first of `count` unused addresses; numbers wrap around.
    fn next(&mut self, count: u64) -> MacAddress {
        let first = self.addresses % MACS_MAX;
        self.addresses += count;
        self.trials += 1;
        FIRST.number(first)
    }
}
