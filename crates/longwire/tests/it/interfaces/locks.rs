//! Locks of interfaces: programs that may share one, and programs that are refused.

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;

use crate::common::program::{Ran, run_in};
use crate::common::site::wired;
use crate::interfaces::{RECEIVES, RUNS, start};

fn run(place: &NetNamespace, line: &str) -> Ran {
    run_in(place, format!("longwire {line}"))
}

/// Asserts that a program is refused, with the reason and the interface's holder.
#[track_caller]
fn assert_refused(place: &NetNamespace, line: &str, holder: u32, texts: &[&str]) {
    let mut ran = run(place, line)
        .exits(1)
        .says(format!("process {holder} (`"));
    for text in texts {
        ran = ran.says(text);
    }
}

#[test]
fn a_second_run_on_an_interface_is_refused_with_the_owner() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1"), ("c0", "c1")]) else {
        return;
    };
    let first = start(&place, "run packet:a0 packet:b0", RUNS);
    let holder = first.id();
    let said = ["packet:b0", "run packet:a0 packet:b0", "duplicate them"];
    assert_refused(&place, "run c0 auto:b0 --time 1ms", holder, &said);
    // The ports of a network are locked too.
    let dir = Folder::new();
    let third = format!("run a0 c0 --time 1ms --control {}", dir.file("a.sock"));
    assert_refused(&place, &third, holder, &["duplicate them"]);
    for to in ["a0", "packet:b0"] {
        let sender = format!("generate --to {to} --rate 1kpps --time 1ms");
        assert_refused(&place, &sender, holder, &["two senders"]);
    }
    // Another interface, and the peers of the same pairs, are not locked.
    run(&place, "run c0 a1 --time 1ms").well();
    // Killing a process releases its locks immediately.
    first.kill();
    run(&place, "run packet:a0 packet:b0 --time 1ms").well();
}

#[test]
fn receivers_may_be_next_to_a_run_and_to_each_other() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let _run = start(&place, "run packet:a0 packet:b0", RUNS);
    let _receiver = start(&place, "receive packet:a0", RECEIVES);
    run(&place, "receive packet:a0 --time 1ms").well();
}

#[test]
fn a_port_that_takes_frames_away_is_alone() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let receiver = start(&place, "receive packet:a0", RECEIVES);
    let texts = ["would take its frames", "write packet:a0"];
    assert_refused(&place, "receive xdp:a0 --time 1ms", receiver.id(), &texts);
    drop(receiver);
    let run = start(&place, "run xdp:a0 b0", RUNS);
    assert_refused(
        &place,
        "receive packet:a0 --time 1ms",
        run.id(),
        &["receives all frames of the interface"],
    );
}

#[test]
fn one_way_runs_make_a_circle() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let there = start(&place, "run packet:a0 packet:b0 --one-way", RUNS);
    run(&place, "run packet:b0 packet:a0 --one-way --time 1ms").well();
    let same = "run packet:a0 packet:a1 --one-way --time 1ms";
    assert_refused(&place, same, there.id(), &["duplicate them"]);
}

#[test]
fn an_interface_is_named_once() {
    let Some(place) = wired(&[("a0", "a1")]) else {
        return;
    };
    for second in ["packet:a0", "a0"] {
        let ran = run(&place, &format!("run packet:a0 {second} --time 1ms"));
        ran.exits(2).says("'a0' is already port 'a'");
    }
    // A sender does not conflict with its own receiver.
    let both = "generate --to packet:a0 --receive packet:a0";
    run(
        &place,
        &format!("{both} --rate 1kpps --time 5ms --settle 1ms"),
    )
    .well();
}

#[test]
fn a_tap_device_in_use_names_its_user() {
    let Some(place) = wired(&[("b0", "b1")]) else {
        return;
    };
    let first = start(&place, "run tap:lw0 packet:b0", RUNS);
    assert_refused(
        &place,
        "run tap:lw0 null --time 1ms",
        first.id(),
        &["has the device open"],
    );
    // The device itself, the host's side of the TAP, is not locked.
    run(&place, "receive packet:lw0 --time 1ms").well();
}
