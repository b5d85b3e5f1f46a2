//! Links whose frames need no switch. Departures and recordings equal those of the same network
//! simulated frame by frame, even if links change in between.

use longwire_engine::{Bytes, LinkId, Nanos, NoLoader, PathId};
use longwire_io::port::own::OwnRx;
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Classifier, Matcher, Order};
use longwire_runtime::deciding::pipeline::run_to_end;
use longwire_runtime::deciding::{LinkTotals, NetworkParts, Operation, Target};
use longwire_runtime::record::Recorder;
use longwire_units::random::Stream;

use crate::common::network::{self, AllCells, link, pair, simulate, spec};
use crate::common::recorder::{self, Recorded};
use crate::composed::offline::wire_frames;
use crate::composed::ports::{Frame, Script, Sink, UNKNOWN};
use crate::composed::traffic::{Buffer, buffers, draws, plain, segments};

/// The first arrival.
const START: Nanos = Nanos::from_millis(1);

/// Number of frames that an output accepts per flush, unless all buffers are read at once.
const ROOM: usize = 5;

/// Returns bursts and pauses of about `pps` frames/s.
fn traffic(seed: u64, frames: u64, pps: u64) -> Vec<Buffer> {
    let mut stream = Stream::of_seed(seed);
    let mut at = 0;
    let gap = 1_000_000_000 / pps;
    let arrival = |number: u64| {
        // Half of the frames arrive together with the previous one or soon after it.
        at += match stream.up_to(3) {
            0 => 0,
            1 => stream.up_to(gap / 10),
            _ => stream.up_to(gap * 4),
        };
        let mut bytes = vec![0; 60 + stream.up_to(1_400) as usize];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        plain(at, bytes)
    };
    (0..frames).map(arrival).collect()
}

/// A change's time, link and options.
type Change = (u64, u32, &'static str);

pub(crate) struct Case {
    up: &'static str,
    down: &'static str,
    changes: Vec<Change>,
}

impl Case {
    pub(crate) fn new(up: &'static str, down: &'static str) -> Case {
        Case {
            up,
            down,
            changes: Vec::new(),
        }
    }
}

pub(crate) fn parts(case: &Case) -> (NetworkParts, AllCells) {
    let rule = |port: u16| {
        let matcher = Matcher {
            arrival_port: Some(PortIndex(port)),
            ..Matcher::default()
        };
        (matcher, Target::Path(PathId(port.into())), 0)
    };
    let rules = Classifier::with_rules(Order::First, Target::Pass, [rule(0), rule(1)]);
    let rules = rules.expect("rules that are right");
    let links = [case.up, case.down].map(link);
    let (mut parts, cells) = network::parts(pair(), rules, links, &[&[0], &[1]]);
    let orders = case.changes.iter().map(|(micros, link, text)| {
        let (link, text) = (LinkId(*link), *text);
        let work: Operation = Box::new(move |core, at| {
            let change = spec(text).build_change(&NoLoader);
            let replaced = core.change_link(link, at, change.expect("a change"));
            assert!(replaced.is_some(), "there is no link {link:?}");
        });
        (Nanos::from_micros(*micros), work)
    });
    parts.orders.extend(orders);
    (parts, cells)
}

/// The part of a run that is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Records {
    Nothing,
    Verdicts,
    Frames,
}

impl Records {
    /// Returns the recorder, if any, and its recording.
    fn recorder(self) -> (Option<Box<dyn Recorder>>, recorder::Kept) {
        let (keeper, kept) = recorder::keeper(self == Records::Frames);
        (Some(keeper).filter(|_| self != Records::Nothing), kept)
    }
}

/// Maximum number of buffers read at once, whether the outputs take offloads, and the recording.
type Way = (usize, bool, Records);

/// All buffers at once.
const ALL: usize = usize::MAX;

/// Departed wire frames by port, link counters, and the recording.
type Outcome = (Vec<Vec<Frame>>, Vec<LinkTotals>, Recorded);

fn totals(cells: &AllCells) -> Vec<LinkTotals> {
    cells.iter().map(|cells| cells.totals()).collect()
}

/// Runs the stages of a live run.
fn staged(case: &Case, buffers: &[Vec<Buffer>; 2], (most, takes_offload, records): Way) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = records.recorder();
    let sinks = [Sink::default(), Sink::default()];
    let ports = sinks.iter().zip(buffers).map(|(sink, buffers)| {
        let source = Script::at(buffers.clone(), START).in_bursts(most);
        let mut sink = sink.port(takes_offload);
        sink.room = if most == ALL { usize::MAX } else { ROOM };
        (Box::new(source) as Box<dyn OwnRx>, sink)
    });
    let end = run_to_end(ports.collect(), parts, (3, Bytes(64 << 20)), recorder);
    for report in end.expect("it runs").reports {
        assert_eq!(report.artifacts.values().sum::<u64>(), 0, "{}", case.up);
    }
    let left = sinks.iter().map(Sink::take).collect();
    (left, totals(&cells), kept.take())
}

