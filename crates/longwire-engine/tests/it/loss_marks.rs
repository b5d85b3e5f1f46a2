//! Marks instead of losses, compared with the losses of the same model and seed without marking.

use longwire_engine::{
    Delivery, DropReason, FrameMeta, Lane, Link, LinkId, Nanos, NoLoader, Verdict,
};
use longwire_packet::header::{Ecn, IpHeader};
use longwire_testbed::support::frames::{self, Sample};

use crate::common::fates::Fates;
use crate::common::{config, spec};

/// Each sample with each of the four ECN fields, and ARP.
fn frames() -> Vec<(Option<Sample>, Vec<u8>)> {
    let mut frames = vec![(None, frames::ethernet(&[], 0x0806, &[7; 46]))];
    for sample in frames::samples() {
        for ecn in 0..4 {
            let frame = with_ecn(&sample.frame, ecn);
            frames.push((Some(sample.clone()), frame));
        }
    }
    frames
}

/// Returns the frames, repeated `times` times.
fn several(kinds: &[(Option<Sample>, Vec<u8>)], times: usize) -> Vec<Vec<u8>> {
    let all = kinds.iter().cycle().take(kinds.len() * times);
    all.map(|(_, frame)| frame.clone()).collect()
}

/// Returns the frame with this ECN field.
fn with_ecn(frame: &[u8], ecn: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let ip = IpHeader::parse(&frame).expect("IP");
    match frame[ip.at] >> 4 {
        4 => frame[ip.at + 1] = frame[ip.at + 1] & 0xfc | ecn,
        _ => frame[ip.at + 1] = frame[ip.at + 1] & 0xcf | ecn << 4,
    }
    longwire_packet::repair_checksums(&mut frame);
    frame
}

fn takes_marks(frame: &[u8]) -> bool {
    IpHeader::parse(frame).is_some_and(|ip| ip.ecn != Ecn::NotCapable)
}

/// A frame's delivery with its bytes, or its drop reason.
type Fate = Result<(Delivery, Vec<u8>), DropReason>;

/// Sends a frame through a link every 100 us, and applies `change` halfway.
fn cross(line: &str, change: Option<&str>, frames: &[Vec<u8>]) -> Vec<Fate> {
    let link = match change {
        Some(_) => Link::new_changeable(config(line), 5, LinkId(0)),
        None => Link::new(config(line), 5, LinkId(0)),
    };
    let (mut lane, mut fates) = (Lane::new(link), Fates::default());
    for (index, frame) in frames.iter().enumerate() {
        let at = Nanos::from_micros(100 * index as u64);
        lane.poll(..=at, &mut fates);
        if let Some(change) = change.filter(|_| index == frames.len() / 2) {
            let change = spec(change).build_change(&NoLoader).expect("no plugins");
            drop(lane.change(at, change, &mut fates));
        }
        let meta = FrameMeta::new(at, frame.len() as u32);
        let index = fates.add(frame);
        lane.offer(meta, index, &mut fates);
    }
    lane.poll(.., &mut fates);
    let verdicts = fates.verdicts();
    let fate = |(index, bytes): (usize, Vec<u8>)| match verdicts[&index][..] {
        [Verdict::Deliver(delivery)] => Ok((delivery, bytes)),
        [Verdict::Drop(reason)] => Err(reason),
        ref other => panic!("frame {index}: {other:?}"),
    };
    fates.frames.into_iter().enumerate().map(fate).collect()
}

const MODELS: [&str; 5] = [
    "packet:rate=40%",
    "packet:rate=70%,run-max=2",
    "gilbert:p=30%,r=40%",
    "ber:rate=1e-3",
    "content:match=ip or ip6,probability=60%",
];

/// Compares each model, place and queue with a run without marking. ECN-capable frames lost in that
/// run are marked; other lost frames are dropped with `mark` and pass with `mark-only`.
#[test]
fn frames_are_marked_where_others_are_lost() {
    let kinds = frames();
    let sent = several(&kinds, 40);
    for model in MODELS {
        for rest in [
            "",
            "rate=99mbit",
            "rate=99mbit queue=codel",
            "queue=fq-codel",
        ] {
            for place in ["medium", "entry"] {
                let run = |ecn: &str| {
                    let line = format!("{rest} delay=1ms loss={model},at={place},ecn={ecn}");
                    cross(&line, None, &sent)
                };
                let (lost, marked, only) = (run("drop"), run("mark"), run("mark-only"));
                let mut counts = [0; 3];
                for (index, frame) in sent.iter().enumerate() {
                    let (sample, _) = &kinds[index % kinds.len()];
                    let is_marked = lost[index].is_err() && takes_marks(frame);
                    for (fate, drops) in [(&marked, true), (&only, false)] {
                        match &fate[index] {
                            Err(reason) => {
                                assert!(drops && !is_marked, "{model} {rest} {place}");
                                assert_eq!(Err(*reason), lost[index].clone().map(drop));
                                counts[0] += 1;
                            }
                            Ok((delivery, bytes)) => {
                                assert!(is_marked || !drops || lost[index].is_ok());
                                assert_eq!(delivery.edits.mark, is_marked, "{model} {rest}");
                                counts[1 + usize::from(is_marked)] += 1;
                                if is_marked {
                                    let sample = sample.as_ref().expect("IP");
                                    assert_eq!(*bytes, with_ecn(frame, 3), "{}", sample.name);
                                    assert!(sample.holds(bytes), "{}", sample.name);
                                } else {
                                    assert_eq!(bytes, frame);
                                }
                            }
                        }
                    }
                }
                assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
            }
        }
    }
}

