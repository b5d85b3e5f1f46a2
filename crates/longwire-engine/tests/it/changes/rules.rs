//! Effects of each kind of change on queued frames, frames in transit and later arrivals.

use longwire_engine::models::{self, Entry};
use longwire_engine::{
    Delivery, DropReason, LinkSpec, LinkSpecError, LinkState, Nanos, NoLoader, Verdict,
};
use longwire_testbed::support::rows;

use super::driven::{Event, Verdicts, frame, link, outcomes, run, set, state};
use crate::common::spec;

const MS: u64 = 1_000_000;

/// A 1000-byte IPv4 packet with this DSCP.
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

/// Parses events such as `10ms 3x1000 ; 20ms off ; 30ms set rate=1mbit`: three 1000-byte frames, a
/// state and a change.
fn events(text: &str) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    for event in text.split(" ; ") {
        let (at, event) = event.split_once(' ').expect(event);
        let at = nanos(at).expect(at);
        if let Some(line) = event.strip_prefix("set ") {
            events.push((at, set(line)));
            continue;
        }
        match event {
            "on" => events.push((at, state(LinkState::On))),
            "off" => events.push((at, state(LinkState::Off))),
            "paused" => events.push((at, state(LinkState::Paused))),
            frames => {
                let (count, len) = frames.split_once('x').unwrap_or(("1", frames));
                let (count, len) = (count.parse().expect(event), len.parse().expect(event));
                events.extend((0..count).map(|_: u32| (at, frame(len))));
            }
        }
    }
    events
}

fn nanos(text: &str) -> Option<u64> {
    text.parse().ok().map(Nanos::as_nanos)
}

/// Checks a table of links, events and outcomes: each frame's departure or drop reason. The queue
/// must end up empty.
fn assert_outcomes(table: &str) {
    for [line, text, expected] in rows(table) {
        let (verdicts, lane) = run(link(line), events(text), true);
        let found = outcomes(&verdicts).into_iter();
        let found: Vec<_> = found.map(|one| one.map_err(DropReason::name)).collect();
        let expected = expected.split(' ').map(|word| nanos(word).ok_or(word));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{line}: {text}");
        assert_eq!(lane.link().occupancy().0.0, 0, "{line}: {text}");
        assert_eq!(lane.link().state(), LinkState::On, "{line}: {text}");
    }
}

/// Off drops arrivals, queued frames and the frame in service; pausing keeps them, up to the limit,
/// which counts the frame in service.
#[test]
fn off_drops_and_paused_keeps() {
    assert_outcomes(
        "
        rate=1mbit delay=9ms | 0 4x1000 ; 10ms off ; 11ms 1000 ; 12ms on ; 12ms 1000 ; 40ms off ; 50ms on ; 60ms 1000 | 8ms outage outage outage outage 20ms 68ms
        rate=1mbit queue=3p | 0 3x1000 ; 10ms paused ; 11ms 1000 ; 12ms 1000 ; 100ms on | 8ms 16ms 108ms 116ms queue_full
        queue=2p | 0 3x64 ; 1ns paused ; 2ns 64 ; 3ns 64 ; 4ns 64 ; 9ns on ; 9ns 3x64 | 0 0 0 9ns 9ns queue_full 9ns 9ns 9ns
        ",
    );
}

/// Slots of 1 ms every 10 ms; a 1250-byte frame fills one. The first frame starts in the middle of
/// a slot, so without a pause, each frame is sent in two halves. After the pause, the second frame
/// starts with the next slot.
#[test]
fn an_unused_slot_is_lost() {
    assert_outcomes(
        "
        rate=tdm:rate=10mbit,period=10ms,slot=1ms | 500us 3x1250 | 10500us 20500us 30500us
        rate=tdm:rate=10mbit,period=10ms,slot=1ms | 500us 3x1250 ; 8ms paused ; 25ms on | 10500us 31ms 41ms
        ",
    );
}

/// 10,208 bits at 20.5 Gbit/s take 497.2 ns; the last 4.53 bits of this frame take 45 ns at the new
/// rate and delay the next frame. A rate that drops to zero after 4 ms has sent half of its frame.
/// 12,000 bits at 1 bit/s continue at a new rate after 2.5 s.
#[test]
fn remaining_work_continues_after_a_change() {
    assert_outcomes(
        "
        rate=20530120482bit queue=unlimited | 0 1276 ; 497ns 60 ; 497ns set rate=100mbit | 497ns 5342ns
        rate=20530120482bit queue=unlimited | 0 1276 ; 497ns 60 ; 497ns set rate=steps:0s/100mbit | 497ns 5342ns
        rate=1mbit queue=unlimited | 0 3x1000 ; 1ms set framing=bytes:overhead=1000 | 8ms 24ms 40ms
        rate=steps:0s/1mbit;4ms/0 queue=unlimited | 0 2x1000 ; 5ms set rate=1mbit ; 5ms 1000 | 9ms 17ms 25ms
        rate=1bit | 0 1500 ; 2500ms set rate=unlimited ; 60s 1500 | 2500ms 60s
        rate=1bit | 0 1500 ; 2500ms set rate=1kbit ; 60s 1500 | 14497500us 72s
        rate=1bit | 0 1500 ; 1s set rate=8kbit ; 1s off ; 2s on ; 2s 1000 | outage 3s
        ",
    );
}

/// Frames in transit keep their release; once the order is restored, nothing overtakes them.
/// Schedules start at their change.
#[test]
fn a_new_delay_applies_to_later_frames() {
    for [line, text, expected] in rows(
        "
        delay=20ms | 0 64 ; 1ms set delay=5ms order=in-order ; 2ms 64 ; 30ms 64 | 20ms 20ms 35ms
        delay=20ms | 0 64 ; 1ms set delay=5ms order=reorder ; 2ms 64 ; 30ms 64 | 20ms 7ms 35ms
        delay=20ms order=reorder | 0 64 ; 1ms set delay=5ms ; 2ms 64 ; 3ms set order=in-order ; 4ms 64 | 20ms 7ms 20ms
        delay=none | 100ms set delay=steps:0s/1ms;10ms/2ms ; 100ms 64 ; 109ms 64 ; 110ms 64 ; 120ms 64 | 101ms 110ms 112ms 122ms
        ",
    ) {
        let (verdicts, _) = run(link(line), events(text), true);
        let expected: Option<Vec<u64>> = expected.split(' ').map(nanos).collect();
        assert_eq!(Some(releases(&verdicts)), expected, "{line}: {text}");
    }
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
    // The first frame is in service; the urgent one is served next.
    let expected = [8, 24, 32, 16].map(|ms| Ok(ms * MS));
    assert_eq!(outcomes(&verdicts), expected);
}

/// Each discipline hands its frames over to every other discipline, immediately and after
/// refilling.
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
            // One frame had departed before the link was turned off; one was in service.
            assert_eq!(gone(DropReason::Outage), 59, "{first} {second}");
            assert_eq!(gone(DropReason::QueueFull), 0, "{first} {second}");
            let sent = outcomes[60..].iter().filter(|outcome| outcome.is_ok());
            assert!(sent.count() > 20, "{first} {second}");
            assert_eq!(lane.link().occupancy().0.0, 0, "{first} {second}");
        }
    }
}

/// Retained models continue their streams; replacements start new streams, determined by the change
/// number.
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
