//! Checks that a network yields the same events as its links run one at a time, and that the times
//! of calls do not matter.

use std::collections::BTreeMap;

use longwire_engine::BitRate;
use longwire_engine::models::rate::Rate;
use longwire_engine::network::FrameHost;
use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Lane, Link, LinkChange, LinkId, LinkSpec,
    LinkState, Nanos, Network, NoLoader, PathId, QueueLengths, Verdict,
};
use longwire_units::random::Stream;
use proptest::prelude::*;

use crate::common::fates::Fates;
use crate::common::{config, spec};

const SEED: u64 = 11;

/// A frame: number and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    number: u64,
    bytes: Vec<u8>,
}

/// A host that records all events and keeps all frames.
#[derive(Default)]
struct Notes {
    left: Vec<(Nanos, LinkId, Frame)>,
    dropped: Vec<(LinkId, u64, DropReason)>,
    delivered: Vec<(LinkId, u64, Nanos, bool)>,
    forgotten: u64,
    came: BTreeMap<LinkId, usize>,
    queues: Vec<QueueLengths>,
    /// Whether every frame is queued until its event.
    watches_offers: bool,
}

impl FrameAccess<Frame> for Notes {
    fn bytes<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        &frame.bytes
    }

    fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        edit(&mut frame.bytes);
    }

    fn copy(&mut self, frame: &mut Frame) -> Frame {
        frame.clone()
    }
}

impl FrameHost<Frame> for Notes {
    fn fragment(&mut self, of: &Frame, bytes: &[u8]) -> Option<Frame> {
        Some(Frame {
            number: of.number,
            bytes: bytes.to_vec(),
        })
    }

    fn on_arrival(&mut self, link: LinkId, _len: u32) {
        *self.came.entry(link).or_default() += 1;
    }

    fn watches_offers(&self) -> bool {
        self.watches_offers
    }

    fn dropped(&mut self, link: LinkId, frame: Frame, reason: DropReason) {
        self.dropped.push((link, frame.number, reason));
    }

    fn delivered(
        &mut self,
        link: LinkId,
        frame: &Frame,
        len: u32,
        of: &Delivery,
        is_duplicate: bool,
    ) {
        assert_eq!(len as usize, frame.bytes.len());
        self.delivered
            .push((link, frame.number, of.release, is_duplicate));
    }

    fn on_exit(&mut self, frame: Frame, last: LinkId, release: Nanos) {
        self.left.push((release, last, frame));
    }

    fn forget(&mut self, _frame: Frame) {
        self.forgotten += 1;
    }
}

fn link(spec: &LinkSpec, id: usize) -> Link {
    let config = spec.build(&NoLoader).expect("no plugins");
    Link::new(config, SEED, LinkId(id as u32))
}

/// Frames to send, with arrival and path.
type Sent = Vec<(Nanos, usize, Frame)>;

/// Bursts and pauses on random paths. Arrivals are distinct, because the oracle breaks ties
/// differently.
fn sent(paths: usize, frames: u64, seed: u64) -> Sent {
    let mut stream = Stream::of_seed(seed);
    let mut at = Nanos::ZERO;
    let mut sent = Sent::new();
    for number in 0..frames {
        let mean = if stream.up_to(9) == 0 {
            3_000_000
        } else {
            40_000
        };
        at = at.saturating_add(stream.exponential(Nanos::from_nanos(mean)));
        at = at.saturating_add(Nanos::from_nanos(1));
        let path = stream.up_to(paths as u64 - 1) as usize;
        let bytes = vec![number as u8; 60 + stream.up_to(1_400) as usize];
        sent.push((at, path, Frame { number, bytes }));
    }
    sent
}

/// Returns a network of these links, numbered in order, with these paths.
fn network(links: impl Iterator<Item = Link>, paths: &[Vec<usize>]) -> Network<Frame> {
    let mut network = Network::new();
    for (link, id) in links.zip(0..) {
        network.add_link(LinkId(id), link);
    }
    for (path, id) in paths.iter().zip(0..) {
        let links: Vec<_> = path.iter().map(|link| LinkId(*link as u32)).collect();
        assert!(network.add_path(PathId(id), &links));
    }
    network
}