/// Simulates frame by frame, without lines and trains.
fn simulated(case: &Case, buffers: &[Vec<Buffer>; 2]) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = Records::Frames.recorder();
    let wire = [0, 1].map(|port| wire_frames(&buffers[port], START));
    let frames = wire.iter().enumerate().flat_map(|(port, frames)| {
        let frames = frames.iter();
        frames.map(move |frame| (port, frame.at, frame.bytes.as_slice()))
    });
    let left = simulate(parts, recorder, frames, |leaving| {
        (leaving.release, leaving.bytes.to_vec())
    });
    (left, totals(&cells), kept.take())
}

/// Compares all ways. Returns the number of frames that left the second port and, for ways without
/// recording, the number of frames that left in a buffer with earlier ones.
fn compare(case: &Case, buffers: &[Vec<Buffer>; 2], ways: &[Way]) -> (usize, usize) {
    let (expected, expected_totals, expected_records) = simulated(case, buffers);
    let mut together = 0;
    for way in ways {
        let (mut found, found_totals, mut found_records) = staged(case, buffers, *way);
        let (most, takes_offload, records) = *way;
        let name = format!("{}, {way:?}", case.up);
        assert_eq!(found_totals, expected_totals, "{name}");
        if records != Records::Nothing {
            assert_same(&found_records.events, &expected_records.events, &name);
        }
        if records == Records::Frames {
            if most == ALL {
                // A burst may end between simultaneous frames.
                found_records
                    .entered
                    .sort_by_key(|(port, at, _)| (*at, *port));
            }
            assert_same(&found_records.entered, &expected_records.entered, &name);
        }
        if most < ALL && case.up.contains("order=reorder") {
            // The stages decide a burst after its last arrival, so an overtaking frame may be
            // handed over late.
            found[1].sort_by_key(|(release, _)| *release);
        }
        for (found, expected) in found.iter_mut().zip(&expected) {
            for (found, expected) in found.iter_mut().zip(expected) {
                if takes_offload && found.0 == UNKNOWN {
                    found.0 = expected.0;
                    together += usize::from(records == Records::Nothing);
                }
            }
            assert_same(found, expected, &name);
        }
    }
    (expected[1].len(), together)
}

fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T], name: &str) {
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let near = |of: &[T]| format!("{:?}", &of[at.saturating_sub(2)..of.len().min(at + 8)]);
        panic!("{name}, {at}: {} for {}", near(found), near(expected));
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

const LINKS: [&str; 14] = [
    "",
    "rate=200mbit delay=20ms loss=1%",
    // Overloaded links.
    "rate=60mbit delay=5ms loss=10% queue=20p",
    "rate=150mbit delay=1ms queue=8kb",
    "delay=normal:mean=10ms,stddev=3ms loss=gilbert:p=2%,r=30%",
    "rate=150mbit delay=2ms loss=1%,at=entry mtu=1000",
    "rate=steps:at=0s/100mbit;50ms/200mbit delay=3ms",
    // Links that do not decide in place: they reorder, duplicate or edit frames, or have a managed
    // queue.
    "rate=200mbit delay=uniform:min=1ms,max=9ms loss=2% duplicate=2%",
    "rate=200mbit delay=uniform:min=1ms,max=9ms order=reorder loss=gilbert:p=2%,r=30%",
    "rate=150mbit delay=4ms corrupt=5% duplicate=3%",
    "rate=120mbit delay=2ms queue=codel",
    "rate=100mbit delay=2ms queue=fq-codel loss=1%",
    "delay=2ms queue=head-drop:limit=20p rate=60mbit",
    "delay=3ms router=hop mtu=1000",
];

const DOWN: &str = "rate=100mbit delay=3ms loss=2%";

/// Compares single frames.
fn compare_frames(case: &Case) {
    let frames = [traffic(1, 4_000, 20_000), traffic(2, 2_000, 10_000)];
    let ways = [
        (1, Records::Nothing),
        (7, Records::Nothing),
        (64, Records::Nothing),
        (7, Records::Frames),
        (64, Records::Frames),
        (16, Records::Verdicts),
    ];
    let (left, _) = compare(
        case,
        &frames,
        &ways.map(|(most, records)| (most, false, records)),
    );
    assert!(left > 100, "{}: {left}", case.up);
}

/// Compares trains and partial checksums with frames that were cut and completed beforehand.
/// Returns the number of frames that left in a buffer with earlier ones.
fn compare_trains(case: &Case, buffers: &[Vec<Buffer>; 2]) -> usize {
    let ways = [
        (ALL, false, Records::Nothing),
        (ALL, true, Records::Nothing),
        (ALL, true, Records::Verdicts),
        (ALL, true, Records::Frames),
    ];
    compare(case, buffers, &ways).1
}

/// Like [`compare_trains`], for random traffic.
fn compare_buffers(case: &Case) -> usize {
    let buffers = |seed: u64| [2 * seed, 2 * seed + 1].map(|seed| buffers(&mut draws(seed)));
    (0..8)
        .map(|seed| compare_trains(case, &buffers(seed)))
        .sum()
}

#[test]
fn lanes_decide_as_a_network_without_lines_does() {
    let mut together = 0;
    for up in LINKS {
        let case = Case::new(up, DOWN);
        compare_frames(&case);
        together += compare_buffers(&case);
    }
    assert!(together > 1_000, "{together}");
}

#[test]
fn changes_find_each_frame_where_it_is() {
    let changes = vec![
        (20_000, 0, "rate=80mbit"),
        (30_000, 0, "loss=5%"),
        // After this change, later frames wait for those in transit.
        (40_000, 0, "delay=1ms"),
        (40_500, 1, "delay=500us rate=unlimited"),
        (41_000, 0, "queue=10p"),
        (60_000, 0, "delay=30ms rate=300mbit queue=derived"),
        (75_000, 0, "queue=codel"),
        (90_000, 0, "queue=100p"),
        (91_000, 0, "rate=40mbit"),
        (120_000, 0, "duplicate=3% delay=uniform:min=1ms,max=4ms"),
        (130_000, 0, "duplicate=none delay=4ms"),
        (150_000, 0, "rate=unlimited loss=none"),
    ];
    for up in LINKS {
        compare_frames(&Case {
            changes: changes.clone(),
            ..Case::new(up, DOWN)
        });
    }
}

#[test]
fn frequent_changes_keep_frames_in_order() {
    let toggled = |n: u64| {
        let text = ["delay=8ms", "rate=70mbit", "delay=2ms", "rate=200mbit"];
        (10_000 + 1_700 * n, 0, text[n as usize % 4])
    };
    compare_frames(&Case {
        changes: (0..100).map(toggled).collect(),
        ..Case::new("rate=100mbit delay=5ms", "")
    });
}

#[test]
fn changes_find_trains_on_their_lines() {
    let changes = vec![
        (3_000, 0, "rate=80mbit"),
        (6_000, 0, "loss=5%"),
        (8_000, 0, "delay=1ms rate=unlimited"),
        (8_500, 1, "delay=500us rate=unlimited"),
        (9_000, 0, "queue=10p rate=200mbit"),
        (14_000, 0, "delay=30ms rate=300mbit queue=derived"),
        (19_000, 0, "queue=codel"),
        (22_000, 0, "queue=100p"),
        (23_000, 0, "rate=40mbit"),
        (30_000, 0, "corrupt=20% delay=uniform:min=1ms,max=4ms"),
        (34_000, 0, "corrupt=none delay=4ms rate=unlimited"),
        (40_000, 0, "loss=none"),
        (40_100, 0, "delay=5ms"),
        (40_200, 0, "delay=4ms"),
    ];
    for up in LINKS {
        compare_buffers(&Case {
            changes: changes.clone(),
            ..Case::new(up, "delay=7ms")
        });
    }
}

/// Changes close the lanes while trains are queued on them and frames are queued elsewhere.
#[test]
fn frequent_changes_cut_trains_that_wait() {
    let toggled = |n: u64| {
        let text = ["delay=8ms", "delay=7ms", "delay=6ms", "delay=9ms"];
        (1_500 + 700 * n, 0, text[n as usize % 4])
    };
    let case = Case {
        changes: (0..60).map(toggled).collect(),
        ..Case::new("delay=5ms", "")
    };
    let trains = |gap: u64| (0..100).map(move |n| segments(n * gap, 20)).collect();
    compare_trains(&case, &[trains(400_000), trains(300_000)]);
}

#[test]
fn a_train_leaves_in_one_piece() {
    let case = Case::new("delay=20ms", "");
    let together = compare_trains(&case, &[vec![segments(0, 44)], Vec::new()]);
    assert_eq!(together, 43, "all frames but the first");
}
