//! Attaching, changing, ending and losing interfaces in random order, under traffic.

use longwire_io::net::{NetNamespace, addr_add, link, link_delete, link_up, veth};
use longwire_testbed::support::Draws;
use longwire_testbed::{Plan, Side};
use nix::sys::signal::Signal;
use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use super::{Attached, DEVICE, Joined, name_of};
use crate::common::process::{RunningProgram, wait_for_word};
use crate::common::site::{run_in, well};

/// Steps per run, unless `LONGWIRE_INTERLEAVINGS` sets more.
const STEPS: u64 = 60;

/// Recreates the pair after a device was removed.
pub(super) fn join(joined: &Joined) {
    let end = |namespace| veth::End {
        name: DEVICE,
        namespace,
        ..veth::End::default()
    };
    let pair = veth::VethConfig {
        a: end(None),
        b: end(Some(&joined.far)),
    };
    let made = joined.near.run(|| veth::create(&pair));
    made.expect("entered").expect("a pair");
    for (namespace, side) in [(&joined.near, Side::Near), (&joined.far, Side::Far)] {
        set_up(namespace, side);
    }
}

/// Sets a device's address and brings it up.
fn set_up(namespace: &NetNamespace, side: Side) {
    let set_up = || {
        addr_add(DEVICE, IpAddr::V4(Plan::USUAL.v4_of(side)), 24)?;
        link_up(DEVICE)
    };
    namespace.run(set_up).expect("entered").expect("a device");
}

/// Runs `ip` in near's namespace.
fn ip(joined: &Joined, words: &[&str]) {
    let words = [&["ip"], words].concat();
    let _ = well(&words, run_in(&joined.near, &words));
}

/// Removes near's device, and with it its peer.
fn delete(joined: &Joined) {
    let deleted = joined.near.run(|| link_delete(DEVICE));
    deleted.expect("entered").expect("deleted");
}

/// Options of the links that are attached.
const OPTIONS: [&[&str]; 3] = [
    &["--delay", "2ms"],
    &["--rate", "10mbit", "--delay", "1ms"],
    &["--loss", "20%", "--delay", "3ms"],
];

/// Kills a run that may not be attached yet.
fn kill_early(joined: &Joined, after: Duration) {
    let mut command = joined.command(&name_of("any"), &["--delay", "1ms"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let run = RunningProgram::of(command.spawn().expect("it starts"));
    std::thread::sleep(after);
    run.signal(Signal::SIGKILL);
    let _ = run.end();
}

/// Sends until stopped.
fn flood(joined: &Joined) -> RunningProgram {
    let mut command = std::process::Command::new("ping");
    let address = joined.far_address.to_string();
    command.args(["-q", "-i", "0.002", &address]);
    command.stdout(Stdio::null());
    RunningProgram::start(&joined.near, &mut command)
}

/// An event that leaves the link attached.
fn stay(joined: &Joined, run: &Attached, event: u64, draws: &mut Draws) {
    match event {
        3 => {
            let mtu = draws.pick(&["1300", "9000"]);
            ip(joined, &["link", "set", DEVICE, "mtu", mtu]);
            assert!(joined.round_trip().is_some(), "with an MTU of {mtu}");
        }
        4 => {
            ip(joined, &["link", "set", DEVICE, "down"]);
            ip(joined, &["link", "set", DEVICE, "up"]);
        }
        5 => {
            for [from, to] in [[DEVICE, "renamed0"], ["renamed0", DEVICE]] {
                ip(joined, &["link", "set", from, "down"]);
                ip(joined, &["link", "set", from, "name", to]);
                ip(joined, &["link", "set", to, "up"]);
            }
        }
        7 => {
            let refused = joined.refused(&name_of("second"), &[]);
            assert!(refused.stderr.contains("attach list"), "{refused:?}");
        }
        change => run.set(&[&format!("delay={change}ms")]),
    }
}

#[test]
fn any_order_of_events_leaves_a_working_interface() {
    let Some(joined) = Joined::new() else { return };
    let steps = std::env::var("LONGWIRE_INTERLEAVINGS").ok();
    let steps = steps.map_or(STEPS, |steps| steps.parse().expect("a number"));
    let mut draws = Draws(7);
    let mut attached: Option<Attached> = None;
    let mut traffic = flood(&joined);
    for step in 0..steps {
        match (attached.take(), draws.below(10)) {
            (None, 0) => {
                delete(&joined);
                join(&joined);
                drop(std::mem::replace(&mut traffic, flood(&joined)));
            }
            (None, 1) => kill_early(&joined, Duration::from_millis(draws.below(120))),
            (None, _) => {
                let name = name_of("any");
                attached = Some(joined.attach(&name, draws.pick(&OPTIONS)));
            }
            (Some(run), 0) => run.kill(),
            (Some(run), 1) => {
                let report = run.detach();
                assert_eq!(
                    report["error"],
                    serde_json::Value::Null,
                    "step {step}: {report}"
                );
            }
            (Some(run), 2) => {
                delete(&joined);
                let ran = run.program.end();
                assert!(ran.stdout.contains("is gone"), "step {step}: {ran:?}");
                join(&joined);
                drop(std::mem::replace(&mut traffic, flood(&joined)));
            }
            (Some(run), 6) => {
                // The device leaves the namespace and returns: the link is lost, but
                // the interface works.
                let away = NetNamespace::new().expect("a namespace");
                let moved = joined.near.run(|| link::move_to(DEVICE, &away));
                moved.expect("entered").expect("moved");
                let ran = run.program.end();
                assert!(ran.stdout.contains("is gone"), "step {step}: {ran:?}");
                let moved = away.run(|| link::move_to(DEVICE, &joined.near));
                moved.expect("entered").expect("moved");
                set_up(&joined.near, Side::Near);
                drop(std::mem::replace(&mut traffic, flood(&joined)));
            }
            (Some(run), event) => {
                stay(&joined, &run, event, &mut draws);
                attached = Some(run);
            }
        }
        if attached.is_none() {
            joined.assert_round_trip(0.0);
            joined.assert_clean();
        }
    }
    if let Some(run) = attached {
        let _ = run.detach();
    }
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn links_end_with_the_namespace() {
    let Some(joined) = Joined::new() else { return };
    // Two interfaces in one namespace, each with a link.
    let pair = |namespace| veth::End {
        name: "eth1",
        namespace,
        ..veth::End::default()
    };
    let pair = veth::VethConfig {
        a: pair(Some(&joined.near)),
        b: pair(Some(&joined.far)),
    };
    veth::create(&pair).expect("a pair");
    let first = joined.attach(&name_of("first-of-two"), &["--delay", "2ms"]);
    let mut command = joined.command(&name_of("second-of-two"), &["--delay", "2ms"]);
    let words: Vec<_> = command.get_args().map(|word| word.to_owned()).collect();
    let words = words.into_iter();
    let words = words.map(|word| if word == DEVICE { "eth1".into() } else { word });
    command = std::process::Command::new(command.get_program());
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut second = RunningProgram::of(command.spawn().expect("it starts"));
    wait_for_word(&mut second, super::ATTACHED);
    joined.assert_round_trip(4.0);
    // The last descriptor: the links' processes hold none.
    let Joined { near, far, .. } = joined;
    drop(near);
    for ran in [first.program.end(), second.end()] {
        assert!(ran.stdout.contains("is gone"), "{ran:?}");
    }
    let names = far.run(longwire_io::net::link_names).expect("entered");
    assert_eq!(names.expect("names"), ["lo"], "the other ends are gone too");
}
