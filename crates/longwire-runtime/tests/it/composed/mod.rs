//! Compares random link models in a live run's stages with offline simulation: verdicts,
//! departures, releases and bytes must be equal.
//!
//! The links come from the generator for the engine's composition test. Frames pass through
//! in-memory ports, some as super-packets.

#[path = "../../../../longwire-engine/tests/it/common/any_spec.rs"]
pub mod any_spec;
mod cases;
#[path = "../../../../longwire-engine/tests/it/common/fates.rs"]
pub mod fates;
pub mod offline;
pub mod ports;
pub mod traffic;

use std::collections::BTreeMap;
use std::time::Duration;

use cases::Case;
use longwire_engine::{Bytes, LinkConfig, Nanos, Verdict};
use longwire_io::port::own::OwnRx;
use longwire_runtime::pipeline::{PipelineConfig, run_to_end};
use longwire_runtime::record::Event;
use longwire_runtime::{LinkReport, LinkSetup, NetworkPlan, Placement, RunConfig, WaitMode, start};
use offline::{Arrival, Outcome, simulate};
use ports::{Frame, Script, Sink};
use traffic::Buffer;

use crate::common::network::{link, spec};
use crate::common::recorder::{Recorded, keeper};
use crate::common::{input, output};

/// Start of a pipeline's virtual clock.
const START: Nanos = Nanos::from_secs(1);

/// A live run is not stopped if its link delivers everything within this time of the first arrival.
/// Other runs are stopped after `PARTLY`, and only their verdicts and departures so far are
/// compared.
const SOON: Nanos = Nanos::from_millis(700);
const PARTLY: Duration = Duration::from_millis(300);

/// Time after which a run counts as hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs buffers through both stages in virtual time. Returns the report and the departed wire
/// frames.
fn run_in_virtual_time(
    buffers: Vec<Buffer>,
    config: LinkConfig,
    seed: u64,
    takes_offload: bool,
) -> (LinkReport, Vec<Frame>) {
    let sink = Sink::default();
    let setup = LinkSetup::new("ab", config);
    let pipeline = PipelineConfig {
        seed,
        memory_soft: u64::MAX,
        budget: Bytes(64 << 20),
        lend: false,
        cores: None,
    };
    let source: Box<dyn OwnRx> = Box::new(Script::at(buffers, START));
    let end = run_to_end(source, sink.port(takes_offload), setup, pipeline);
    let report = end.unwrap_or_else(|error| panic!("{error}")).report;
    (report, sink.take())
}

/// Runs the case in virtual time and compares its output with the simulation's: in order, to the
/// nanosecond and the byte.
fn check_in_virtual_time(case: &Case, takes_offload: bool) -> LinkReport {
    let buffers = case.buffers();
    let arrivals = offline::wire_frames(&buffers, START);
    let expected = simulate(case.config(START), case.seed, &arrivals);
    let (report, mut left) =
        run_in_virtual_time(buffers, case.config(START), case.seed, takes_offload);
    let artifacts = &report.artifacts;
    assert_eq!(
        artifacts.values().sum::<u64>(),
        0,
        "{case:?}: {artifacts:?}"
    );
    let mut released = expected.released;
    assert_eq!(left.len(), released.len(), "{case:?}");
    if expected.overtaken {
        // Frames with one release may be sent before the next frame with that release is decided.
        released.sort();
        let known = |frame: &&Frame| frame.0 != ports::UNKNOWN;
        for frame in left.iter().filter(known) {
            assert!(released.binary_search(frame).is_ok(), "{case:?}: a release");
        }
        left.sort_by(|a, b| a.1.cmp(&b.1));
        released.sort_by(|a, b| a.1.cmp(&b.1));
    }
    for (index, (left, released)) in left.iter().zip(&released).enumerate() {
        let in_time = left.0 == released.0 || left.0 == ports::UNKNOWN || expected.overtaken;
        assert!(
            left.1 == released.1 && in_time,
            "{case:?}: frame {index} of those released"
        );
    }
    report
}

