//! Programs that may share an interface.

use crate::common::Ran;
use crate::common::wire::{inside, wired};
use crate::interfaces::{RECEIVES, RUNS, start};
use longwire_testbed::support::{Folder, words};

/// Asserts that the program was refused, with the reason and the interface's holder.
#[track_caller]
fn assert_refused(ran: &Ran, holder: u32, words: &[&str]) {
    assert_eq!(ran.code, 1, "{ran:?}");
    let process = format!("process {holder} (`");
    for word in words.iter().chain([&process.as_str()]) {
        assert!(ran.stderr.contains(word), "no '{word}': {ran:?}");
    }
}

#[test]
fn a_second_run_on_an_interface_is_refused_with_the_owner() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1"), ("c0", "c1")]) else {
        return;
    };
    let mut first = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    let holder = first.id();
    let second = inside(&place, &["run", "c0", "auto:b0", "--time", "1ms"]);
    let said = ["packet:b0", "run packet:a0 packet:b0", "carry each twice"];
    assert_refused(&second, holder, &said);
    // A network's ports are locked too.
    let dir = Folder::new();
    let socket = dir.file("a.sock");
    let third = inside(
        &place,
        &["run", "a0", "c0", "--time", "1ms", "--control", &socket],
    );
    assert_refused(&third, holder, &["carry each twice"]);
    for sender in [
        words("generate --to a0 --rate 1kpps --time 1ms"),
        words("generate --to packet:b0 --rate 1kpps --time 1ms"),
    ] {
        assert_refused(&inside(&place, &sender), holder, &["two senders"]);
    }
    // Another interface and the peers of the same pairs are free.
    let parallel = inside(&place, &["run", "c0", "a1", "--time", "1ms"]);
    assert_eq!(parallel.code, 0, "{parallel:?}");
    // Killing a process releases its locks at once.
    first.kill();
    let again = inside(&place, &["run", "packet:a0", "packet:b0", "--time", "1ms"]);
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn receivers_may_be_next_to_a_run_and_to_each_other() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let _run = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    let _receiver = start(&place, &["receive", "packet:a0"], RECEIVES);
    let second = inside(&place, &["receive", "packet:a0", "--time", "1ms"]);
    assert_eq!(second.code, 0, "{second:?}");
}

#[test]
fn a_port_that_takes_frames_away_is_alone() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let mut receiver = start(&place, &["receive", "packet:a0"], RECEIVES);
    let by_xdp = inside(&place, &["receive", "xdp:a0", "--time", "1ms"]);
    let words = ["take its frames away", "write packet:a0"];
    assert_refused(&by_xdp, receiver.id(), &words);
    drop(receiver);
    let mut run = start(&place, &["run", "xdp:a0", "b0"], RUNS);
    let copies = inside(&place, &["receive", "packet:a0", "--time", "1ms"]);
    assert_refused(&copies, run.id(), &["takes all frames"]);
}

#[test]
fn one_way_runs_make_a_circle() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let mut there = start(
        &place,
        &["run", "packet:a0", "packet:b0", "--one-way"],
        RUNS,
    );
    let back = words("run packet:b0 packet:a0 --one-way --time 1ms");
    let back = inside(&place, &back);
    assert_eq!(back.code, 0, "{back:?}");
    let same = words("run packet:a0 packet:a1 --one-way --time 1ms");
    assert_refused(&inside(&place, &same), there.id(), &["carry each"]);
}

#[test]
fn an_interface_is_named_once() {
    let Some(place) = wired(&[("a0", "a1")]) else {
        return;
    };
    for second in ["packet:a0", "a0"] {
        let ran = inside(&place, &["run", "packet:a0", second, "--time", "1ms"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        let why = "'a0' is already port 'a'";
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    // A sender does not conflict with its receiver.
    let both = ["generate", "--to", "packet:a0", "--receive", "packet:a0"];
    let times = ["--rate", "1kpps", "--time", "5ms", "--settle", "1ms"];
    let ran = inside(&place, &[&both[..], &times].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_tap_device_in_use_names_its_user() {
    let Some(place) = wired(&[("b0", "b1")]) else {
        return;
    };
    let mut first = start(&place, &["run", "tap:lw0", "packet:b0"], RUNS);
    let holder = first.id();
    let second = inside(&place, &["run", "tap:lw0", "null", "--time", "1ms"]);
    assert_refused(&second, holder, &["has the device open"]);
    // The device itself, on which this machine is a station, is free.
    let station = inside(&place, &["receive", "packet:lw0", "--time", "1ms"]);
    assert_eq!(station.code, 0, "{station:?}");
}
