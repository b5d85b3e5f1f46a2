//! Links whose frames need no switch. Departures and recordings equal those of the same network
//! simulated frame by frame, even if links change in between.

use longwire_engine::{Bytes, LinkId, Nanos, NoLoader, PathId};
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Classifier, Matcher, Order};
use longwire_runtime::deciding::pipeline::run_to_end;
use longwire_runtime::deciding::{LinkTotals, NetworkParts, Operation, Target};
use longwire_runtime::record::{Event, Recorder};
use longwire_units::random::Stream;

use crate::common::network::{self, AllCells, link, pair, simulate, spec};
use crate::common::recorder;
use crate::common::{Arrivals, Kept};

/// A frame's arrival and bytes.
type Arrival = (Nanos, Vec<u8>);

/// Releases and numbers of frames, in order of departure.
type Departures = Vec<(Nanos, u64)>;

/// Number of frames that an output accepts per flush.
const ROOM: usize = 5;

fn departures(port: &Kept) -> Departures {
    let frames = port.frames.iter();
    frames
        .map(|(release, bytes)| (*release, number_of(bytes)))
        .collect()
}

fn number_of(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("a whole number"))
}

/// Returns bursts and pauses of about `pps` frames/s.
fn traffic(seed: u64, frames: u64, pps: u64) -> Vec<Arrival> {
    let mut stream = Stream::of_seed(seed);
    let mut at = 1_000_000;
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
        (Nanos::from_nanos(at), bytes)
    };
    (0..frames).map(arrival).collect()
}

/// A change's time, link and options.
pub(crate) type Change = (u64, u32, &'static str);

pub(crate) struct Case {
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
    pub(crate) changes: Vec<Change>,
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

#[derive(Debug, PartialEq)]
struct Outcome {
    left: Vec<Departures>,
    totals: Vec<LinkTotals>,
    /// Arrived frames, with ports and arrivals.
    entered: Vec<(PortIndex, Nanos, Vec<u8>)>,
    events: Vec<Event>,
}

/// The part of a run that is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Records {
    Nothing,
    Verdicts,
    Frames,
}

impl Records {
    /// Returns the recorder and its memory.
    pub(crate) fn recorder(self) -> (Option<Box<dyn Recorder>>, recorder::Kept) {
        let (keeper, kept) = recorder::keeper(self == Records::Frames);
        (Some(keeper).filter(|_| self != Records::Nothing), kept)
    }
}

fn outcome(left: Vec<Departures>, cells: &AllCells, kept: &recorder::Kept) -> Outcome {
    let kept = kept.take();
    Outcome {
        left,
        totals: totals(cells),
        entered: kept.entered,
        events: kept.events,
    }
}

pub(crate) fn totals(cells: &AllCells) -> Vec<LinkTotals> {
    cells.iter().map(|cells| cells.totals()).collect()
}

/// Runs the stages of a live run.
fn staged(case: &Case, arrivals: &[Vec<Arrival>; 2], most: usize, records: Records) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = records.recorder();
    let ports = arrivals
        .iter()
        .map(|arrivals| (Arrivals::new(arrivals.clone(), most), Kept::new(ROOM)));
    let end = run_to_end(ports.collect(), parts, (3, Bytes(64 << 20)), recorder);
    let left = end.expect("it runs").ports.iter().map(departures).collect();
    outcome(left, &cells, &kept)
}

/// Simulates frame by frame, without lines.
fn simulated(case: &Case, arrivals: &[Vec<Arrival>; 2]) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = Records::Frames.recorder();
    let frames = arrivals.iter().enumerate();
    let frames = frames.flat_map(|(port, arrivals)| {
        arrivals
            .iter()
            .map(move |(at, bytes)| (port, *at, bytes.as_slice()))
    });
    let left = simulate(parts, recorder, frames, |leaving| {
        (leaving.release, number_of(leaving.bytes))
    });
    outcome(left, &cells, &kept)
}

fn compare(case: &Case) {
    let arrivals = [traffic(1, 4_000, 20_000), traffic(2, 2_000, 10_000)];
    let expected = simulated(case, &arrivals);
    assert!(
        expected.left[1].len() > 100,
        "{} {}",
        case.up,
        expected.left[1].len()
    );
    let ways = [
        (1, Records::Nothing),
        (7, Records::Nothing),
        (64, Records::Nothing),
        (7, Records::Frames),
        (64, Records::Frames),
        (16, Records::Verdicts),
    ];
    for (most, records) in ways {
        let mut found = staged(case, &arrivals, most, records);
        if case.up.contains("order=reorder") {
            // The stages decide a burst after its last arrival, so an overtaking frame may be
            // handed over late.
            found.left[1].sort_by_key(|(release, _)| *release);
        }
        let name = format!("{}, {most}, {records:?}", case.up);
        assert_eq!(found.totals, expected.totals, "{name}");
        for (found, expected) in found.left.iter().zip(&expected.left) {
            assert_same(found, expected, &name);
        }
        if records == Records::Frames {
            assert_same(&found.entered, &expected.entered, &name);
        }
        if records != Records::Nothing {
            assert_same(&found.events, &expected.events, &name);
        }
    }
}

pub(crate) fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T], name: &str) {
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let near = |of: &[T]| format!("{:?}", &of[at.saturating_sub(2)..of.len().min(at + 8)]);
        panic!("{name}, {at}: {} for {}", near(found), near(expected));
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

pub(crate) const LINKS: [&str; 14] = [
    "",
    "rate=200mbit delay=20ms loss=1%",
    // Overloaded links.
    "rate=60mbit delay=5ms loss=10% queue=20p",
    "rate=150mbit delay=1ms queue=8kb",
    "delay=normal:mean=10ms,stddev=3ms loss=gilbert:p=2%,r=30%",
    "rate=150mbit delay=2ms loss=1%,at=entry mtu=1000",
    "rate=steps:at=0s/100mbit;50ms/200mbit delay=3ms",
    // Links that do not decide in place: they reorder, duplicate or edit frames, or their queue
    // decides at dequeue.
    "rate=200mbit delay=uniform:min=1ms,max=9ms loss=2% duplicate=2%",
    "rate=200mbit delay=uniform:min=1ms,max=9ms order=reorder loss=gilbert:p=2%,r=30%",
    "rate=150mbit delay=4ms corrupt=5% duplicate=3%",
    "rate=120mbit delay=2ms queue=codel",
    "rate=100mbit delay=2ms queue=fq-codel loss=1%",
    "delay=2ms queue=head-drop:limit=20p rate=60mbit",
    "delay=3ms router=hop mtu=1000",
];

#[test]
fn lanes_decide_as_a_network_without_lines_does() {
    for up in LINKS {
        compare(&Case::new(up, "rate=100mbit delay=3ms loss=2%"));
    }
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
        compare(&Case {
            up,
            down: "rate=100mbit delay=3ms loss=2%",
            changes: changes.clone(),
        });
    }
}

#[test]
fn frequent_changes_keep_frames_in_order() {
    let toggled = |n: u64| {
        let text = ["delay=8ms", "rate=70mbit", "delay=2ms", "rate=200mbit"];
        (10_000 + 1_700 * n, 0, text[n as usize % 4])
    };
    compare(&Case {
        up: "rate=100mbit delay=5ms",
        down: "",
        changes: (0..100).map(toggled).collect(),
    });
}