/// Records a live run of the case, and compares verdicts and departures with a simulation of the
/// recorded arrivals. Returns whether the run reached its end.
fn check_live(case: &Case, placement: Placement) -> bool {
    let arrivals = offline::wire_frames(&case.buffers(), START);
    let foreseen = simulate(case.config(START), case.seed, &arrivals);
    let soon = START.saturating_add(SOON);
    let is_soon = foreseen.released.iter().all(|(at, _)| *at < soon);
    let sink = Sink::default();
    let input = input("memory", Script::live(case.buffers()));
    let output = output("memory", sink.port(false));
    let setup = LinkSetup::new("ab", case.config(START));
    let config = RunConfig {
        seed: case.seed,
        placement,
        wait: WaitMode::Adaptive,
        realtime: false,
        memory: Some(Bytes(64 << 20)),
        ..RunConfig::default()
    };
    let (recorder, kept) = keeper(true);
    let plan = NetworkPlan::link(input, output, setup, None);
    let running = start(plan, config, Some(recorder)).unwrap_or_else(|error| panic!("{error}"));
    let ended = running.wait(if is_soon { TIMEOUT } else { PARTLY });
    let report = running.stop();
    let recorded = kept.take();
    let link = &report.links[0];
    for kind in ["unrecorded", "memory"] {
        assert_eq!(link.artifacts[kind], 0, "{case:?}: {kind}");
    }
    let arrivals = recorded.entered.iter().map(|(_, at, bytes)| Arrival {
        at: *at,
        bytes: bytes.clone(),
    });
    let arrivals: Vec<Arrival> = arrivals.collect();
    let expected = simulate(case.config(recorded.epoch), case.seed, &arrivals);
    compare(case, &recorded, &expected, ended);
    let (mut left, mut released) = (sink.take(), expected.released);
    // Late frames may be overtaken.
    left.sort();
    released.sort();
    if ended {
        assert!(left == released, "{case:?}: other frames left");
    } else {
        let known = |frame| released.binary_search(frame).is_ok();
        assert!(left.iter().all(known), "{case:?}: an unknown frame left");
    }
    ended
}

/// Compares the recording with the simulation.
fn compare(case: &Case, recorded: &Recorded, expected: &Outcome, ended: bool) {
    let mut verdicts: BTreeMap<u64, Vec<Verdict>> = BTreeMap::new();
    let mut queues = Vec::new();
    for event in &recorded.events {
        match event {
            Event::Arrived {
                frame, len, queue, ..
            } => {
                assert_eq!(*frame, queues.len() as u64);
                assert_eq!(*len as usize, recorded.entered[queues.len()].2.len());
                queues.push(*queue);
            }
            Event::Decided { frame, verdict, .. } => {
                verdicts.entry(*frame).or_default().push(*verdict);
            }
            Event::Entered { .. } | Event::Left { .. } => {}
        }
    }
    assert_eq!(queues.len(), expected.frames.len());
    for (number, frame) in expected.frames.iter().enumerate() {
        let live = verdicts.remove(&(number as u64)).unwrap_or_default();
        let known = frame.verdicts.get(..live.len());
        assert_eq!(known, Some(&live[..]), "{case:?}: frame {number}");
        assert!(
            !ended || live.len() == frame.verdicts.len(),
            "{case:?}: frame {number} was never decided"
        );
        let queue = queues[number];
        assert_eq!(
            queue, frame.queue,
            "{case:?}: the queue behind frame {number}"
        );
    }
}

/// Number of cases in virtual time.
const CASES: u64 = 1_500;

#[test]
fn any_models_live_and_offline_in_virtual_time() {
    let mut seen = cases::Seen::default();
    for number in 0..CASES {
        let case = Case::random(number);
        seen.note(&case);
        check_in_virtual_time(&case, number % 2 == 0);
    }
    seen.assert_every_model();
}

