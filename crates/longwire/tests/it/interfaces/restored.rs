//! Interface settings are restored, no matter how a run ends.

use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::{NetNamespace, sysctl};
use longwire_testbed::support::{skip, within};

use crate::common::program::{background, change, eventually, run_in};
use crate::common::site::wired;
use crate::interfaces::{RECEIVES, RUNS, start};

/// Returns whether IPv6 is disabled on a device.
fn ipv6_is_off(place: &NetNamespace, device: &str) -> bool {
    let key = format!("ipv6/conf/{device}/disable_ipv6");
    within(place, || sysctl::get(&key)) != "0"
}

fn feature(place: &NetNamespace, device: &str, name: &str) -> bool {
    within(place, || Ethtool::open()?.features(device)).active(name)
}

/// Makes an interface merge received frames, which is off by default for veth devices, and makes
/// its peer offload segmentation.
fn merge(place: &NetNamespace, device: &str, peer: &str) {
    within(place, || {
        let ethtool = Ethtool::open()?;
        ethtool.set_features(device, std::iter::once(("rx-gro", true)))?;
        ethtool.set_features(peer, std::iter::once(("tx-tcp-segmentation", true)))
    });
    assert_merging(place, device, peer, true);
}

/// Asserts whether an interface merges received frames and its peer offloads segmentation.
#[track_caller]
fn assert_merging(place: &NetNamespace, device: &str, peer: &str, on: bool) {
    assert_eq!(feature(place, device, "rx-gro"), on, "{device}");
    assert_eq!(feature(place, peer, "tx-tcp-segmentation"), on, "{peer}");
}

#[test]
fn the_next_start_restores_what_a_killed_one_left() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1"), ("c0", "c1")]) else {
        return;
    };
    merge(&place, "c0", "c1");
    let run = start(&place, "run packet:a0 packet:b0", RUNS);
    let receiver = start(&place, "receive packet:c0", RECEIVES);
    for device in ["a0", "b0", "c0"] {
        assert!(ipv6_is_off(&place, device), "{device}");
    }
    assert_merging(&place, "c0", "c1", false);
    for killed in [run, receiver] {
        killed.kill();
    }
    // A run on another interface restores the settings of all.
    run_in(&place, "longwire receive packet:a1 --time 1ms").well();
    for device in ["a0", "b0", "c0", "a1"] {
        assert!(!ipv6_is_off(&place, device), "{device}");
    }
    assert_merging(&place, "c0", "c1", true);
}

#[test]
fn a_start_in_another_namespace_restores_too() {
    let (Some(place), Some(other)) = (wired(&[("a0", "a1"), ("b0", "b1")]), wired(&[("x0", "x1")]))
    else {
        return;
    };
    if !nix::unistd::geteuid().is_root() {
        return skip("namespaces of other processes are entered by root only").unwrap_or(());
    }
    let run = start(&place, "run packet:a0 packet:b0", RUNS);
    run.kill();
    // Keep the namespace alive with a process, as a container would.
    let _holder = background(&place, "sleep 60");
    eventually("it is not restored", || {
        run_in(&other, "longwire receive packet:x0 --time 1ms").well();
        !ipv6_is_off(&place, "a0") && !ipv6_is_off(&place, "b0")
    });
}

/// The second run finds all settings as required and changes nothing, but must still restore the
/// changes of the first.
#[test]
fn of_two_on_an_interface_the_second_restores_what_the_first_changed() {
    let Some(place) = wired(&[("a0", "a1")]) else {
        return;
    };
    merge(&place, "a0", "a1");
    let first = start(&place, "receive packet:a0", RECEIVES);
    let second = start(&place, "receive packet:a0", RECEIVES);
    drop(first);
    assert!(ipv6_is_off(&place, "a0"), "the second still needs it");
    assert_merging(&place, "a0", "a1", false);
    drop(second);
    assert!(!ipv6_is_off(&place, "a0"));
    assert_merging(&place, "a0", "a1", true);
}

/// If a killed run shares an interface with another program, the interface keeps the settings
/// needed by that program.
#[test]
fn settings_of_a_killed_run_stay_while_another_needs_them() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1"), ("c0", "c1")]) else {
        return;
    };
    merge(&place, "a0", "a1");
    let run = start(&place, "run packet:a0 packet:b0", RUNS);
    let receiver = start(&place, "receive packet:a0", RECEIVES);
    run.kill();
    run_in(&place, "longwire receive packet:c0 --time 1ms").well();
    assert!(!ipv6_is_off(&place, "b0"));
    assert!(ipv6_is_off(&place, "a0"), "the receiver still needs it");
    assert_merging(&place, "a0", "a1", false);
    drop(receiver);
    assert!(!ipv6_is_off(&place, "a0"));
    assert_merging(&place, "a0", "a1", true);
}

/// Creates a persistent TAP device `lw0`.
fn add_tap(place: &NetNamespace) {
    change(place, "ip tuntap add dev lw0 mode tap vnet_hdr");
}

/// Returns whether `lw0` is up, and its queue length.
fn tap_state(place: &NetNamespace) -> (bool, String) {
    let text = change(place, "ip -o link show lw0");
    let mut words = text.split_whitespace();
    let flags = words.nth(2).unwrap_or_default();
    let queue = words.skip_while(|word| *word != "qlen").nth(1);
    (flags.contains("UP"), queue.unwrap_or_default().to_owned())
}

#[test]
fn an_existing_tap_device_is_restored_after_a_kill() {
    let Some(place) = wired(&[("b0", "b1")]) else {
        return;
    };
    add_tap(&place);
    let before = tap_state(&place);
    assert!(!before.0, "{before:?}");
    let run = start(&place, "run tap:lw0 packet:b0", RUNS);
    assert_ne!(tap_state(&place), before);
    run.kill();
    run_in(&place, "longwire receive packet:b1 --time 1ms").well();
    assert_eq!(tap_state(&place), before);
}

/// Ports on the kernel's side and on the user's side of a TAP device restore each other's changes.
#[test]
fn ports_of_two_kinds_on_a_device_restore_for_one_another() {
    let Some(place) = wired(&[("b0", "b1")]) else {
        return;
    };
    add_tap(&place);
    let before = tap_state(&place);
    let run = start(&place, "run tap:lw0 packet:b0", RUNS);
    let receiver = start(&place, "receive packet:lw0", RECEIVES);
    assert!(ipv6_is_off(&place, "lw0"));
    drop(run);
    assert!(tap_state(&place).0, "the receiver still needs it");
    drop(receiver);
    assert_eq!(tap_state(&place), before);
    assert!(!ipv6_is_off(&place, "lw0"));
    assert!(feature(&place, "lw0", "rx-gro"));
    // The TAP port is the last to end.
    let run = start(&place, "run tap:lw0 packet:b0", RUNS);
    let receiver = start(&place, "receive packet:lw0", RECEIVES);
    assert!(!feature(&place, "lw0", "rx-gro"));
    drop(receiver);
    assert!(ipv6_is_off(&place, "lw0"), "the run still needs it");
    drop(run);
    assert_eq!(tap_state(&place), before);
    assert!(!ipv6_is_off(&place, "lw0"));
    assert!(feature(&place, "lw0", "rx-gro"));
}
