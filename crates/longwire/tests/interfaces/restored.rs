//! Settings of interfaces after the end of a run, however it came.

use std::time::{Duration, Instant};

use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::{NetNamespace, sysctl};

use crate::common::process::PATIENCE;
use crate::common::site::run_in;
use crate::common::wire::{inside, wired};
use crate::{RECEIVES, RUNS, start};

/// IPv6 is switched off on a device.
fn ipv6_is_off(place: &NetNamespace, device: &str) -> bool {
    let key = format!("ipv6/conf/{device}/disable_ipv6");
    let value = place.run(|| sysctl::get(&key)).expect("it is entered");
    value.expect("a setting") != "0"
}

fn feature(place: &NetNamespace, device: &str, name: &str) -> bool {
    let features = place.run(|| Ethtool::open()?.features(device));
    let features = features.expect("it is entered").expect("features");
    features.active(name)
}

/// Waits until a condition holds.
#[track_caller]
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_next_start_restores_what_a_killed_one_left() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1"), ("c0", "c1")]) else {
        return;
    };
    let run = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    let receiver = start(&place, &["receive", "packet:c0"], RECEIVES);
    assert!(
        ["a0", "b0", "c0"]
            .iter()
            .all(|device| ipv6_is_off(&place, device))
    );
    assert!(!feature(&place, "c0", "rx-gro") || !feature(&place, "c1", "tx-tcp-segmentation"));
    for killed in [run, receiver] {
        killed.kill();
    }
    // On other interfaces of the same namespace.
    let next = inside(&place, &["receive", "packet:a1", "--time", "1ms"]);
    assert_eq!(next.code, 0, "{next:?}");
    for device in ["a0", "b0", "c0", "a1"] {
        assert!(!ipv6_is_off(&place, device), "{device}");
    }
    assert!(feature(&place, "c1", "tx-tcp-segmentation"));
}

#[test]
fn a_start_in_another_namespace_restores_too() {
    let (Some(place), Some(other)) = (wired(&[("a0", "a1"), ("b0", "b1")]), wired(&[("x0", "x1")]))
    else {
        return;
    };
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let run = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    run.kill();
    // A process holds the namespace, as a container's would.
    let mut sleep = std::process::Command::new("sleep");
    let _holder = crate::common::process::Running::start(&place, sleep.arg("60"));
    eventually("it is not restored", || {
        let next = inside(&other, &["receive", "packet:x0", "--time", "1ms"]);
        assert_eq!(next.code, 0, "{next:?}");
        !ipv6_is_off(&place, "a0") && !ipv6_is_off(&place, "b0")
    });
}

#[test]
fn of_two_on_an_interface_the_last_to_end_restores() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let receiver = start(&place, &["receive", "packet:a0"], RECEIVES);
    let run = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    receiver.stop();
    assert!(ipv6_is_off(&place, "a0"), "the run still needs it");
    run.stop();
    assert!(!ipv6_is_off(&place, "a0"));
    assert!(!ipv6_is_off(&place, "b0"));
}

#[test]
fn a_tap_device_that_was_there_is_as_before_after_a_kill() {
    let Some(place) = wired(&[("b0", "b1")]) else {
        return;
    };
    let add = [
        "ip", "tuntap", "add", "dev", "lw0", "mode", "tap", "vnet_hdr",
    ];
    assert_eq!(run_in(&place, &add).code, 0);
    let shown = || {
        let text = run_in(&place, &["ip", "-o", "link", "show", "lw0"]).stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let flags = words.split(' ').nth(2).unwrap_or_default().to_owned();
        let queue = words.split("qlen ").nth(1).unwrap_or_default();
        (
            flags.contains("UP"),
            queue.split(' ').next().unwrap_or_default().to_owned(),
        )
    };
    let before = shown();
    assert!(!before.0, "{before:?}");
    let run = start(&place, &["run", "tap:lw0", "packet:b0"], RUNS);
    assert_ne!(shown(), before);
    run.kill();
    inside(&place, &["receive", "packet:b1", "--time", "1ms"]);
    assert_eq!(shown(), before);
}