#[test]
fn any_models_live_and_offline_in_real_time() {
    let cases = cases::covering();
    assert!(cases.len() > 20, "{} cases", cases.len());
    let ended: Vec<bool> = ports::in_parallel(&cases, |index, case| {
        let placement = match index % 2 {
            0 => Placement::Together,
            _ => Placement::PerStage,
        };
        check_live(case, placement)
    });
    let whole = ended.iter().filter(|ended| **ended).count();
    assert!(whole > 10, "{whole} of {} runs ended", ended.len());
}

/// A super-packet's segments have one timestamp. On an idle link, the first is in service, not in
/// the queue, when the remaining ones are queued.
#[test]
fn segments_of_one_buffer_find_the_room_that_frames_find() {
    for (queue, segments, fit) in [
        ("head-drop:limit=2p", 3, true),
        ("codel:limit=2p", 3, true),
        ("drr:limit=2p", 3, true),
        ("3p", 3, true),
        ("head-drop:limit=2p", 4, false),
        ("3p", 4, false),
    ] {
        let config = link(&format!("rate=1mbit queue={queue}"));
        let buffers = vec![traffic::segments(0, segments)];
        let (report, left) = run_in_virtual_time(buffers, config, 1, false);
        assert_eq!(left.len(), 3, "{queue}");
        assert_eq!(report.traffic.packets_in, segments as u64);
        assert_eq!(report.drops["queue_full"] == 0, fit, "{queue}");
    }
}

/// A link decides a buffer's segments one at a time. Segments due in the same step leave in one
/// buffer, except around missing or edited frames.
#[test]
fn segments_that_are_due_together_leave_in_one_buffer() {
    for (line, buffers) in [
        ("rate=10gbit", 1),
        ("rate=10gbit delay=1ms", 1),
        ("rate=10gbit queue=codel", 1),
        ("rate=10gbit queue=fq-codel", 1),
        ("delay=1ms order=reorder", 1),
        ("rate=10gbit loss=nth:10", 2),
        ("rate=10gbit queue=codel loss=nth:7", 3),
        ("rate=10gbit corrupt=offset:offset=100", 20),
        ("rate=10gbit duplicate=nth:5", 5),
    ] {
        let buffers_in = vec![traffic::segments(0, 20)];
        let (report, left) = run_in_virtual_time(buffers_in, link(line), 1, true);
        let begun = left
            .iter()
            .filter(|(release, _)| *release != ports::UNKNOWN);
        assert_eq!(begun.count(), buffers, "{line}");
        assert_eq!(report.traffic.packets_out, left.len() as u64, "{line}");
    }
}

#[test]
fn long_frames_are_fragmented_whatever_the_queue() {
    let queues = longwire_engine::models::QUEUE.entries.iter();
    let queues = queues
        .filter(|entry| entry.info.name != "tail-drop")
        .map(|entry| format!("rate=100mbit queue={}", entry.info.name));
    let wifi = ["", " queue=1000p"].map(|queue| format!("rate=wifi:rate=100mbit{queue}"));
    let links = queues.chain(wifi);
    let case = |line: &str| Case {
        spec: spec(&format!("{line} mtu=fragment:bytes=576")),
        seed: 7,
        traffic: 3,
    };
    // Independent of the queue, long frames are dropped if they are not IPv4 or must not be
    // fragmented.
    let dropped = check_in_virtual_time(&case("rate=100mbit queue=unlimited"), false);
    let dropped = dropped.drops["mtu"];
    for line in links {
        let case = case(&line);
        let report = check_in_virtual_time(&case, false);
        let whole = case.buffers().len() as u64;
        assert_eq!(report.drops["mtu"], dropped, "{case:?}");
        assert!(
            report.traffic.packets_in > whole && report.traffic.packets_out > whole,
            "{case:?}: {} in, {} out of {whole}",
            report.traffic.packets_in,
            report.traffic.packets_out
        );
        check_live(&case, Placement::Together);
    }
}