/// Runs the network, calling it at arrivals and at extra times.
fn through_network(links: &[LinkSpec], paths: &[Vec<usize>], sent: &Sent, extra: u64) -> Notes {
    let links = links.iter().zip(0..).map(|(spec, id)| link(spec, id));
    let mut network = network(links, paths);
    let mut notes = Notes::default();
    let mut stream = Stream::of_seed(extra);
    let mut before = Nanos::ZERO;
    for (at, path, frame) in sent {
        for _ in 0..extra.min(stream.up_to(3)) {
            let between = at.saturating_sub(before).as_nanos();
            let asked = before.saturating_add(Nanos::from_nanos(stream.up_to(between)));
            network.advance(asked, &mut notes);
            before = asked;
        }
        network.advance(*at, &mut notes);
        before = *at;
        let meta = FrameMeta::new(*at, frame.bytes.len() as u32);
        let offered = network.offer(PathId(*path as u32), meta, frame.clone(), &mut notes);
        assert_eq!(offered, Ok(()));
    }
    while let Some(next) = network.next_at() {
        let step = Nanos::from_millis(if extra > 0 { 1 } else { 100_000 });
        network.advance(next.max(before).saturating_add(step), &mut notes);
    }
    assert_eq!(network.frames(), 0);
    for (id, came) in &notes.came {
        let delivered = notes.delivered.iter();
        let delivered = delivered.filter(|(link, .., is_duplicate)| link == id && !is_duplicate);
        let dropped = notes.dropped.iter().filter(|(link, ..)| link == id);
        let gone = delivered.count() + dropped.count();
        assert_eq!(*came, gone, "frames of {id:?}");
    }
    notes
}

/// Runs every link separately, in path order. Returns `None` if frames from different links arrive
/// at a link simultaneously: the network orders them by decision, which separate links do not
/// expose.
fn one_by_one(links: &[LinkSpec], paths: &[Vec<usize>], sent: &Sent) -> Option<Notes> {
    let mut notes = Notes::default();
    let mut arrivals: BTreeMap<(usize, Nanos, u64), (usize, Frame)> = BTreeMap::new();
    let mut sources: BTreeMap<(usize, Nanos), usize> = BTreeMap::new();
    for (nth, (at, path, frame)) in sent.iter().enumerate() {
        arrivals.insert((paths[*path][0], *at, nth as u64), (*path, frame.clone()));
        sources.insert((paths[*path][0], *at), usize::MAX);
    }
    let mut nth = sent.len() as u64;
    for (id, spec) in links.iter().enumerate() {
        let mut lane = Lane::new(link(spec, id));
        let mut fates = Fates::default();
        let mine: Vec<_> = arrivals
            .range((id, Nanos::ZERO, 0)..(id + 1, Nanos::ZERO, 0))
            .map(|((_, at, _), carried)| (*at, carried.clone()))
            .collect();
        for (at, (_, frame)) in &mine {
            lane.poll(..=*at, &mut fates);
            let meta = FrameMeta::new(*at, frame.bytes.len() as u32);
            let index = fates.add(&frame.bytes);
            lane.offer(meta, index, &mut fates);
        }
        lane.poll(.., &mut fates);
        for (index, verdict) in &fates.decided {
            if let Verdict::Drop(reason) = verdict {
                let number = mine[*index].1.1.number;
                notes.dropped.push((LinkId(id as u32), number, *reason));
            }
        }
        while let Some((_, index, delivery)) = fates.pop_due(Nanos::MAX) {
            let (path, frame) = mine[index].1.clone();
            let hop = paths[path]
                .iter()
                .position(|link| *link == id)
                .expect("on its path");
            match paths[path].get(hop + 1) {
                Some(next) => {
                    nth += 1;
                    let source = sources.entry((*next, delivery.release)).or_insert(id);
                    if *source != id {
                        return None;
                    }
                    arrivals.insert((*next, delivery.release, nth), (path, frame));
                }
                None => notes
                    .left
                    .push((delivery.release, LinkId(id as u32), frame)),
            }
        }
    }
    Some(notes)
}

fn any_link() -> impl Strategy<Value = LinkSpec> {
    let rate = prop::sample::select(vec!["unlimited", "10mbit", "123457bit", "1gbit"]);
    let queue = prop::sample::select(vec!["10p", "5000b", "codel", "fq-codel", "pie"]);
    let delay = prop::sample::select(vec!["0s", "1ms", "uniform:min=1ms,max=9ms", "50us"]);
    let loss = prop::sample::select(vec!["none", "3%"]);
    let order = prop::sample::select(vec!["in-order", "reorder"]);
    (rate, queue, delay, loss, order).prop_map(|(rate, queue, delay, loss, order)| {
        spec(&format!(
            "rate={rate} queue={queue} delay={delay} loss={loss} order={order}"
        ))
    })
}

/// Paths whose links are in ascending order, the order in which the oracle processes links.
fn any_network() -> impl Strategy<Value = (Vec<LinkSpec>, Vec<Vec<usize>>)> {
    prop::collection::vec(any_link(), 1..6).prop_flat_map(|links| {
        let count = links.len();
        let path = prop::collection::vec(any::<bool>(), count).prop_map(move |on| {
            let chosen: Vec<_> = (0..count).filter(|link| on[*link]).collect();
            if chosen.is_empty() { vec![0] } else { chosen }
        });
        (Just(links), prop::collection::vec(path, 1..5))
    })
}

