//! Attachments, changes, ends and lost interfaces in random order, under traffic.

use longwire_io::net::{addr_add, link_delete, link_up, veth};
use longwire_testbed::support::Draws;
use longwire_testbed::{Plan, Side};
use std::net::IpAddr;

use super::{Attached, DEVICE, Joined, name_of};
use crate::common::process::RunningProgram;

/// Steps in an ordinary run; `LONGWIRE_INTERLEAVINGS` asks for more.
const STEPS: u64 = 60;

/// Makes the pair again after a device was removed.
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
        let set_up = || {
            addr_add(DEVICE, IpAddr::V4(Plan::USUAL.v4_of(side)), 24)?;
            link_up(DEVICE)
        };
        namespace.run(set_up).expect("entered").expect("a device");
    }
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

#[test]
fn any_order_of_events_leaves_a_working_interface() {
    let Some(joined) = Joined::new() else { return };
    let steps = std::env::var("LONGWIRE_INTERLEAVINGS").ok();
    let steps = steps.map_or(STEPS, |steps| steps.parse().expect("a number"));
    let mut draws = Draws(7);
    let mut attached: Option<Attached> = None;
    let flood = |joined: &Joined| {
        let mut command = std::process::Command::new("ping");
        let address = joined.far_address.to_string();
        command.args(["-q", "-i", "0.002", &address]);
        command.stdout(std::process::Stdio::null());
        RunningProgram::start(&joined.near, &mut command)
    };
    let mut traffic = flood(&joined);
    for step in 0..steps {
        match (attached.take(), draws.below(6)) {
            (None, 0) => {
                delete(&joined);
                join(&joined);
                drop(std::mem::replace(&mut traffic, flood(&joined)));
            }
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
                assert!(ran.stdout.contains("went away"), "step {step}: {ran:?}");
                join(&joined);
                drop(std::mem::replace(&mut traffic, flood(&joined)));
            }
            (Some(run), change) => {
                let delay = format!("delay={change}ms");
                run.set(&[&delay]);
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
