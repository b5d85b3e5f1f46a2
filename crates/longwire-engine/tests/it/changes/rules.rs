//! Effects of each kind of change on queued frames, frames in transit and later arrivals.

use longwire_engine::models::{self, Entry};
use longwire_engine::{
    Delivery, DropReason, LinkChange, LinkSpec, LinkSpecError, LinkState, NoLoader, Verdict,
};

use super::driven::{Event, Verdicts, link, outcomes, run, set};
use crate::common::spec;

const MS: u64 = 1_000_000;

fn state(state: LinkState) -> Event {
    Event::Change(Box::new(LinkChange {
        state: Some(state),
        ..LinkChange::default()
    }))
}

fn frame(len: usize) -> Event {
    Event::Frame(vec![0; len])
}

/// An IPv4 packet of 1000 bytes with this code point.
fn packet(dscp: u8) -> Event {
    let mut bytes = vec![0; 1_000];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14..18].copy_from_slice(&[0x45, dscp << 2, 3, 0xda]);
    Event::Frame(bytes)
}

fn releases(verdicts: &Verdicts) -> Vec<u64> {
    let delivery = |verdict: &Verdict| match verdict {
        Verdict::Deliver(Delivery { release, .. }) => release.as_nanos(),
        other => panic!("{other:?}"),
    };
    verdicts.values().flatten().map(delivery).collect()
}

fn lost(verdicts: &Verdicts) -> Vec<bool> {
    outcomes(verdicts).iter().map(Result::is_err).collect()
}

#[test]
fn off_drops_queued_and_arriving_frames() {
    let mut events: Vec<_> = (0..4).map(|_| (0, frame(1_000))).collect();
    events.extend([
        (10 * MS, state(LinkState::Off)),
        (11 * MS, frame(1_000)),
        (12 * MS, state(LinkState::On)),
        (12 * MS, frame(1_000)),
        (40 * MS, state(LinkState::Off)),
        (50 * MS, state(LinkState::On)),
        (60 * MS, frame(1_000)),
    ]);
    let (verdicts, lane) = run(link("rate=1mbit delay=9ms"), events, true);
    let outage = Err(DropReason::Outage);
    assert_eq!(
        outcomes(&verdicts),
        // The second was in service; the queue is empty at 10 ms.
        [
            Ok(8 * MS),
            outage,
            outage,
            outage,
            outage,
            Ok(20 * MS),
            Ok(68 * MS)
        ]
    );
    assert_eq!(lane.link().state(), LinkState::On);
    assert_eq!(lane.link().occupancy().0.0, 0);
}

#[test]
fn paused_keeps_what_waits() {
    let mut events: Vec<_> = (0..3).map(|_| (0, frame(1_000))).collect();
    events.extend([
        (10 * MS, state(LinkState::Paused)),
        (11 * MS, frame(1_000)),
        (12 * MS, frame(1_000)),
        (100 * MS, state(LinkState::On)),
    ]);
    let (verdicts, _) = run(link("rate=1mbit queue=3p"), events, true);
    let at = |ms| Ok(ms * MS);
    assert_eq!(
        outcomes(&verdicts),
        // The second is in service and counts; the fifth exceeds the limit.
        [at(8), at(16), at(108), at(116), Err(DropReason::QueueFull)]
    );
}

#[test]
fn paused_without_a_rate_fills_the_queue() {
    let mut events = vec![(0, frame(64)), (0, frame(64)), (0, frame(64))];
    events.push((1, state(LinkState::Paused)));
    events.extend((0..3).map(|n| (2 + n, frame(64))));
    events.push((9, state(LinkState::On)));
    events.extend((0..3).map(|_| (9, frame(64))));
    let (verdicts, _) = run(link("queue=2p"), events, true);
    let full = Err(DropReason::QueueFull);
    let mut expected = vec![Ok(0), Ok(0), Ok(0), Ok(9), Ok(9), full];
    expected.extend([Ok(9); 3]);
    assert_eq!(outcomes(&verdicts), expected);
}