fn sorted<T: Ord + Clone>(list: &[T]) -> Vec<T> {
    let mut list = list.to_vec();
    list.sort();
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn hop_by_hop_equals_link_by_link((links, paths) in any_network(), seed in any::<u64>()) {
        let sent = sent(paths.len(), 400, seed);
        let expected = one_by_one(&links, &paths, &sent);
        prop_assume!(expected.is_some());
        let (found, expected) = (through_network(&links, &paths, &sent, 0), expected.expect("no tie"));
        let left = |notes: &Notes| {
            let left = notes.left.iter();
            sorted(&left.map(|(at, link, frame)| (*at, *link, frame.number)).collect::<Vec<_>>())
        };
        prop_assert_eq!(left(&found), left(&expected));
        prop_assert_eq!(sorted(&found.dropped), sorted(&expected.dropped));
    }

    #[test]
    fn when_it_is_called_changes_nothing((links, paths) in any_network(), seed in any::<u64>(), extra in 1..u64::MAX) {
        let sent = sent(paths.len(), 300, seed);
        let once = through_network(&links, &paths, &sent, 0);
        let often = through_network(&links, &paths, &sent, extra);
        prop_assert_eq!(once.left, often.left);
        prop_assert_eq!(once.dropped, often.dropped);
        prop_assert_eq!(once.delivered, often.delivered);
    }
}

/// On later links, copies and fragments are separate frames, and earlier links' edits are visible.
#[test]
fn copies_fragments_and_edits_go_on() {
    let links = [
        spec("duplicate=100% rewrite=ip:ttl=9 delay=1ms"),
        spec("mtu=fragment:500 delay=1ms"),
        spec("rate=1mbit queue=codel delay=1ms"),
    ];
    let mut bytes = vec![0; 14 + 1_020];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&1_020u16.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 17;
    longwire_packet::repair_checksums(&mut bytes);
    let sent: Sent = vec![(Nanos::from_micros(1), 0, Frame { number: 0, bytes })];
    let notes = through_network(&links, &[vec![0, 1, 2]], &sent, 0);
    // Two copies with three fragments each, of 480, 480 and 40 payload bytes.
    assert_eq!(notes.left.len(), 6, "{:?}", notes.dropped);
    assert_eq!(notes.forgotten, 2);
    for (_, last, frame) in &notes.left {
        assert_eq!(*last, LinkId(2));
        assert_eq!(frame.bytes[22], 64 - 9, "time to live");
    }
}

#[test]
fn links_in_use_stay_and_paths_in_use_stay() {
    let mut network: Network<Frame> = Network::new();
    let mut notes = Notes::default();
    network.add_link(LinkId(0), link(&spec("rate=1mbit queue=codel"), 0));
    assert!(!network.add_path(PathId(0), &[]));
    assert!(!network.add_path(PathId(0), &[LinkId(0), LinkId(1)]));
    assert!(network.add_path(PathId(0), &[LinkId(0)]));
    assert!(network.remove_link(LinkId(0)).is_none());
    let (meta, frame) = (
        FrameMeta::new(Nanos::ZERO, 100),
        Frame {
            number: 0,
            bytes: vec![0; 100],
        },
    );
    assert!(
        network
            .offer(PathId(7), meta, frame.clone(), &mut notes)
            .is_err()
    );
    assert!(network.offer(PathId(0), meta, frame, &mut notes).is_ok());
    assert!(!network.remove_path(PathId(0)));
    network.advance(Nanos::from_secs(1), &mut notes);
    assert_eq!(notes.left.len(), 1);
    assert!(network.remove_path(PathId(0)));
    assert!(network.remove_link(LinkId(0)).is_some());
    assert_eq!(network.next_at(), None);
}

