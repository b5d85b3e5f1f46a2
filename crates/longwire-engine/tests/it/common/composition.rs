//! Arbitrary links from bytes, and their invariants; shared by a property test and a fuzz target.

use std::collections::BTreeMap;

use super::any_spec::{Choices, Examples, any_spec};
use super::fates::Fates;
use longwire_engine::{
    Delivery, Fragments, FrameMeta, Lane, Link, LinkConfig, LinkId, LinkSpec, Nanos, Verdict,
};

/// An offered frame.
#[derive(Clone, Debug)]
struct Offered {
    arrival: u64,
    flow: usize,
    bytes: Vec<u8>,
}

/// Number of flows, which differ in ports, code points and ECN fields.
const FLOWS: usize = 5;

fn frames(choices: &mut Choices<'_>) -> Vec<Offered> {
    let mut now = 1_000_000_000;
    let gaps = [0, 1, 500, 12_000, 120_000, 3_000_000, 90_000_000];
    let count = 20 + choices.below(150);
    let mut usual = 12_000;
    let frame = |_| {
        if choices.one_in(20) {
            usual = choices.pick(&gaps);
        }
        now += if choices.one_in(3) { usual * 3 } else { usual };
        let flow = choices.below(FLOWS);
        let len = choices.pick(&[60, 64, 590, 1514, 1514, 4000]);
        Offered {
            arrival: now,
            flow,
            bytes: packet(flow, len),
        }
    };
    (0..count).map(frame).collect()
}

/// Returns a frame of `flow`: UDP over IPv4 or IPv6, or a frame without IP.
pub fn packet(flow: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xa5; len];
    let class = [0x00, 0x02, 0x01, 0xb9, 0x03][flow];
    match flow {
        4 => bytes[12..14].copy_from_slice(&[0x12, 0x34]),
        3 => {
            bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
            bytes[14..18].copy_from_slice(&[0x60 | class >> 4, class << 4, 0, 0]);
            let payload = (len - 54) as u16;
            bytes[18..20].copy_from_slice(&payload.to_be_bytes());
            bytes[20..22].copy_from_slice(&[17, 64]);
        }
        _ => {
            bytes[12..14].copy_from_slice(&[0x08, 0x00]);
            let total = (len - 14) as u16;
            bytes[14..16].copy_from_slice(&[0x45, class]);
            bytes[16..18].copy_from_slice(&total.to_be_bytes());
            bytes[18..24].copy_from_slice(&[0, flow as u8, 0, 0, 64, 17]);
            bytes[34..36].copy_from_slice(&(flow as u16).to_be_bytes());
        }
    }
    bytes
}

/// Verdicts and deliveries of one run.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Verdicts by frame index, in order.
    verdicts: BTreeMap<usize, Vec<Verdict>>,
    /// Deliveries in release order.
    polled: Vec<(usize, Delivery)>,
    queued: usize,
    waiting: usize,
}

/// Checks a link built and driven from `data`.
pub fn check(data: &[u8]) {
    let mut choices = Choices(data);
    let spec = any_spec(&mut choices);
    let seed = choices.below(65_536) as u64;
    let config = || build(&spec);
    assert_eq!(
        Link::new(config(), seed, LinkId(0)).poll_slack(),
        config().lookahead(),
        "{spec}"
    );
    assert_eq!(spec.lookahead(), config().lookahead(), "{spec}");
    assert_eq!(spec.has_plugins(), spec.to_string().contains("plugin:"));
    let frames = in_pieces(frames(&mut choices), &Link::new(config(), seed, LinkId(0)));
    let often = run(config(), seed, &frames, true);
    // The printed text parses back.
    let again = LinkSpec::parse(&spec.to_string(), &Examples);
    let again = again.unwrap_or_else(|error| panic!("{spec}: {error}"));
    assert_eq!(again, spec);
    let rarely = run(build(&again), seed, &frames, false);
    assert_eq!(often.verdicts, rarely.verdicts, "late polling: {spec}");
    assert_eq!(often.polled, rarely.polled, "late polling: {spec}");
    conserves(&often, frames.len(), &spec);
    keeps_order(
        &often,
        &frames,
        &Link::new(config(), seed, LinkId(0)),
        &spec,
    );
}

/// Builds the link, with an epoch of 0.9 s.
pub fn build(spec: &LinkSpec) -> LinkConfig {
    let config = spec.build(&Examples);
    let config = config.unwrap_or_else(|error| panic!("{spec}: {error}"));
    LinkConfig {
        epoch: Nanos::from_nanos(900_000_000),
        ..config
    }
}

