//! Sharded networks, compared with the same networks on one thread. Verdicts, releases, logs and
//! counters are equal for any distribution of links.

use std::num::NonZero;
use std::time::Duration;

use longwire_engine::{Bytes, FrameMeta, LinkId, LinkSpec, Nanos, PathId};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Reserved, Switching};
use longwire_packet::classify::{Classifier, Matcher, Order as RuleOrder};
use longwire_runtime::deciding::{
    NetworkParts, Operation, OutputFrame, Sharding, Simulation, Target,
};
use longwire_runtime::record::Event;
use longwire_runtime::{NetworkPlan, RunConfig, RunReport, start};
use longwire_testbed::support::frames::udp4;

use crate::common::input;
use crate::common::network::{self, AllCells};
use crate::common::recorder::{Recorded, keeper};
use crate::composed::any_spec::{Choices, Examples, any_spec};
use crate::composed::ports::{self, Script};
use crate::composed::traffic::{draws, plain};
use longwire_testbed::support::Draws;

/// Number of ports, and of stations behind each port.
const PORTS: u64 = 3;
const STATIONS: u64 = 4;

/// A random network and its traffic.
struct Case {
    links: Vec<LinkSpec>,
    paths: Vec<Vec<LinkId>>,
    /// Source, destination and target of each rule.
    rules: Vec<(u8, u8, Target)>,
    unmatched: Target,
    is_bridge: bool,
    /// Each change's time, link and new options.
    changes: Vec<(Nanos, LinkId, LinkSpec)>,
    frames: Vec<Arrival>,
}

/// A frame's port, its arrival after the epoch, and its bytes.
type Arrival = (PortIndex, Nanos, Vec<u8>);

/// Returns a link. With `is_long`, no frame leaves within 100 us.
fn spec(draws: &mut Draws, is_long: bool) -> LinkSpec {
    let long = [
        "delay=1ms",
        "rate=10mbit delay=200us queue=codel",
        "rate=20mbit delay=300us loss=5% queue=20p",
        "rate=5mbit delay=100us duplicate=random:rate=20% queue=fq-codel",
    ];
    if is_long {
        return draws.pick(&long).parse().expect("a valid link");
    }
    let text = match draws.below(4) {
        // Includes hops without delay, and simultaneous events.
        0 => "rate=8mbit queue=20p",
        1 => "delay=1ms",
        2 => "rate=10mbit delay=200us queue=codel",
        _ => {
            let bytes: Vec<u8> = (0..300).map(|_| draws.below(256) as u8).collect();
            return any_spec(&mut Choices(&bytes));
        }
    };
    text.parse().expect("a valid link")
}

impl Case {
    fn of(number: u64) -> Case {
        let mut draws = draws(number);
        let is_long = draws.below(2) == 0;
        Case::from(&mut draws, is_long)
    }

    /// Returns a case in which all links have a delay.
    fn long(number: u64) -> Case {
        Case::from(&mut draws(number << 32), true)
    }

