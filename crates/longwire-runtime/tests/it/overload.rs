//! A live network reports an overload, per port and per link, if it receives more frames than its
//! output accepts in time.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longwire_engine::{Bytes, Nanos, PathId};
use longwire_io::port::own::OwnRx;
use longwire_io::{PortError, PushResult, ReceiveResult, RxFrame, TxPort};
use longwire_runtime::deciding::{NetworkParts, Sharding, Target};
use longwire_runtime::{
    LinkSetup, NetworkPlan, Placement, RunConfig, RunReport, RunningNetwork, start,
};

use crate::common::network::{AllCells, link, pair, parts, rules};
use crate::common::{PushFn, input, output};

/// Alternates frames from two stations at a steady rate.
struct Source {
    per_second: u64,
    /// Number of frames after which the port disappears.
    count_max: u64,
    start: Option<Nanos>,
    sent: u64,
    /// Time at which the network last accepted all frames in time.
    in_time: Nanos,
    /// Longest time that the network lagged behind its input, in nanoseconds.
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
            let after = Nanos::from_nanos(self.sent * 1_000_000_000 / self.per_second);
            take(RxFrame::whole(&bytes, start.saturating_add(after)));
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

/// An output that takes 50 us per frame: 20,000 frames/s.
fn slow() -> impl TxPort + Send {
    PushFn::new(|_| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        PushResult::Taken
    })
}

