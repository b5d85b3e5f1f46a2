//! Attaches links, changes them, ends runs and removes interfaces in random order, under traffic.

use std::time::Duration;

use longwire_io::net::{NetNamespace, link, link_delete, link_names};
use longwire_testbed::support::{Draws, within};
use longwire_testbed::{Plan, Side};
use serde_json::Value;

use super::{Attached, DEVICE, Joined, name_of, set_up};
use crate::common::program::{RunningProgram, background, change, quiet};

/// Steps per run, unless `LONGWIRE_INTERLEAVINGS` sets another number.
const STEPS: u64 = 60;

/// Recreates the pair after a device was removed.
pub(super) fn join(joined: &Joined) {
    joined.add_pair(DEVICE);
    for (namespace, side) in [(&joined.near, Side::Near), (&joined.far, Side::Far)] {
        set_up(namespace, DEVICE, Plan::USUAL.v4_of(side).into());
    }
}

/// Deletes near's device, and thereby its peer.
fn delete(joined: &Joined) {
    within(&joined.near, || link_delete(DEVICE));
}

/// Options of the attached links.
const OPTIONS: [&str; 3] = [
    "--delay 2ms",
    "--rate 10mbit --delay 1ms",
    "--loss 20% --delay 3ms",
];

/// Returns a running ping from near to far.
fn flood(joined: &Joined) -> RunningProgram {
    background(
        &joined.near,
        &format!("ping -q -i 0.002 {}", joined.far_address),
    )
}

/// Triggers an event that leaves the link attached.
fn stay(joined: &Joined, run: &Attached, event: u64, draws: &mut Draws) {
    let set = |device: &str, to: &str| {
        change(&joined.near, format!("ip link set {device} {to}"));
    };
    match event {
        3 => {
            let mtu = draws.pick(&[1_300, 9_000]);
            set(DEVICE, &format!("mtu {mtu}"));
            assert!(joined.round_trip().is_some(), "with an MTU of {mtu}");
        }
        4 => {
            set(DEVICE, "down");
            set(DEVICE, "up");
        }
        5 => {
            for [from, to] in [[DEVICE, "renamed0"], ["renamed0", DEVICE]] {
                set(from, "down");
                set(from, &format!("name {to}"));
                set(to, "up");
            }
        }
        7 => {
            joined
                .refuses(&name_of("second"), "", "attach list")
                .exits(1);
        }
        change => run.set(&format!("delay={change}ms")),
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
    let name = name_of("any");
    for step in 0..steps {
        match (attached.take(), draws.below(10)) {
            (None, 0) => {
                delete(&joined);
                join(&joined);
                traffic = flood(&joined);
            }
            // Kill a run that may not be attached yet.
            (None, 1) => {
                let line = joined.line(DEVICE, &name, "--delay 1ms");
                let run = RunningProgram::spawn(&mut quiet(line));
                std::thread::sleep(Duration::from_millis(draws.below(120)));
                run.kill();
            }
            (None, _) => attached = Some(joined.attach(&name, draws.pick(&OPTIONS))),
            (Some(run), 0) => run.kill(),
            (Some(run), 1) => {
                let report = run.detach();
                assert_eq!(report["error"], Value::Null, "step {step}: {report}");
            }
            (Some(run), 2) => {
                delete(&joined);
                run.ends_without_interface();
                join(&joined);
                traffic = flood(&joined);
            }
            (Some(run), 6) => {
                // The device leaves the namespace and returns: the link is lost, but the interface
                // still works.
                let away = NetNamespace::new().expect("a namespace");
                within(&joined.near, || link::move_to(DEVICE, &away));
                run.ends_without_interface();
                within(&away, || link::move_to(DEVICE, &joined.near));
                set_up(&joined.near, DEVICE, Plan::USUAL.v4_of(Side::Near).into());
                traffic = flood(&joined);
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
    drop(traffic);
    if let Some(run) = attached {
        run.detach();
    }
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn links_end_with_the_namespace() {
    let Some(joined) = Joined::new() else { return };
    joined.add_pair("eth1");
    let first = joined.attach(&name_of("first-of-two"), "--delay 2ms");
    let second = joined.attach_to("eth1", &name_of("second-of-two"), "--delay 2ms");
    joined.assert_round_trip(4.0);
    // These are the last file descriptors of the namespaces; the links' processes have none.
    let Joined { near, far, .. } = joined;
    drop(near);
    first.ends_without_interface();
    second.ends_without_interface();
    let names = within(&far, link_names);
    assert_eq!(names, ["lo"], "the other ends are gone too");
}