/// Sends frames through changeable links that are idle half of the time, with simultaneous arrivals
/// and rate changes. With `ahead`, frames that depart before the next change are decided on arrival
/// or when they are dequeued.
fn through_changeable(sent: &Sent, watches_offers: bool, ahead: bool) -> Notes {
    let specs = [
        "rate=40mbit delay=3ms loss=5%",
        "rate=90mbit queue=4p loss=content:match=ether[20]<32",
        "rate=60mbit delay=uniform:min=0ms,max=4ms order=reorder",
        "rate=50mbit delay=1ms queue=2p loss=gilbert:p=5%,r=40%",
        "rate=45mbit delay=1ms queue=fq-codel:target=1ms duplicate=3%",
        "rate=30mbit delay=2ms queue=6p",
        "rate=35mbit delay=1ms queue=4kb framing=ethernet",
        "rate=1gbit delay=1ms",
        "rate=30mbit queue=1p",
        "rate=30mbit queue=900b",
    ];
    let links = specs.iter().zip(0..);
    let links = links.map(|(text, id)| Link::new_changeable(config(text), SEED, LinkId(id)));
    let paths = [
        vec![0, 5, 4],
        vec![1, 0],
        vec![5, 1, 2, 3],
        vec![4, 3, 1],
        vec![2],
        vec![5],
        vec![6],
        vec![7, 6, 5],
        vec![8],
        vec![9],
    ];
    let mut network = network(links, &paths);
    let mut notes = Notes {
        watches_offers,
        ..Notes::default()
    };
    // Several frames arrive within the same ten microseconds.
    let rounded = |at: Nanos| Nanos::from_nanos(at.as_nanos() / 10_000 * 10_000);
    let mut before = Nanos::ZERO;
    for (index, (at, path, frame)) in sent.iter().enumerate() {
        let at = rounded(*at);
        network.advance(at, &mut notes);
        // A change precedes frames at the same instant.
        let first = std::mem::replace(&mut before, at) < at;
        if first && frame.number.is_multiple_of(17) {
            let id = LinkId(frame.number as u32 % 10);
            let change = change_number(frame.number / 17);
            assert!(network.changeable_from() <= at);
            assert!(network.change(id, at, change, &mut notes).is_some());
        }
        if ahead {
            let mut later = sent[index..].iter();
            let change = later
                .find(|(later, _, frame)| rounded(*later) > at && frame.number.is_multiple_of(17));
            network.stays_until(change.map_or(Nanos::MAX, |(at, ..)| rounded(*at)));
        }
        if ahead {
            // A recorder may start and stop during a run.
            notes.watches_offers = frame.number / 50 % 4 == 3;
        }
        let meta = FrameMeta::new(at, frame.bytes.len() as u32);
        let id = LinkId(frame.number as u32 % 10);
        notes.queues.extend(network.occupancy(id, at));
        let path = PathId(*path as u32);
        assert_eq!(network.offer(path, meta, frame.clone(), &mut notes), Ok(()));
    }
    end_changeable(&mut network, &mut notes);
    notes
}

/// Turns all links on, waits until they are empty, and notes the peaks of their queues.
fn end_changeable(network: &mut Network<Frame>, notes: &mut Notes) {
    let end = Nanos::from_secs(1_000);
    network.advance(end, notes);
    for id in (0..10).map(LinkId) {
        let on = LinkChange {
            state: Some(LinkState::On),
            ..LinkChange::default()
        };
        assert!(network.change(id, end, on, notes).is_some());
    }
    network.advance(Nanos::MAX, notes);
    assert_eq!(network.frames(), 0);
    let last = (0..10).filter_map(|id| network.occupancy(LinkId(id), Nanos::from_secs(2_000)));
    notes.queues.extend(last);
}

/// Returns a change that any link accepts.
fn change_number(number: u64) -> LinkChange {
    let fixed = |bits| BitRate::from_bits_per_sec(bits).map(Rate::Fixed);
    let none = LinkChange::default();
    match number % 6 {
        0..3 => LinkChange {
            rate: fixed(30_000_000 + number * 17_017),
            ..none
        },
        3 => LinkChange {
            delay: Some(Nanos::from_micros(number % 7 * 300).into()),
            ..none
        },
        4 => LinkChange {
            queue: config(&format!("queue={}p", 2 + number % 5))
                .queue
                .map(Some),
            ..none
        },
        _ => LinkChange {
            state: Some(
                [LinkState::Off, LinkState::Paused, LinkState::On][number as usize / 6 % 3],
            ),
            ..none
        },
    }
}

#[test]
fn frames_decided_ahead_are_decided_as_at_their_events() {
    for seed in 0..20 {
        let sent = sent(10, 3_000, seed);
        let (at_once, queued) = (
            through_changeable(&sent, false, true),
            through_changeable(&sent, true, false),
        );
        assert!(at_once.left.len() > 1_000 && at_once.dropped.len() > 100);
        assert_eq!(at_once.came, queued.came);
        assert_eq!(at_once.queues, queued.queues);
        // Frames leave in release order; ties within a link keep the decision order.
        let left = |notes: &Notes| {
            let mut left = notes.left.clone();
            left.sort_by_key(|(release, link, _)| (*release, *link));
            left
        };
        assert!(left(&at_once) == left(&queued));
        // Counts do not depend on the order of simultaneous events.
        let sorted = |notes: Notes| {
            let (mut delivered, mut dropped) = (notes.delivered, notes.dropped);
            delivered.sort();
            dropped.sort_by_key(|(link, number, _)| (*link, *number));
            (delivered, dropped)
        };
        assert_eq!(sorted(at_once), sorted(queued));
    }
}
