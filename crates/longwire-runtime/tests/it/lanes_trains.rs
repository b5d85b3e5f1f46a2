//! Trains and partial checksums on lanes. Departures equal those of the same network simulated
//! frame by frame, with frames cut and completed beforehand.

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::own::OwnRx;
use longwire_runtime::deciding::LinkTotals;
use longwire_runtime::deciding::pipeline::run_to_end;

use crate::common::network::simulate;
use crate::common::recorder::Recorded;
use crate::composed::offline::wire_frames;
use crate::composed::ports::{Frame, Script, Sink, UNKNOWN};
use crate::composed::traffic::{Buffer, buffers, draws, segments};
use crate::lanes::{Case, LINKS, Records, assert_same, parts, totals};

/// The first arrival.
const START: Nanos = Nanos::from_millis(1);

/// Departed wire frames by port, link counters, and the recording.
type Outcome = (Vec<Vec<Frame>>, Vec<LinkTotals>, Recorded);

/// Simulates frame by frame, without lines and trains.
fn simulated(case: &Case, buffers: &[Vec<Buffer>; 2]) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = Records::Frames.recorder();
    let wire = [0, 1].map(|port| wire_frames(&buffers[port], START));
    let frames = wire.iter().enumerate().flat_map(|(port, frames)| {
        frames
            .iter()
            .map(move |frame| (port, frame.at, frame.bytes.as_slice()))
    });
    let left = simulate(parts, recorder, frames, |leaving| {
        (leaving.release, leaving.bytes.to_vec())
    });
    (left, totals(&cells), kept.take())
}

/// Runs the stages of a live run, between ports with or without offloads.
fn staged(
    case: &Case,
    buffers: &[Vec<Buffer>; 2],
    (takes_offload, records): (bool, Records),
) -> Outcome {
    let (parts, cells) = parts(case);
    let (recorder, kept) = records.recorder();
    let settings = (3, Bytes(64 << 20));
    let sinks = [Sink::default(), Sink::default()];
    let source =
        |port: usize| -> Box<dyn OwnRx> { Box::new(Script::at(buffers[port].clone(), START)) };
    let ports = (0..2).map(|port| (source(port), sinks[port].port(takes_offload)));
    let end = run_to_end(ports.collect(), parts, settings, recorder);
    let reports = end.expect("it runs").reports;
    for report in reports {
        assert_eq!(report.artifacts.values().sum::<u64>(), 0, "{}", case.up);
    }
    let left = sinks.iter().map(Sink::take).collect();
    (left, totals(&cells), kept.take())
}

/// Compares all variants. Returns the number of frames that shared a buffer.
fn compare(case: &Case, buffers: &[Vec<Buffer>; 2]) -> usize {
    let (expected, expected_totals, records) = simulated(case, buffers);
    let mut together = 0;
    let ways = [
        (false, Records::Nothing),
        (true, Records::Nothing),
        (true, Records::Verdicts),
        (true, Records::Frames),
    ];
    for way in ways {
        let (found, found_totals, found_records) = staged(case, buffers, way);
        let (takes_offload, recorded) = way;
        let name = format!("{}, {way:?}", case.up);
        assert_eq!(found_totals, expected_totals, "{name}");
        if recorded != Records::Nothing {
            assert_same(&found_records.events, &records.events, &name);
        }
        if recorded == Records::Frames {
            let mut arrivals = found_records.entered;
            // A burst may end between simultaneous frames.
            arrivals.sort_by_key(|(port, at, _)| (*at, *port));
            assert_same(&arrivals, &records.entered, &name);
        }
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.len(), expected.len(), "{name}");
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                let in_time = found.0 == expected.0 || takes_offload && found.0 == UNKNOWN;
                assert!(in_time && found.1 == expected.1, "{name}: frame {index}");
                let left_together = recorded == Records::Nothing && found.0 == UNKNOWN;
                together += usize::from(left_together);
            }
        }
    }
    together
}

fn traffic(seed: u64) -> [Vec<Buffer>; 2] {
    [
        buffers(&mut draws(2 * seed)),
        buffers(&mut draws(2 * seed + 1)),
    ]
}

#[test]
fn trains_are_decided_as_their_frames_are() {
    let mut together = 0;
    for up in LINKS {
        let case = Case::new(up, "rate=100mbit delay=3ms loss=2%");
        together += (0..8)
            .map(|seed| compare(&case, &traffic(seed)))
            .sum::<usize>();
    }
    assert!(together > 1_000, "{together}");
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
        let case = Case {
            up,
            down: "delay=7ms",
            changes: changes.clone(),
        };
        for seed in 0..8 {
            compare(&case, &traffic(seed));
        }
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
        up: "delay=5ms",
        down: "",
        changes: (0..60).map(toggled).collect(),
    };
    let trains = |gap: u64| (0..100).map(move |n| segments(n * gap, 20)).collect();
    compare(&case, &[trains(400_000), trains(300_000)]);
}

#[test]
fn a_train_leaves_in_one_piece() {
    let case = Case::new("delay=20ms", "");
    let together = compare(&case, &[vec![segments(0, 44)], Vec::new()]);
    assert_eq!(together, 43, "all frames but the first");
}
