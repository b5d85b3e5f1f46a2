//! Arguments and results of hooks.

use longwire_engine::{
    DropReason, FrameContext, FrameMeta, Hook, LinkId, Nanos, Packets, Plugin, Probability, Verdict,
};
use longwire_runtime::{CPlugin, Faults};
use longwire_units::random::{Purpose, Stream};

use crate::plugins::tools::{link, load, offer, probe, release};

fn probe_for(hook: Hook, parameters: &str) -> (CPlugin, Faults) {
    load(&probe(), hook, parameters)
}

fn frame_context(at: u64, bytes: &[u8]) -> FrameContext<'_> {
    FrameContext {
        frame: FrameMeta::new(Nanos::from_nanos(at - 300), 1000),
        at: Nanos::from_nanos(at),
        bytes,
        waiting: (Packets(5), longwire_engine::Bytes(4000)),
    }
}

#[test]
fn a_hook_is_told_of_the_frame_and_of_the_queue() {
    let (mut plugin, faults) = probe_for(Hook::Delay, "");
    let mut stream = Stream::new(1, 0, Purpose::Delay);
    // Bytes beyond the frame, as in super-packets, do not count.
    for (known, counted) in [(0, 0), (64, 64), (1000, 1000), (4000, 1000)] {
        let bytes = vec![0u8; known];
        let delay = plugin.delay(&frame_context(20_000, &bytes), &mut stream);
        let expected = 300 * 1000 + 1000 + 5 * 7 + 4000 * 11 + counted * 13;
        assert_eq!(delay.as_nanos(), expected);
    }
    assert_eq!(faults.first(), None);
}

#[test]
fn times_count_from_the_links_beginning() {
    let (mut plugin, faults) = probe_for(Hook::Delay, "");
    plugin.start(Nanos::from_nanos(19_900));
    let mut stream = Stream::new(1, 0, Purpose::Delay);
    // An arrival before the link's start counts as the start.
    let delay = plugin.delay(&frame_context(20_000, &[]), &mut stream);
    assert_eq!(delay.as_nanos(), 100 * 1000 + 1000 + 5 * 7 + 4000 * 11);

    let (mut rate, _) = probe_for(Hook::Rate, "");
    rate.start(Nanos::from_secs(1_700_000_000));
    let from = Nanos::from_nanos(1_700_000_000_000_000_123);
    let ready = rate.ready(from, &mut stream);
    assert_eq!(ready, from.saturating_add(Nanos::from_nanos(10)));
    assert_eq!(faults.first(), None);
}

#[test]
fn draws_are_those_of_the_links_stream() {
    let (mut plugin, faults) = probe_for(Hook::Delay, "fault=draws");
    let mut stream = Stream::new(9, 3, Purpose::Delay);
    let mut same = stream.clone();
    for _ in 0..1000 {
        let delay = plugin
            .delay(&frame_context(20_000, &[]), &mut stream)
            .as_nanos();
        let mut expected = same.next_u64() >> 40;
        expected += same.up_to(999);
        expected += (same.unit() * 1e6).round() as u64;
        expected += u64::from(same.chance(Probability::from_f64(0.5)));
        expected += same.exponential(Nanos::from_nanos(1000)).as_nanos();
        assert_eq!(delay, expected);
    }
    assert_eq!(faults.first(), None);
}

#[test]
fn every_fate_has_its_reason() {
    let (mut link, faults) = link("loss=plugin:probe", 1);
    let reasons = [
        DropReason::Loss,
        DropReason::BitError,
        DropReason::Outage,
        DropReason::Content,
    ];
    for (fate, reason) in (1..).zip(reasons) {
        let verdict = offer(&mut link, 1000, &[fate; 60]);
        assert_eq!(verdict, Verdict::Drop(reason));
    }
    assert_eq!(release(offer(&mut link, 2000, &[0; 60])), 2000);
    assert_eq!(faults.first(), None);
}

#[test]
fn super_packets_are_cut_for_plugins_that_read_bytes() {
    for (line, changes) in [
        ("loss=plugin:probe", true),
        ("loss=plugin:probe,at=entry", true),
        ("delay=plugin:probe", true),
        ("rate=plugin:probe", true),
        ("rewrite=plugin:probe", true),
        ("loss=content:match=tcp", true),
        ("loss=1% delay=20ms rate=1mbit", false),
    ] {
        assert_eq!(link(line, 1).0.changes_frames(), changes, "{line}");
    }
}

#[test]
fn entry_losses_keep_the_reason_of_their_place() {
    let (mut link, _) = link("loss=plugin:probe,at=entry", 1);
    let verdict = offer(&mut link, 1000, &[4; 60]);
    assert_eq!(verdict, Verdict::Drop(DropReason::EntryLoss));
}

#[test]
fn the_rate_hooks_serve_a_link() {
    // The link is ready 10 ns late, then takes 1 ns per bit.
    let (mut link, faults) = link("rate=plugin:probe framing=ethernet", 1);
    let bits = (100 + 24) * 8;
    let first = release(offer(&mut link, 1000, &[0; 100]));
    assert_eq!(first, 1010 + bits);
    let second = release(offer(&mut link, 1500, &[0; 100]));
    assert_eq!(second, first + 10 + bits);
    assert_eq!(faults.first(), None);
}

#[test]
fn never_is_a_time() {
    let (mut link, faults) = link("delay=plugin:probe,fault=never order=reorder", 1);
    let never = release(offer(&mut link, 1000, &[0; 60]));
    assert_eq!(never, Nanos::MAX.as_nanos());
    assert_eq!(faults.first(), None);
}

#[test]
fn rewriting_changes_bytes_and_draws_from_its_own_stream() {
    let (mut link, faults) = link("rewrite=plugin:probe", 5);
    let mut stream = Stream::of_model(5, LinkId(0).0, Purpose::Rewrite, "", 0);
    for len in [60, 13, 12, 1, 0] {
        let mut bytes = vec![0xa5; len];
        let Verdict::Deliver(delivery) = offer(&mut link, 1000, &bytes) else {
            panic!("nothing loses it");
        };
        assert!(delivery.edits.rewrite);
        link.edit(&delivery, &mut bytes);
        let mut expected = vec![0xa5; len];
        let after_addresses = expected.iter_mut().skip(12);
        after_addresses.for_each(|byte| *byte ^= stream.up_to(255) as u8);
        assert_eq!(bytes, expected);
    }
    assert_eq!(faults.first(), None);
}