#[test]
fn an_opportunity_that_passed_unused_is_gone() {
    // Slots of 1 ms every 10 ms; a frame of 1250 bytes takes a whole slot, the first one
    // half of two.
    let line = "rate=tdm:rate=10mbit,period=10ms,slot=1ms";
    let mut events: Vec<_> = (0..3).map(|_| (MS / 2, frame(1_250))).collect();
    events.push((8 * MS, state(LinkState::Paused)));
    events.push((25 * MS, state(LinkState::On)));
    let (paused, _) = run(link(line), events, true);
    let events = (0..3).map(|_| (MS / 2, frame(1_250))).collect();
    let (never, _) = run(link(line), events, true);
    let (paused, never) = (outcomes(&paused), outcomes(&never));
    let halves = |ms: u64| Ok(ms * MS / 2);
    assert_eq!(never, [21, 41, 61].map(halves));
    // The second misses its half slots at 10.5 ms and 20 ms, and takes the whole next slot.
    assert_eq!(paused, [21, 62, 82].map(halves));
}

#[test]
fn a_new_queue_knows_the_headers_of_what_waits() {
    let mut events = vec![
        (0, packet(0)),
        (0, packet(0)),
        (0, packet(0)),
        (0, packet(46)),
    ];
    events.push((MS, set("queue=priority:classes=ef/rest")));
    let (verdicts, _) = run(link("rate=1mbit"), events, true);
    // The first is in service; the urgent one is served next.
    let expected = [8, 24, 32, 16].map(|ms| Ok(ms * MS));
    assert_eq!(outcomes(&verdicts), expected);
}