    fn from(draws: &mut Draws, is_long: bool) -> Case {
        let count = 2 + draws.below(10);
        let links = (0..count).map(|_| spec(draws, is_long));
        let links: Vec<LinkSpec> = links.collect();
        let path = |draws: &mut Draws| {
            let hops = 1 + draws.below(4);
            (0..hops)
                .map(|_| LinkId(draws.below(count) as u32))
                .collect()
        };
        let paths: Vec<Vec<LinkId>> = (0..2 + draws.below(6)).map(|_| path(draws)).collect();
        let target = |draws: &mut Draws| match draws.below(8) {
            0 => Target::Pass,
            1 => Target::Drop,
            2 => Target::Handover(PathId(draws.below(paths.len() as u64) as u32)),
            _ => Target::Path(PathId(draws.below(paths.len() as u64) as u32)),
        };
        let stations = PORTS * STATIONS;
        let rule = |draws: &mut Draws| {
            let (from, to) = (draws.below(stations) as u8, draws.below(stations) as u8);
            (from, to, target(draws))
        };
        let rules = (0..draws.below(30)).map(|_| rule(draws)).collect();
        let unmatched = target(draws);
        let change = |draws: &mut Draws| {
            let link = LinkId(draws.below(count) as u32);
            // Some changes coincide with frames or with each other.
            let at = Nanos::from_micros(draws.below(60) * 500);
            // Windows may have to shrink or end.
            let is_long = is_long && draws.below(3) > 0;
            (at, link, spec(draws, is_long))
        };
        let changes = (0..draws.below(5)).map(|_| change(draws)).collect();
        let is_bridge = draws.below(2) == 0;
        let mut now = 0;
        let frame = |number: u64, draws: &mut Draws, now: &mut u64| {
            // Includes simultaneous bursts, and steps that coincide with changes.
            *now += [0, 0, 100, 500, 1_337][draws.below(5) as usize] * 1_000;
            let (from, to) = (draws.below(stations), draws.below(stations));
            let payload = vec![number as u8; draws.below(1_200) as usize];
            let ends = |station: u64| [10, 0, 0, station as u8];
            let mut bytes = udp4(ends(from), ends(to), (1_000, number as u16), &payload);
            bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, to as u8, 2, 0, 0, 0, 0, from as u8]);
            let port = PortIndex((from / STATIONS) as u16);
            (port, Nanos::from_nanos(*now), bytes)
        };
        let frames = (0..400).map(|number| frame(number, draws, &mut now));
        Case {
            frames: frames.collect(),
            links,
            paths,
            rules,
            unmatched,
            is_bridge,
            changes,
        }
    }

    fn parts(&self, sharding: Sharding) -> (NetworkParts, AllCells) {
        let mut classifier = Classifier::new(RuleOrder::First, self.unmatched);
        for (from, to, target) in &self.rules {
            let matcher: Matcher = format!("src=10.0.0.{from},dst=10.0.0.{to}")
                .parse()
                .expect("a valid matcher");
            classifier.insert(matcher, *target, 0).expect("room for it");
        }
        let order = |(at, link, spec): &(Nanos, LinkId, LinkSpec)| {
            let change = spec.build_change(&Examples).expect("a change");
            let link = *link;
            let work: Operation = Box::new(move |core, at| {
                drop(core.change_link(link, at, change));
            });
            (*at, work)
        };
        let switching = if self.is_bridge {
            Switching::Bridge
        } else {
            Switching::Pairs(vec![(PortIndex(0), PortIndex(1))])
        };
        let switch = BridgeConfig {
            switching,
            ..BridgeConfig::new(PORTS as u16)
        };
        let links = self.links.iter();
        let links = links.map(|spec| spec.build(&Examples).expect("a link"));
        let (mut parts, cells) = network::parts(switch, classifier, links, &[]);
        parts.paths = self.paths.clone();
        parts.orders = self.changes.iter().map(order).collect();
        parts.sharding = sharding;
        (parts, cells)
    }

    /// Returns the frames that arrive at a port.
    fn frames_of(&self, port: u64) -> impl Iterator<Item = &Arrival> {
        let frames = self.frames.iter();
        frames.filter(move |(at, ..)| u64::from(at.0) == port)
    }

    /// Runs the network in virtual time.
    fn run(&self, sharding: Sharding) -> Outcome {
        self.simulate(sharding, Nanos::from_millis(3), &self.frames)
    }

    /// Like [`Case::run`], with frame times relative to `epoch`.
    fn simulate(&self, sharding: Sharding, epoch: Nanos, frames: &[Arrival]) -> Outcome {
        let (parts, cells) = self.parts(sharding);
        let (recorder, kept) = keeper(true);
        let mut simulation =
            Simulation::new(&["a", "b", "c"], parts, 7, epoch, Some(recorder)).expect("a network");
        let mut left = Vec::new();
        let mut out = |frame: OutputFrame<'_>| {
            let bytes = frame.bytes.to_vec();
            left.push((frame.port, frame.release, frame.wire_len, bytes));
            Ok::<(), ()>(())
        };
        for (port, at, bytes) in frames {
            let meta = FrameMeta {
                arrival: epoch.saturating_add(*at),
                len: bytes.len() as u32,
            };
            simulation.frame(*port, meta, bytes, &mut out).unwrap();
        }
        // Advance in steps, so that shards hold frames between calls.
        for step in 1..40 {
            let until = Nanos::from_millis(step * step);
            simulation
                .advance(epoch.saturating_add(until), &mut out)
                .unwrap();
        }
        simulation.advance(Nanos::MAX, &mut out).unwrap();
        let inside = simulation.frames();
        let report = simulation.stop();
        assert_eq!(report.error, None);
        let recorded = kept.take();
        let counters = cells.iter().map(|cells| format!("{:?}", cells.totals()));
        Outcome {
            left,
            arrivals: recorded.entered,
            events: recorded.events,
            counters: counters.collect(),
            switch: format!("{:?} {:?}", report.switch, report.counts),
            inside,
        }
    }
}

