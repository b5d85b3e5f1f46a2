//! A pair with one link, whose frames may leave at their decisions, compared with a pair with two
//! links, whose frames wait for their releases.

use longwire_engine::{FrameMeta, LinkSpec, Nanos};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::LinkSetup;
use longwire_runtime::deciding::{OutputFrame, Simulation};
use longwire_runtime::record::Event;
use longwire_testbed::support::Draws;
use longwire_testbed::support::frames::udp4;

use crate::common::recorder::keeper;
use crate::composed::any_spec::{Choices, Examples, any_spec};
use crate::composed::traffic::draws;

/// The link's output, its events and report, and the number of frames that left before their releases.
struct PairRun {
    left: Vec<(Nanos, u32, Vec<u8>)>,
    events: Vec<Event>,
    report: String,
    inside: u64,
    early: usize,
}

fn spec(draws: &mut Draws) -> LinkSpec {
    let text = match draws.below(4) {
        0 => "rate=8mbit queue=20p delay=5ms loss=5%",
        1 => "rate=10mbit delay=200us queue=fq-codel",
        // The last frames have no release.
        2 => "rate=steps:at=0s/1mbit;20ms/0mbit delay=1ms",
        _ => {
            let bytes: Vec<u8> = (0..300).map(|_| draws.below(256) as u8).collect();
            return any_spec(&mut Choices(&bytes));
        }
    };
    text.parse().expect("a link")
}

fn run(spec: &LinkSpec, ports: &[u16], frames: &[(Nanos, Vec<u8>)], records: bool) -> PairRun {
    let setup = |port: &u16| {
        let link = spec.build(&Examples).expect("a link");
        (PortIndex(*port), LinkSetup::new(port.to_string(), link))
    };
    let (recorder, kept) = keeper(false);
    let recorder = Some(recorder).filter(|_| records);
    let links = ports.iter().map(setup).collect();
    let mut simulation = Simulation::pair(links, 5, Nanos::ZERO, recorder).expect("a pair");
    let (mut left, mut early, mut now) = (Vec::new(), 0, Nanos::ZERO);
    for (at, bytes) in frames {
        now = now.max(*at);
        let meta = FrameMeta::new(*at, bytes.len() as u32);
        let mut out = |frame: OutputFrame<'_>| {
            early += usize::from(frame.release > now);
            // Two links send ICMP errors back.
            if frame.port == PortIndex(1) {
                left.push((frame.release, frame.wire_len, frame.bytes.to_vec()));
            }
            Ok::<(), ()>(())
        };
        let entered = simulation.frame(PortIndex(0), meta, bytes, &mut out);
        entered.expect("nothing fails");
    }
    let mut out = |frame: OutputFrame<'_>| {
        if frame.port == PortIndex(1) {
            left.push((frame.release, frame.wire_len, frame.bytes.to_vec()));
        }
        Ok::<(), ()>(())
    };
    simulation.advance(Nanos::MAX, &mut out).expect("no error");
    let inside = simulation.frames();
    let mut links = simulation.stop().links;
    PairRun {
        left,
        events: kept.take().events,
        report: format!("{:?}", links.remove(0)),
        inside,
        early,
    }
}

#[test]
fn frames_of_one_link_leave_as_if_they_had_waited() {
    let (mut early, mut waiting, mut stuck) = (0, 0, 0);
    for number in 0..400 {
        let mut draws = draws(number);
        let spec = spec(&mut draws);
        let mut at = 0;
        let frames: Vec<(Nanos, Vec<u8>)> = (0..150)
            .map(|number| {
                at += [0, 0, 100, 500, 1_337][draws.below(5) as usize] * 1_000;
                let payload = vec![number as u8; draws.below(1_200) as usize];
                let flow = (1_000 + draws.below(4) as u16, 7);
                let bytes = udp4([10, 0, 0, 1], [10, 0, 0, 2], flow, &payload);
                (Nanos::from_nanos(at), bytes)
            })
            .collect();
        let records = draws.below(2) == 0;
        let one = run(&spec, &[0], &frames, records);
        let two = run(&spec, &[0, 1], &frames, records);
        assert_eq!(one.left, two.left, "{spec}");
        assert_eq!(one.events, two.events, "{spec}");
        assert_eq!(one.report, two.report, "{spec}");
        assert_eq!(one.inside, two.inside, "{spec}");
        assert_eq!(two.early, 0, "{spec}");
        early += usize::from(one.early > 0);
        waiting += usize::from(one.early == 0);
        stuck += usize::from(one.inside > 0);
    }
    let all = [early, waiting, stuck];
    assert!(all.iter().all(|cases| *cases > 20), "{all:?}");
}
