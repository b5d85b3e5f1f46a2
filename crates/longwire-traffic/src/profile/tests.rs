//! Profiles of known devices: an engine link in virtual time, and faulty devices.

mod services;
mod switch;

use std::sync::Arc;

use crate::arrivals::{Arrivals, Load, LoadRate};
use crate::sizes::SizeModel;
use crate::{ARRIVALS, SIZES};
use longwire_engine::models::FRAMING;
use longwire_engine::{FrameMeta, Link, LinkId, LinkSpec, Nanos, NoLoader, Verdict as Judged};
use longwire_units::random::{Purpose, Stream};

use super::search::{Search, highest};
use super::trial::{Headers, Length, Outcome, Tester, Trial, share};
use super::{Limit, ProfileError, Rfc2544, Rfc2544Test};
use longwire_runtime::Spread;

/// An engine link as the device.
struct Emulated {
    link: LinkSpec,
    sizes: Arc<dyn SizeModel>,
    /// Maximum rate of the generator in frames/s.
    breath: f64,
    /// DSCP whose frames a policer drops.
    dropped_dscp: Option<u8>,
    trials: u32,
}

fn emulated(rate: &str, queue: &str, framing: &str) -> Emulated {
    let line = format!("rate={rate} queue={queue} framing={framing} delay=1ms");
    Emulated {
        link: line.parse().expect("a valid line"),
        sizes: Arc::from(SIZES.parse("1514").expect("sizes")),
        breath: f64::INFINITY,
        dropped_dscp: None,
        trials: 0,
    }
}

/// State of one of several concurrent streams.
struct Sender {
    sizes: Arc<dyn SizeModel>,
    arrivals: Box<dyn Arrivals>,
    length: Length,
    random: Stream,
    outcome: Outcome,
    delays: Vec<f64>,
}

impl Sender {
    /// Returns the time and length of the next frame.
    fn next(&mut self) -> Option<(Nanos, u32)> {
        let sent = self.outcome.sent;
        let len = self.sizes.draw(sent, &mut self.random);
        let due = self.arrivals.due(len, &mut self.random);
        let over = match self.length {
            Length::Time(time) => due >= time,
            Length::Frames(frames) => sent >= frames,
        };
        (!over).then_some((due, len))
    }

    fn finish(mut self) -> Outcome {
        let delays = &mut self.delays;
        delays.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let at = (share * (delays.len().max(1) - 1) as f64) as usize;
            delays.get(at).copied().unwrap_or(0.0)
        };
        self.outcome.delay_us = Spread {
            count: delays.len() as u64,
            min: at(0.0),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            ..Spread::default()
        };
        self.outcome
    }
}

impl Emulated {
    /// Overrides link options.
    fn change(&mut self, line: &str) {
        self.link = self.link.overlay(&line.parse().expect("a valid line"));
    }

    fn sender(&self, trial: &Trial) -> Sender {
        let sizes = trial.sizes.as_ref().unwrap_or(&self.sizes);
        let constant = || Arc::from(ARRIVALS.parse("constant").expect("constant"));
        let arrivals = trial.arrivals.clone().unwrap_or_else(constant);
        let load = Load::new(trial.rate, &**sizes);
        let mut outcome = Outcome::default();
        if load.packets_per_sec() > self.breath {
            outcome.not_kept = Some("out of breath".to_owned());
        }
        Sender {
            sizes: Arc::clone(sizes),
            arrivals: arrivals.begin(load),
            length: trial.length,
            random: Stream::new(1, 0, Purpose::Arrivals),
            outcome,
            delays: Vec::new(),
        }
    }
}