/// A model that only marks on the medium changes neither other models' draws nor releases.
#[test]
fn marks_on_the_medium_move_nothing() {
    let sent = several(&frames(), 20);
    let line = "rate=3mbit queue=20p delay=uniform:min=1ms,max=9ms loss=nth:every=5 corrupt=10%";
    let plain = cross(line, None, &sent);
    let marking = cross(
        &format!("{line} loss=packet:rate=50%,ecn=mark-only"),
        None,
        &sent,
    );
    let mut marks = 0;
    for (plain, marking) in plain.iter().zip(&marking) {
        let times = |fate: &Fate| {
            fate.clone()
                .map(|(delivery, _)| (delivery.departure, delivery.release, delivery.edits.corrupt))
        };
        assert_eq!(times(plain), times(marking));
        marks += u32::from(matches!(marking, Ok((delivery, _)) if delivery.edits.mark));
    }
    assert!(marks > 50, "{marks}");
}

/// With several models, a loss overrides a mark, in either order.
#[test]
fn a_loss_wins_over_a_mark() {
    let frame = with_ecn(&frames::samples()[0].frame, 2);
    let sent = vec![frame; 12];
    for place in ["medium", "entry"] {
        let marks = format!("loss=nth:every=2,at={place},ecn=mark");
        let loses = format!("loss=nth:every=3,at={place}");
        for line in [format!("{marks} {loses}"), format!("{loses} {marks}")] {
            for (index, fate) in (1..).zip(cross(&line, None, &sent)) {
                let mark = fate.map(|(delivery, _)| delivery.edits.mark).ok();
                let expected = (index % 3 != 0).then_some(index % 2 == 0);
                assert_eq!(mark, expected, "{line}: {index}");
            }
        }
    }
    // A frame marked at both places and by a queue counts as marked once.
    let both = "loss=nth:1,at=entry,ecn=mark loss=nth:1,ecn=mark";
    for line in [both, &format!("{both} rate=10kbit queue=codel:ecn=true")] {
        let fates = cross(line, None, &sent);
        assert!(fates.iter().flatten().all(|(of, _)| of.edits.mark));
    }
}

/// A queue treats frames marked at the link's entry like frames that arrive marked, even after they
/// move to another queue.
#[test]
fn a_queue_sees_marks_made_before_it() {
    let kinds = frames();
    let sent = several(&kinds, 30);
    let loss = "loss=packet:rate=50%,at=entry";
    let lost = cross(&format!("rate=1gbit {loss}"), None, &sent);
    let marked_before = sent.iter().zip(&lost).map(|(frame, lost)| {
        if lost.is_err() && takes_marks(frame) {
            with_ecn(frame, 3)
        } else {
            frame.clone()
        }
    });
    let marked_before: Vec<Vec<u8>> = marked_before.collect();
    for (queue, change) in [
        ("dualpi2", None),
        ("fq-codel", None),
        ("red:min=5p,max=15p,ecn=true", None),
        ("500p", Some("queue=dualpi2")),
        ("dualpi2", Some("queue=500p")),
        ("codel", Some("delay=2ms")),
    ] {
        let line = format!("rate=5mbit queue={queue} delay=1ms");
        let expected = cross(&line, change, &marked_before);
        let found = cross(&format!("{line} {loss},ecn=mark-only"), change, &sent);
        for (expected, found) in expected.iter().zip(&found) {
            let of = |fate: &Fate| fate.clone().map(|(of, bytes)| (of.departure, bytes));
            assert_eq!(of(found), of(expected), "{queue} {change:?}");
        }
        let delivered = found.iter().zip(&lost).zip(&sent);
        let kept = delivered.filter(|((fate, lost), frame)| {
            let is_marked = matches!(fate, Ok((delivery, _)) if delivery.edits.mark);
            let expects_mark = lost.is_err() && takes_marks(frame);
            assert!(is_marked || !expects_mark || fate.is_err());
            is_marked
        });
        assert!(kept.count() > 100, "{queue} {change:?}");
    }
}

/// A link that marks reads headers, so super-packets must be segmented first. Links without marking
/// keep the fast path.
#[test]
fn only_links_that_mark_need_bytes() {
    for (line, reads) in [
        ("loss=1%", false),
        ("loss=packet:1%,ecn=drop", false),
        ("loss=packet:1%,ecn=mark", true),
        ("loss=packet:1%,entry,ecn=mark-only", true),
    ] {
        let link = Link::new_changeable(config(line), 1, LinkId(0));
        assert_eq!(link.changes_frames(), reads, "{line}");
        assert_eq!(link.is_sequential(), !reads, "{line}");
    }
}