/// Every discipline hands its frames to every other, at once and after a refill.
#[test]
fn every_discipline_hands_over_to_every_other() {
    let texts: Vec<String> = models::QUEUE
        .entries
        .iter()
        .map(|Entry { info, .. }| match info.name {
            "tail-drop" => "1000p".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    for first in &texts {
        for second in &texts {
            let mut events: Vec<_> = (0..60u8).map(|n| (0, packet(n))).collect();
            events.push((8 * MS + 1, set(&format!("queue={second}"))));
            events.push((9 * MS, state(LinkState::Off)));
            events.push((10 * MS, state(LinkState::On)));
            events.extend((0..60u8).map(|n| (20 * MS, packet(n))));
            events.push((20 * MS + 1, set(&format!("queue={first}"))));
            let line = format!("rate=1mbit queue={first}");
            let (verdicts, lane) = run(link(&line), events, false);
            let outcomes = outcomes(&verdicts);
            let gone = |reason| outcomes.iter().filter(|o| **o == Err(reason)).count();
            // One had left before the link went down; one was in service.
            assert_eq!(gone(DropReason::Outage), 59, "{first} {second}");
            assert_eq!(gone(DropReason::QueueFull), 0, "{first} {second}");
            let sent = outcomes[60..].iter().filter(|outcome| outcome.is_ok());
            assert!(sent.count() > 20, "{first} {second}");
            assert_eq!(lane.link().occupancy().0.0, 0, "{first} {second}");
        }
    }
}

#[test]
fn in_flight_keeps_its_release_and_order_stays() {
    let events = |order: &'static str| {
        vec![
            (0, frame(64)),
            (MS, set(&format!("delay=5ms order={order}"))),
            (2 * MS, frame(64)),
            (30 * MS, frame(64)),
        ]
    };
    let wire = || link("delay=20ms");
    let (kept, _) = run(wire(), events("in-order"), true);
    assert_eq!(releases(&kept), [20 * MS, 20 * MS, 35 * MS]);
    let (overtakes, _) = run(wire(), events("reorder"), true);
    assert_eq!(releases(&overtakes), [20 * MS, 7 * MS, 35 * MS]);
}

#[test]
fn back_in_order_nothing_overtakes() {
    let events = vec![
        (0, frame(64)),
        (MS, set("delay=5ms")),
        (2 * MS, frame(64)),
        (3 * MS, set("order=in-order")),
        (4 * MS, frame(64)),
    ];
    let (verdicts, _) = run(link("delay=20ms order=reorder"), events, true);
    assert_eq!(releases(&verdicts), [20 * MS, 7 * MS, 20 * MS]);
}

#[test]
fn schedules_count_from_the_change() {
    let mut events = vec![(100 * MS, set("delay=steps:0s/1ms;10ms/2ms"))];
    events.extend([100, 109, 110, 120].map(|ms| (ms * MS, frame(64))));
    let (verdicts, _) = run(link(""), events, true);
    assert_eq!(releases(&verdicts), [101, 110, 112, 122].map(|ms| ms * MS));
}

/// Models that stay continue their streams; replaced ones start new streams, determined by
/// the number of the change.
#[test]
fn streams_go_on_or_begin_anew() {
    let pattern = |changes: &[&str]| {
        let mut events: Vec<_> = changes.iter().map(|line| (0, set(line))).collect();
        events.extend((0..200).map(|n| (n * MS, frame(64))));
        lost(&run(link("loss=50%"), events, true).0)
    };
    let unchanged = pattern(&[]);
    let delay = "delay=3ms rate=1gbit queue=codel";
    assert_eq!(pattern(&[delay]), unchanged);
    let loss = "loss=50%";
    let once = pattern(&[loss]);
    assert_ne!(once, unchanged);
    assert_eq!(once, pattern(&[loss]));
    assert_ne!(pattern(&[delay, loss]), once);
    assert!(!pattern(&["loss=none"]).contains(&true));
}

#[test]
fn only_what_is_given_is_changed() {
    let nothing = LinkSpec::new().build_change(&NoLoader).unwrap();
    assert!(
        format!("{nothing:?}").matches("None").count() == 13,
        "{nothing:?}"
    );
    let defaults = "rate=unlimited framing=none queue=derived loss=none corrupt=none \
                    duplicate=none delay=none reorder=none order=in-order mtu=none router=none \
                    rewrite=none";
    let change = spec(defaults).build_change(&NoLoader).unwrap();
    assert!(matches!(change.queue, Some(None)));
    assert!(matches!(change.corruption, Some(None)));
    assert!(matches!(change.duplication, Some(None)));
    assert!(matches!(change.reordering, Some(None)));
    assert!(matches!(change.router, Some(None)));
    assert!(change.loss.is_some_and(|loss| loss.is_empty()));
    assert!(change.rewrite.is_some_and(|rewrite| rewrite.is_empty()));
    assert!(change.rate.is_some_and(|rate| rate.is_unlimited()));
    let given = (change.framing, change.order, change.mtu, change.delay);
    assert!(matches!(given, (Some(_), Some(_), Some(_), Some(_))));
    let error = "delay=20".parse::<LinkSpec>().unwrap_err();
    assert!(matches!(error, LinkSpecError::Option(error) if error.option == "delay"));
}

#[test]
fn states_have_names() {
    for state in [LinkState::On, LinkState::Off, LinkState::Paused] {
        assert_eq!(LinkState::from_name(state.name()), Some(state));
    }
    assert_eq!(LinkState::from_name("UP"), None);
}

#[test]
fn all_that_comes_with_a_change_acts_and_goes_again() {
    for line in [
        "mtu=100",
        "rewrite=ip:ttl=1",
        "duplicate=100%",
        "corrupt=100%",
    ] {
        let events = vec![
            (0, frame(1_000)),
            (MS, set(line)),
            (MS, frame(1_000)),
            (
                2 * MS,
                set("loss=none mtu=none rewrite=none duplicate=none corrupt=none"),
            ),
            (2 * MS, frame(1_000)),
        ];
        let (verdicts, lane) = run(link(""), events, true);
        let each: Vec<_> = verdicts.values().collect();
        let plain = |verdicts: &[Verdict]| matches!(verdicts, [Verdict::Deliver(delivery)] if !delivery.edits.any());
        assert!(plain(each[0]) && plain(each[2]), "{line}: {each:?}");
        assert!(!plain(each[1]), "{line}: {each:?}");
        assert!(!lane.link().changes_frames(), "{line}");
    }
}