/// All observable results of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    left: Vec<(PortIndex, Nanos, u32, Vec<u8>)>,
    arrivals: Vec<Arrival>,
    events: Vec<Event>,
    counters: Vec<String>,
    switch: String,
    inside: u64,
}

/// Distributes links at random, regardless of delays: the worst plan.
fn at_random(links: usize, shards: usize, draws: &mut Draws) -> Sharding {
    let shard_of = (0..links).map(|_| draws.below(shards as u64) as u16);
    let shard_of = shard_of.collect();
    let threads = NonZero::new(1 + draws.below(3) as usize).unwrap();
    Sharding::new(shard_of, shards, threads)
}

#[test]
fn any_network_on_any_shards() {
    let (mut dropped, mut crossed) = (0, 0);
    for number in 0..200 {
        let case = Case::of(number);
        let expected = case.run(Sharding::one());
        dropped += expected.events.len() - expected.left.len().min(expected.events.len());
        let mut draws = draws(!number);
        for shards in [1, 2, 3, 4, 16] {
            let sharding = at_random(case.links.len(), shards, &mut draws);
            let shard = |link: &LinkId| sharding.shard_of(*link);
            let hops = case.paths.iter().flat_map(|path| path.windows(2));
            crossed += hops.filter(|hop| shard(&hop[0]) != shard(&hop[1])).count();
            let found = case.run(sharding.clone());
            let events = found.events.iter().zip(&expected.events);
            let first = { events }.find(|(found, expected)| found != expected);
            assert_eq!(first, None, "case {number}, {shards} shards");
            let same = found.left == expected.left;
            assert!(same, "case {number}, {shards} shards: what leaves");
            let inside = (found.inside, expected.inside);
            assert_eq!(inside.0, inside.1, "case {number}, {shards} shards: inside");
            assert_eq!(found, expected, "case {number}, {shards} shards");
        }
    }
    assert!(dropped > 1_000 && crossed > 1_000, "{dropped} {crossed}");
}

/// Batches with many copies per frame are short, to bound the memory for the copies of a batch.
#[test]
fn copies_make_batches_short() {
    const COPIES: usize = 100;
    let case = Case {
        links: vec![network::spec(&format!(
            "duplicate=random:rate=100%,copies={COPIES}"
        ))],
        paths: vec![vec![LinkId(0)]],
        rules: Vec::new(),
        unmatched: Target::Path(PathId(0)),
        is_bridge: false,
        changes: Vec::new(),
        frames: Vec::new(),
    };
    let sharding = Sharding::new(vec![0], 1, NonZero::<usize>::MIN);
    let (parts, _) = case.parts(sharding);
    let mut simulation = Simulation::new(&["a", "b", "c"], parts, 7, Nanos::ZERO, None).unwrap();
    let bytes = udp4([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[0; 100]);
    let (mut most, mut all) = (0, 0);
    for number in 0..20_000 {
        let arrival = Nanos::from_micros(number);
        let len = bytes.len() as u32;
        let before = all;
        let mut out = |_: OutputFrame<'_>| {
            all += 1;
            Ok::<(), ()>(())
        };
        let meta = FrameMeta { arrival, len };
        simulation
            .frame(PortIndex(0), meta, &bytes, &mut out)
            .unwrap();
        most = most.max(all - before);
    }
    assert!(all > 19_000 * COPIES, "only {all} frames have left");
    assert!(most < 40_000, "{most} frames were handed out at once");
}