/// An output that accepts nothing for half a second after the first frame, then everything.
fn stalled() -> impl TxPort + Send {
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

/// Starts two links, one per station, and returns their counters.
fn begin(
    source: Source,
    tx: impl TxPort + Send + 'static,
    line: &str,
) -> (RunningNetwork, AllCells) {
    let stations = [
        ("src-mac=02:00:00:00:00:00", 0),
        ("src-mac=02:00:00:00:00:01", 1),
    ];
    let rules = rules(Target::Pass, &stations);
    let (parts, cells) = parts(pair(), rules, [link(line), link(line)], &[&[0], &[1]]);
    let ports = vec![
        ("in".to_owned(), input("in", source)),
        ("out".to_owned(), output("out", tx)),
    ];
    let config = RunConfig {
        placement: Placement::Together,
        // Count late frames at the start too.
        grace: Nanos::ZERO,
        ..RunConfig::default()
    };
    let plan = NetworkPlan::changeable(ports, parts);
    (start(plan, config, None).expect("a network"), cells)
}

/// Runs two links for a while. Returns the report, the counters and the longest lag.
fn run(
    per_second: u64,
    tx: impl TxPort + Send + 'static,
    time: Duration,
) -> (RunReport, AllCells, Duration) {
    let source = Source::new(per_second);
    let behind_max = Arc::clone(&source.behind_max);
    let (running, cells) = begin(source, tx, "");
    std::thread::sleep(time);
    let report = running.stop();
    let behind = Duration::from_nanos(behind_max.load(Ordering::Relaxed));
    (report, cells, behind)
}

/// Asserts that all arrived frames left, were dropped, or are in the network.
fn assert_conserved(report: &RunReport, cells: &AllCells) -> u64 {
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
    let found = left + lost + dropped + report.in_flight;
    assert_eq!(came, found, "{left} left, {lost} lost, {dropped} dropped");
    report.in_flight
}

/// A link without drops, because drop counters are read later than other counters.
const DELAYING: &str = "delay=5ms";

fn taking() -> impl TxPort + Send {
    PushFn::new(|_| PushResult::Taken)
}

#[test]
fn every_report_accounts_for_every_frame() {
    for _ in 0..5 {
        let (running, cells) = begin(Source::new(50_000), taking(), DELAYING);
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
    let source = Source {
        count_max: 1_000,
        ..Source::new(50_000)
    };
    let (running, cells) = begin(source, taking(), DELAYING);
    assert!(running.wait(Duration::from_mins(1)), "the port went away");
    let inside = assert_conserved(&running.snapshot(), &cells);
    assert!(inside > 0, "no frame was inside");
    assert_eq!(assert_conserved(&running.stop(), &cells), inside);
}

#[test]
fn an_overload_is_counted_per_port_and_per_link() {
    let (report, cells, _) = run(100_000, slow(), Duration::from_millis(1_500));
    let artifacts = &report.ports[1].artifacts;
    let overload = artifacts.get("overload").copied().unwrap_or(0);
    assert!(overload > 1_000, "{artifacts:?}");
    assert!(
        artifacts["late"] > 0,
        "before the overload was detected: {artifacts:?}"
    );
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
fn assert_links_agree(report: &RunReport, cells: &AllCells) {
    let links: Vec<_> = cells.iter().map(|cells| cells.totals()).collect();
    let late: u64 = links.iter().map(|link| link.handovers.late).sum();
    let overload: u64 = links.iter().map(|link| link.handovers.overload).sum();
    let artifacts = &report.ports[1].artifacts;
    assert_eq!(late, artifacts["late"], "{artifacts:?}");
    assert_eq!(overload, artifacts["overload"], "{artifacts:?}");
}

#[test]
fn frames_that_waited_for_a_receiver_are_late_at_no_link() {
    let (report, cells, behind) = run(2_000, stalled(), Duration::from_millis(1_000));
    assert_links_agree(&report, &cells);
    let waited = report.ports[1].artifacts["late_receiver"];
    // A machine pause may make frames late before the receiver does.
    assert!(
        waited > 500 || behind > Duration::from_millis(100),
        "{waited} frames, behind for {behind:?}"
    );
}

/// Frames that wait for a full port until the end of the run are late, on each path through the
/// stages.
#[test]
fn frames_that_never_leave_are_late() {
    let full = || output("out", PushFn::new(|_| PushResult::Full));
    let both = || {
        let ports = [("in", input("in", Source::new(1_000))), ("out", full())];
        Vec::from(ports.map(|(name, port)| (name.to_owned(), port)))
    };
    let of_links = |sources: &[(&str, u32)]| {
        let links = [link("delay=1ms"), link("delay=1ms")];
        let (parts, _) = parts(
            pair(),
            rules(Target::Path(PathId(0)), sources),
            links,
            &[&[0], &[1]],
        );
        parts
    };
    let sharded = NetworkParts {
        sharding: Sharding::new(vec![0, 1], 2, NonZero::<usize>::MIN),
        ..of_links(&[])
    };
    let setup = LinkSetup::new("link", link("delay=1ms"));
    let stations = [("src-mac=02:00:00:00:00:01", 1)];
    let plans = [
        (
            "pair",
            NetworkPlan::link(input("in", Source::new(1_000)), full(), setup, None),
        ),
        ("lane", NetworkPlan::changeable(both(), of_links(&[]))),
        (
            "network",
            NetworkPlan::changeable(both(), of_links(&stations)),
        ),
        ("shards", NetworkPlan::changeable(both(), sharded)),
    ];
    for (name, plan) in plans {
        let running = start(plan, RunConfig::default(), None).expect("a network");
        std::thread::sleep(Duration::from_millis(600));
        let report = running.stop();
        let late = report.ports[1].artifacts.of("late_receiver");
        let arrived = report.ports[0].traffic.packets_in;
        // A few frames arrived less than the tolerance before the end.
        assert!(
            late > arrived / 2 && late <= arrived,
            "{name}: {late} {report:?}"
        );
        assert_eq!(
            (report.ports[1].traffic.packets_out, report.in_flight),
            (0, arrived),
            "{name}"
        );
    }
}

/// Frames that a stage without memory never takes off a line count as overload.
#[test]
fn frames_that_are_never_decided_are_overload() {
    let links = [link(""), link("")];
    let classifier = rules(Target::Path(PathId(0)), &[]);
    let (mut parts, _) = parts(pair(), classifier, links, &[&[0], &[1]]);
    parts.sharding = Sharding::new(vec![0, 1], 2, NonZero::<usize>::MIN);
    let ports = vec![
        ("in".to_owned(), input("in", Source::new(50_000))),
        (
            "out".to_owned(),
            output("out", PushFn::new(|_| PushResult::Full)),
        ),
    ];
    let config = RunConfig {
        memory: Some(Bytes(256 << 10)),
        ..RunConfig::default()
    };
    let running = start(NetworkPlan::changeable(ports, parts), config, None).expect("a network");
    std::thread::sleep(Duration::from_secs(1));
    let report = running.stop();
    assert!(report.ports[0].artifacts.of("overload") > 100, "{report:?}");
}