impl Tester for Emulated {
    type Error = ProfileError;

    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, ProfileError> {
        self.trials += 1;
        let link = self.link.build(&NoLoader).expect("no plugins");
        let mut link = Link::new(link, 1, LinkId(0));
        let mut senders: Vec<Sender> = trials.iter().map(|trial| self.sender(trial)).collect();
        let mut heads: Vec<_> = senders.iter_mut().map(Sender::next).collect();
        loop {
            let due = heads.iter().enumerate();
            let due = due.filter_map(|(at, head)| head.map(|(due, len)| (due, at, len)));
            let Some((due, at, len)) = due.min() else {
                break;
            };
            let sender = &mut senders[at];
            sender.outcome.sent += 1;
            let meta = FrameMeta { arrival: due, len };
            let marked = trials[at].headers.dscp == self.dropped_dscp;
            let dropped = marked && self.dropped_dscp.is_some();
            if !dropped && let Judged::Deliver(delivery) = link.offer(meta, &[]) {
                sender.outcome.received += 1;
                sender.outcome.received_bytes += u64::from(len);
                let delay = delivery.release.saturating_sub(due);
                sender.delays.push(delay.as_micros_f64());
            }
            heads[at] = sender.next();
        }
        Ok(senders.into_iter().map(Sender::finish).collect())
    }

    fn pause(&mut self, _time: Nanos) -> Result<(), ProfileError> {
        Ok(())
    }
}

fn rfc2544(rate: &str, sizes: &[u32], tests: &[Rfc2544Test]) -> Rfc2544 {
    let rate: LoadRate = rate.parse().expect("a rate");
    Rfc2544 {
        rate: rate.framed(FRAMING.parse("ethernet").expect("ethernet")),
        sizes: sizes.to_vec(),
        tests: tests.to_vec(),
        trial: Nanos::from_secs(2),
        resolution: 5_000,
        acceptable_loss: 0.0,
        min_throughput: 0,
        bursts: 1,
    }
}

/// A 300 Mbit/s link after a 1 Gbit/s line passes 30 %. A trial of 2 s also passes the contents of
/// a queue of `queue` frames: at most queue × bits / 2 s.
#[test]
fn throughput_is_the_rate_of_the_link() {
    let mut device = emulated("300mbit", "10p", "ethernet");
    let tests = [Rfc2544Test::Throughput, Rfc2544Test::Latency];
    let test = rfc2544("1gbit", &[60, 508, 1_514], &tests);
    let report = test.run(&mut device).expect("a report");
    for size in &report.sizes {
        let found = size.throughput.as_ref().expect("throughput");
        assert_eq!(found.limit.kind, "device");
        assert!((0.295..=0.301).contains(&found.share), "{size:?}");
        // Bisecting 200 steps takes at most 9 trials.
        assert!(found.trials <= 9, "{}", found.trials);
        let latency = size.latency.as_ref().expect("latency");
        let wire = f64::from(size.frame_size + 20) * 8.0 / 300.0;
        let least = 1_000.0 + wire;
        assert!(latency.delay_us.min >= least - 0.01, "{latency:?}");
        assert!(latency.delay_us.max <= least + 11.0 * wire, "{latency:?}");
    }
    assert!(report.passed);
}

#[test]
fn a_device_at_line_rate_needs_one_trial() {
    let mut device = emulated("1gbit", "10p", "ethernet");
    let test = rfc2544("1gbit", &[60], &[Rfc2544Test::Throughput]);
    let report = test.run(&mut device).expect("a report");
    let found = report.sizes[0].throughput.as_ref().expect("throughput");
    let limit = found.limit.kind;
    assert_eq!((found.share, limit, found.trials), (1.0, "none", 1));
    assert!((found.frames_per_s - 1e9 / 672.0).abs() < 0.1, "{found:?}");
}

#[test]
fn too_little_throughput_fails() {
    let mut device = emulated("300mbit", "10p", "ethernet");
    let mut test = rfc2544("1gbit", &[508], &[Rfc2544Test::Throughput]);
    test.min_throughput = 290_000;
    assert!(test.run(&mut device).expect("a report").passed);
    test.min_throughput = 310_000;
    assert!(!test.run(&mut device).expect("a report").passed);
}

/// Loads of 100 %, 90 %, … of 1 Gbit/s into 550 Mbit/s: 45 % loss at first, and none at 50 % and 40
/// %, where the test ends.
#[test]
fn loss_is_the_load_beyond_the_rate() {
    let mut device = emulated("550mbit", "10p", "ethernet");
    let test = rfc2544("1gbit", &[508], &[Rfc2544Test::Loss]);
    let report = test.run(&mut device).expect("a report");
    let steps = &report.sizes[0].loss;
    assert_eq!(steps.len(), 7);
    for step in steps {
        let expected = (1.0 - 0.55 / step.share).max(0.0);
        assert!((step.loss - expected).abs() < 0.001, "{step:?}");
        let forwarded = step.share.min(0.55) * 1e9 / (532.0 * 8.0);
        let error = step.forwarding_per_s / forwarded - 1.0;
        assert!(error.abs() < 0.001, "{step:?}");
    }
}