/// Runs a live run's stages in virtual time, and returns each port's output.
fn run_in_stages(case: &Case, sharding: Sharding) -> Vec<Vec<(Nanos, Vec<u8>)>> {
    let (parts, _) = case.parts(sharding);
    let frames = |(_, at, bytes): &Arrival| (*at, bytes.clone());
    let inputs = (0..PORTS).map(|port| case.frames_of(port).map(frames).collect());
    let mut left = network::run_stages(parts, 7, inputs.collect());
    // Simultaneous frames may be decided after other frames with the same time have left.
    left.iter_mut().for_each(|frames| frames.sort());
    left
}

#[test]
fn any_network_in_the_stages_of_a_live_run() {
    let mut compared = 0;
    for number in 0..60 {
        // Frames on stalled links would keep the run from ending.
        let case = Case {
            changes: Vec::new(),
            ..Case::long(number)
        };
        let expected = run_in_stages(&case, Sharding::one());
        compared += expected.iter().flatten().count();
        let mut draws = draws(!number);
        for shards in [1, 2, 4] {
            let sharding = at_random(case.links.len(), shards, &mut draws);
            let found = run_in_stages(&case, sharding);
            for (port, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let frames = found.iter().zip(expected);
                let other = { frames }.position(|(found, expected)| found != expected);
                let of = format!("case {number}, {shards} shards, port {port}");
                assert_eq!((other, found.len()), (None, expected.len()), "{of}");
            }
        }
    }
    assert!(compared > 5_000, "{compared} frames");
}

/// Live runs: the log equals that of a simulation of the recorded arrivals on one thread.
#[test]
fn any_network_live_on_shards() {
    let numbers: Vec<u64> = (0..12).collect();
    let compared = ports::in_parallel(&numbers, |_, number| {
        let case = Case {
            changes: Vec::new(),
            ..Case::long(*number)
        };
        let shards = [2, 3, 4, 16][*number as usize % 4];
        let sharding = at_random(case.links.len(), shards, &mut draws(!*number));
        live(&case, sharding)
    });
    let compared: usize = compared.iter().sum();
    assert!(compared > 2_000, "{compared} events");
}

/// Compares a live run's log, and returns the number of events.
fn live(case: &Case, sharding: Sharding) -> usize {
    let (parts, _) = case.parts(sharding);
    let port = |port: u64| {
        let buffers = case.frames_of(port);
        let buffers = buffers.map(|(_, at, bytes)| plain(at.as_nanos(), bytes.clone()));
        let name = ["a", "b", "c"][port as usize];
        let rx = Script::live(buffers.collect());
        (name.to_owned(), input(name, rx))
    };
    let config = RunConfig {
        seed: 7,
        realtime: false,
        memory: Some(Bytes(64 << 20)),
        ..RunConfig::default()
    };
    let (recorder, kept) = keeper(true);
    let plan = NetworkPlan::changeable((0..PORTS).map(port).collect(), parts);
    let running = start(plan, config, Some(recorder)).expect("a network");
    running.wait(Duration::from_millis(400));
    let report = running.stop();
    assert_eq!(report.error, None);
    let Recorded {
        epoch,
        entered,
        events,
    } = kept.take();
    assert_eq!(entered.len(), case.frames.len());
    let since = entered.into_iter();
    let since = since.map(|(port, arrival, bytes)| (port, arrival.saturating_sub(epoch), bytes));
    let expected = case.simulate(Sharding::one(), epoch, &since.collect::<Vec<_>>());
    // The run may have stopped while frames were in flight.
    let both = events.iter().zip(&expected.events);
    let other = { both }.find(|(live, expected)| live != expected);
    assert_eq!(other, None, "another log");
    assert!(events.len() <= expected.events.len());
    events.len()
}

/// Length of the frames of [`live_in_little_memory`] in bytes.
const FRAME_LEN: u64 = 1_000;

