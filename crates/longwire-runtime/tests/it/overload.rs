//! A live network that receives more frames than its output accepts in time reports an
//! overload per port and per link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longwire_engine::{LinkConfig, LinkId, LinkSpec, Nanos, NoLoader, PathId};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::own::{OwnRx, OwnTx};
use longwire_io::port::{AnyRx, AnyTx, Port};
use longwire_io::{PortError, PushResult, ReceiveResult, RxFrame};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::{Classifier, Matcher, Order};
use longwire_runtime::fabric::{FabricParts, LinkCells, Sharding, Target};
use longwire_runtime::{
    NetworkPlan, OnPortLoss, Placement, RunConfig, RunReport, RunningNetwork, start,
};

use crate::common::PushFn;

/// Alternates frames of two stations at a steady rate.
struct Source {
    per_second: u64,
    /// Number of frames after which the port goes away.
    count_max: u64,
    start: Option<Nanos>,
    sent: u64,
    /// When the network last took all frames in time.
    in_time: Nanos,
    /// Longest time in nanoseconds during which the network lagged behind its input.
    behind_max: Arc<AtomicU64>,
}

impl OwnRx for Source {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        if self.sent >= self.count_max {
            return Err(PortError::Unsupported {
                port: "in".to_owned(),
                reason: "away".to_owned(),
            });
        }
        let start = *self.start.get_or_insert(now);
        let next = start.as_nanos() + self.sent * 1_000_000_000 / self.per_second;
        if now.as_nanos() <= next + 1_000_000 {
            self.in_time = now;
        }
        let behind = now.saturating_sub(self.in_time.max(start)).as_nanos();
        self.behind_max.fetch_max(behind, Ordering::Relaxed);
        let due = now.saturating_sub(start).as_nanos() * self.per_second / 1_000_000_000;
        let frames = (due - self.sent).min(max as u64);
        for _ in 0..frames {
            let mut bytes = [0; 60];
            bytes[0] = 2;
            bytes[6] = 2;
            bytes[11] = (self.sent % 2) as u8;
            take(RxFrame::whole(
                &bytes,
                start.saturating_add(Nanos::from_nanos(
                    self.sent * 1_000_000_000 / self.per_second,
                )),
            ));
            self.sent += 1;
        }
        Ok(ReceiveResult {
            frames: frames as usize,
            end: false,
        })
    }

    fn frame_max(&self) -> usize {
        60
    }
}

/// Takes 50 us per frame: 20,000 frames/s.
fn slow() -> impl OwnTx {
    PushFn::new(|_| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        PushResult::Taken
    })
}

/// Accepts nothing for half a second after the first frame, then everything.
fn stalled() -> impl OwnTx {
    let mut since = None;
    PushFn::new(move |_| {
        let since = *since.get_or_insert_with(Instant::now);
        if since.elapsed() < Duration::from_millis(500) {
            PushResult::Full
        } else {
            PushResult::Taken
        }
    })
}

impl Source {
    fn new(per_second: u64) -> Source {
        Source {
            per_second,
            count_max: u64::MAX,
            start: None,
            sent: 0,
            in_time: Nanos::ZERO,
            behind_max: Arc::default(),
        }
    }
}

/// Starts two links, one per station, with these counters.
fn begin(
    source: Source,
    output: impl OwnTx + 'static,
    cells: &[Arc<LinkCells>],
    link: impl Fn() -> LinkConfig,
) -> RunningNetwork {
    let mut classifier = Classifier::new(Order::First, Target::Pass);
    for station in 0..2 {
        let matcher = format!("src-mac=02:00:00:00:00:0{station}");
        let matcher: Matcher = matcher.parse().expect("a matcher");
        let target = Target::Path(PathId(station));
        classifier.insert(matcher, target, 0).expect("room");
    }
    let mut switch = BridgeConfig::new(2);
    switch.switching = Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]);
    let links = cells.iter().map(|cells| (link(), Arc::clone(cells)));
    let parts = FabricParts {
        switch,
        classifier,
        links: links.collect(),
        paths: vec![vec![LinkId(0)], vec![LinkId(1)]],
        orders: Vec::new(),
        on_port_loss: OnPortLoss::End,
        sharding: Sharding::one(),
        remote: None,
    };
    let port = |name: &str, rx, tx| (name.to_owned(), Port::with_halves(name, rx, tx));
    let ports = vec![
        port(
            "in",
            AnyRx::Own(Box::new(source)),
            AnyTx::Discard(DiscardTx::default()),
        ),
        port("out", AnyRx::Silent(SilentRx), AnyTx::Own(Box::new(output))),
    ];
    let config = RunConfig {
        placement: Placement::Together,
        // Late frames of the start count too.
        grace: Nanos::ZERO,
        ..RunConfig::default()
    };
    let plan = NetworkPlan::changeable(ports, parts);
    start(plan, config, None).expect("a fabric")
}

fn two_cells() -> Vec<Arc<LinkCells>> {
    (0..2).map(|_| Arc::default()).collect()
}