/// A queue of 100 frames, including the one in service, at half the line rate: when the last of n
/// frames arrives, (n-1)/2 have departed, so n - (n-1)/2 ≤ 100. The maximum n is 199.
#[test]
fn the_longest_burst_fills_the_queue() {
    let mut device = emulated("500mbit", "100p", "ethernet");
    let mut test = rfc2544("1gbit", &[1_514], &[Rfc2544Test::BackToBack]);
    // Bursts have at most 16,000 frames; search to the exact frame.
    test.resolution = 1;
    let report = test.run(&mut device).expect("a report");
    let bursts = report.sizes[0].bursts.as_ref().expect("bursts");
    assert_eq!(bursts.limit.kind, "device");
    assert_eq!(bursts.frames_min, 199, "{bursts:?}");
}

#[test]
fn a_slow_generator_is_not_the_limit_of_the_device() {
    let mut device = emulated("900mbit", "10p", "ethernet");
    device.breath = 400_000.0;
    let tests = [Rfc2544Test::Throughput, Rfc2544Test::Loss];
    let test = rfc2544("1gbit", &[60], &tests);
    let report = test.run(&mut device).expect("a report");
    let size = &report.sizes[0];
    let found = size.throughput.as_ref().expect("throughput");
    // 400,000 of 1,488,095 frames/s equal 26.88 %.
    assert!((0.2638..=0.2689).contains(&found.share), "{found:?}");
    assert_eq!(found.limit, Limit::unknown("out of breath".to_owned()));
    let void = size.loss.iter().filter(|step| step.void.is_some());
    assert_eq!(void.count(), 8, "100 % to 30 %");
}

/// A device that loses a share of all frames; some of these losses are excusable.
struct Lossy {
    lost: u64,
    excusable: u64,
    trials: u32,
}

impl Tester for Lossy {
    type Error = ProfileError;

    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, ProfileError> {
        self.trials += 1;
        let outcome = Outcome {
            sent: 1_000,
            received: 1_000 - self.lost,
            excusable: self.excusable,
            excuse: (self.excusable > 0).then(|| "a pause".to_owned()),
            ..Outcome::default()
        };
        Ok(vec![outcome; trials.len()])
    }

    fn pause(&mut self, _time: Nanos) -> Result<(), ProfileError> {
        Ok(())
    }
}

fn search(device: &mut Lossy, acceptable_loss: f64) -> Search {
    let trial = |parts| Trial {
        sizes: None,
        rate: share("1mpps".parse().expect("a rate"), parts as u32),
        arrivals: None,
        length: Length::Frames(1_000),
        headers: Headers::default(),
        purpose: String::new(),
    };
    highest(device, 1_000_000, 100_000, acceptable_loss, &trial).expect("a search")
}

#[test]
fn only_unexcused_loss_is_attributed_to_the_device() {
    let lossy = |lost, excusable| Lossy {
        lost,
        excusable,
        trials: 0,
    };
    // Only the device can have lost these 10 frames.
    let found = search(&mut lossy(10, 0), 0.0);
    assert_eq!((found.limit, found.best), (Limit::DEVICE, 0));
    assert_eq!(found.trials, 5, "100 %, 50 %, 25 %, 12.5 %, 6.25 %");
    // A burst of 10 late frames explains up to 10 losses.
    let mut device = lossy(10, 10);
    let found = search(&mut device, 0.0);
    assert_eq!(found.limit, Limit::unknown("a pause".to_owned()));
    assert_eq!(found.trials, 15, "each three times");
    // 11 losses exceed the burst of 10 late frames.
    assert_eq!(search(&mut lossy(11, 10), 0.0).limit, Limit::DEVICE);
    // Loss up to the acceptable ratio passes.
    assert_eq!(search(&mut lossy(10, 0), 0.01).limit, Limit::NONE);
}