/// Sends frames over live links with this delay on two shards. `times` are in microseconds.
fn live_in_little_memory(memory: u64, delay: &str, times: impl Iterator<Item = u64>) -> RunReport {
    let links = [delay, delay].map(network::link);
    let classifier = Classifier::new(RuleOrder::First, Target::Path(PathId(0)));
    let (mut parts, _) = network::parts(network::pair(), classifier, links, &[&[0], &[1]]);
    let threads = NonZero::new(2).expect("not 0");
    parts.sharding = Sharding::new(vec![0, 1], 2, threads);
    let frame = udp4(
        [10, 0, 0, 1],
        [10, 0, 0, 2],
        (1, 2),
        &[0; FRAME_LEN as usize - 42],
    );
    let buffers = times.map(|micros| plain(micros * 1_000, frame.clone()));
    let script = Script::live(buffers.collect());
    let ports = [("a", script), ("b", Script::live(Vec::new()))];
    let ports = ports.map(|(name, script)| (name.to_owned(), input(name, script)));
    let config = RunConfig {
        realtime: false,
        memory: Some(Bytes(memory)),
        ..RunConfig::default()
    };
    let plan = NetworkPlan::changeable(ports.into(), parts);
    let running = start(plan, config, None).expect("a network");
    running.wait(Duration::from_secs(3));
    running.stop()
}

/// Empty segments of the shards do not count against the memory budget.
#[test]
fn little_memory_does_not_stop_the_shards() {
    let report = live_in_little_memory(256 << 10, "delay=20ms", (0..20).map(|n| n * 1_000));
    assert_eq!(report.ports[1].traffic.packets_out, 20, "{report:?}");
}

/// A burst beyond the memory budget is partly lost, but later frames are not.
#[test]
fn shards_recover_from_a_burst_beyond_their_memory() {
    let (memory, burst, later) = (2 << 20, 12_000, 20);
    let times = (0..burst).chain((0..later).map(|n| 1_500_000 + n * 1_000));
    let report = live_in_little_memory(memory, "delay=1s", times);
    let [a, b] = &report.ports[..] else {
        panic!("{report:?}");
    };
    assert_eq!(report.in_flight, 0, "{report:?}");
    let lost = a.artifacts["memory"];
    assert_eq!(b.traffic.packets_out + lost, burst + later, "{report:?}");
    // No frame leaves before the burst has arrived, so the delivered ones are held at one time: on
    // the line, and in the shards, which have the budget of two ports.
    let delivered = (burst - lost) * FRAME_LEN;
    let held = a.memory.memory_max;
    assert!(
        (delivered..=3 * memory).contains(&held),
        "{delivered}: {held}"
    );
}

/// A link that cannot change has no shards, so its log and its report do not depend on `--shards`.
#[test]
fn a_pair_has_no_shards() {
    let plan = |shards| {
        let links = ["delay=1ms", "delay=1ms"].map(network::link);
        let classifier = network::rules(Target::Drop, &[("in-port=0", 0), ("in-port=1", 1)]);
        let (mut parts, _) = network::parts(network::pair(), classifier, links, &[&[0], &[1]]);
        parts.switch.reserved = Reserved::Pass;
        parts.sharding = Sharding::new(vec![0; 2], shards, NonZero::<usize>::MIN);
        let ports = ["a", "b"].map(|name| (name.to_owned(), input(name, Script::live(Vec::new()))));
        NetworkPlan::fixed(
            ports.into(),
            parts,
            ["link.up".to_owned(), "link.down".to_owned()],
        )
    };
    let reports = [1, 2].map(|shards| {
        let running = start(plan(shards), RunConfig::default(), None).expect("a pair");
        running.stop()
    });
    let [one, two] = reports.each_ref().map(|report| &report.links[0]);
    assert!(two.queue.is_some() && two.config.len() > 10, "{two:?}");
    assert_eq!(one.config, two.config);
    let note = |report: &RunReport| report.notes.iter().any(|note| note.contains("--shards"));
    assert_eq!(reports.each_ref().map(note), [false, true]);
}