/// Runs two links for a while; returns port and link reports.
fn run(
    per_second: u64,
    output: impl OwnTx + 'static,
    time: Duration,
) -> (RunReport, Vec<Arc<LinkCells>>) {
    let (report, cells, _) = run_with_witness(per_second, output, time);
    (report, cells)
}

/// Like [`run`], with the longest lag.
fn run_with_witness(
    per_second: u64,
    output: impl OwnTx + 'static,
    time: Duration,
) -> (RunReport, Vec<Arc<LinkCells>>, Duration) {
    let cells = two_cells();
    let source = Source::new(per_second);
    let behind_max = Arc::clone(&source.behind_max);
    let running = begin(source, output, &cells, LinkConfig::default);
    std::thread::sleep(time);
    let report = running.stop();
    let behind = Duration::from_nanos(behind_max.load(Ordering::Relaxed));
    (report, cells, behind)
}

/// Asserts that all arrived frames left, were dropped, or are inside.
fn assert_conserved(report: &RunReport, cells: &[Arc<LinkCells>]) -> u64 {
    let came = report.ports[0].traffic.packets_in;
    let left = report.ports[1].traffic.packets_out;
    let lost = report.ports.iter().map(|port| {
        let kinds = ["memory", "refused", "ring_full", "too_long", "unusable"];
        kinds
            .map(|kind| port.artifacts.of(kind))
            .iter()
            .sum::<u64>()
    });
    let lost: u64 = lost.sum();
    let dropped: u64 = cells.iter().map(|cells| cells.totals().drops.total()).sum();
    let gone = left + lost + dropped;
    assert_eq!(
        came,
        gone + report.in_flight,
        "{left} left, {lost} lost, {dropped} dropped"
    );
    report.in_flight
}

/// Returns a link without drops, which are read at a later moment.
fn delaying() -> LinkConfig {
    let spec: LinkSpec = "delay=5ms".parse().expect("a link");
    spec.build(&NoLoader).expect("a link")
}

fn taking() -> impl OwnTx {
    PushFn::new(|_| PushResult::Taken)
}

#[test]
fn every_report_accounts_for_every_frame() {
    for _ in 0..5 {
        let cells = two_cells();
        let running = begin(Source::new(50_000), taking(), &cells, delaying);
        let mut inside = 0;
        for _ in 0..40 {
            inside += assert_conserved(&running.snapshot(), &cells);
            std::thread::sleep(Duration::from_millis(1));
        }
        inside += assert_conserved(&running.stop(), &cells);
        assert!(inside > 0, "no frame was ever inside");
    }
}

#[test]
fn a_report_after_the_end_accounts_for_frames_inside() {
    let cells = two_cells();
    let source = Source {
        count_max: 1_000,
        ..Source::new(50_000)
    };
    let running = begin(source, taking(), &cells, delaying);
    assert!(running.wait(Duration::from_mins(1)), "the port went away");
    let inside = assert_conserved(&running.snapshot(), &cells);
    assert!(inside > 0, "no frame was inside");
    assert_eq!(assert_conserved(&running.stop(), &cells), inside);
}

#[test]
fn an_overload_is_counted_per_port_and_per_link() {
    let (report, cells) = run(100_000, slow(), Duration::from_millis(1_500));
    let artifacts = &report.ports[1].artifacts;
    let overload = artifacts.get("overload").copied().unwrap_or(0);
    assert!(overload > 1_000, "{artifacts:?}");
    assert!(artifacts["late"] > 0, "before it was clear: {artifacts:?}");
    let links: Vec<_> = cells.iter().map(|cells| cells.totals()).collect();
    for totals in &links {
        assert!(totals.handovers.overload > 500, "{totals:?}");
        assert!(totals.handovers.late_max_ns > 500_000_000, "{totals:?}");
    }
    // Each late frame counts once.
    assert!(overload + artifacts["late"] <= report.ports[1].traffic.packets_out);
    assert_links_agree(&report, &cells);
}

/// Asserts that late and overload counts of links and port agree.
#[track_caller]
fn assert_links_agree(report: &RunReport, cells: &[Arc<LinkCells>]) {
    let links: Vec<_> = cells.iter().map(|cells| cells.totals()).collect();
    let late: u64 = links.iter().map(|link| link.handovers.late).sum();
    let overload: u64 = links.iter().map(|link| link.handovers.overload).sum();
    let artifacts = &report.ports[1].artifacts;
    assert_eq!(late, artifacts["late"], "{artifacts:?}");
    assert_eq!(overload, artifacts["overload"], "{artifacts:?}");
}

#[test]
fn frames_that_waited_for_a_receiver_are_late_at_no_link() {
    let (report, cells, behind) = run_with_witness(2_000, stalled(), Duration::from_millis(1_000));
    assert_links_agree(&report, &cells);
    let waited = report.ports[1].artifacts["late_receiver"];
    // A pause of the machine may make frames late before the receiver does.
    assert!(
        waited > 500 || behind > Duration::from_millis(100),
        "{waited} frames, behind for {behind:?}"
    );
}