/// Returns the frames as offered to the link, fragmented if necessary.
fn in_pieces(frames: Vec<Offered>, link: &Link) -> Vec<Offered> {
    let mut offered = Vec::new();
    for frame in frames {
        let mut fragments = Fragments::default();
        if fragments.cut(link.mtu(), &frame.bytes) {
            let piece = |bytes: &[u8]| Offered {
                bytes: bytes.to_vec(),
                ..frame
            };
            offered.extend(fragments.iter().map(piece));
        } else {
            offered.push(frame);
        }
    }
    offered
}

/// Offers every frame, polling at every event or only as required by the contract.
fn run(config: LinkConfig, seed: u64, frames: &[Offered], often: bool) -> Outcome {
    let lookahead = config.lookahead();
    let mut lane = Lane::new(Link::new(config, seed, LinkId(0)));
    let mut fates = Fates::default();
    let mut polled = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let arrival = Nanos::from_nanos(frame.arrival);
        let earlier = |lane: &mut Lane<usize>, fates: &Fates| {
            let next = lane.next_at().into_iter().chain(fates.waiting.next_at());
            next.min().filter(|next| *next < arrival)
        };
        while often && let Some(next) = earlier(&mut lane, &fates) {
            step(&mut lane, next, &mut fates, &mut polled);
        }
        if often {
            let before = Nanos::from_nanos(frame.arrival - 1);
            step(&mut lane, before, &mut fates, &mut polled);
        }
        step(&mut lane, arrival, &mut fates, &mut polled);
        let meta = FrameMeta::new(arrival, frame.bytes.len() as u32);
        assert_eq!(fates.add(&frame.bytes), index);
        lane.offer(meta, index, &mut fates);
    }
    step(&mut lane, Nanos::MAX, &mut fates, &mut polled);
    let outcome = Outcome {
        verdicts: fates.verdicts(),
        polled,
        queued: lane.len(),
        waiting: fates.waiting.len(),
    };
    is_causal(&outcome, frames, lookahead);
    outcome
}

fn step(
    lane: &mut Lane<usize>,
    now: Nanos,
    fates: &mut Fates,
    polled: &mut Vec<(usize, Delivery)>,
) {
    lane.poll(..=now, fates);
    let end = Nanos::from_nanos(u64::MAX - 1);
    while let Some((_, index, delivery)) = fates.pop_due(now.min(end)) {
        polled.push((index, delivery));
    }
}

/// Asserts that no frame leaves before its arrival or crosses the link faster than its lookahead.
fn is_causal(outcome: &Outcome, frames: &[Offered], lookahead: Nanos) {
    for (index, verdicts) in &outcome.verdicts {
        let arrival = Nanos::from_nanos(frames[*index].arrival);
        let earliest = arrival.saturating_add(lookahead);
        for verdict in verdicts {
            if let Verdict::Deliver(delivery) = verdict {
                assert!(delivery.departure >= arrival && delivery.release >= delivery.departure);
                assert!(delivery.release >= earliest, "{delivery:?} at {arrival}");
            }
        }
    }
}

/// Asserts that every frame is decided exactly once or still queued, and that every delivery within
/// representable time is released.
fn conserves(outcome: &Outcome, offered: usize, spec: &LinkSpec) {
    assert_eq!(outcome.verdicts.len() + outcome.queued, offered, "{spec}");
    let mut deliveries = 0;
    for verdicts in outcome.verdicts.values() {
        for (at, verdict) in verdicts.iter().enumerate() {
            let last = at + 1 == verdicts.len();
            match verdict {
                Verdict::Deliver(delivery) => assert_eq!(delivery.more, !last, "{spec}"),
                Verdict::Drop(_) => assert_eq!(verdicts.len(), 1, "{spec}"),
                Verdict::Queued => panic!("decided as queued: {spec}"),
            }
            deliveries += usize::from(matches!(verdict, Verdict::Deliver(_)));
        }
    }
    assert_eq!(outcome.polled.len() + outcome.waiting, deliveries, "{spec}");
}

/// Asserts that, unless reordering is requested, frames of a flow leave in order and releases never
/// decrease.
fn keeps_order(outcome: &Outcome, frames: &[Offered], link: &Link, spec: &LinkSpec) {
    // Later fragments have no ports, so a flow queue may assign them to a different flow.
    if !link.in_order() || link.fragments() {
        return;
    }
    // DualPI2 puts frames that arrive marked into its L queue (RFC 9332, section 2.1).
    let spec_text = spec.to_string();
    if ["queue=dualpi2", "at=entry,ecn=mark"]
        .iter()
        .all(|part| spec_text.contains(part))
    {
        return;
    }
    let mut last = [0; FLOWS];
    let mut release = Nanos::ZERO;
    for (index, delivery) in &outcome.polled {
        let flow = frames[*index].flow;
        assert!(last[flow] <= *index, "flow {flow} is reordered: {spec}");
        assert!(release <= delivery.release, "{spec}");
        last[flow] = *index;
        release = delivery.release;
    }
}
