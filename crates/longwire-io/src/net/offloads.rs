//! Disables offloads that merge or enlarge frames.

use super::ethtool::Ethtool;
use super::interface::Interface;
use super::record::{SettingsChange, Undo};

/// Features that merge received frames.
const MERGING: &[&str] = &["rx-gro", "rx-lro", "rx-gro-hw", "rx-gro-list"];
/// Features that segment super-packets in the device.
const SEGMENTATION: &[&str] = &[
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    SCTP_SEGMENTATION,
];
/// SCTP segmentation. A virtio-net header cannot describe SCTP super-packets, and the
/// kernel drops them before a packet socket.
const SCTP_SEGMENTATION: &str = "tx-sctp-segmentation";

/// Makes the kernel segment SCTP super-packets before `device`, a device of this process whose
/// frames reach a packet port.
pub fn sctp_segmentation_off(device: &str) {
    // Best effort: a kernel without the feature needs no change.
    let _ = Ethtool::open()
        .and_then(|ethtool| ethtool.set_features(device, [(SCTP_SEGMENTATION, false)]));
}

/// Limits the interface's received frames to wire size: disables merging, and makes the other end
/// of a veth pair in the same namespace segment its super-packets. Appends changes and failures to
/// `notes`, and an undo entry for each change to `changing`.
pub(crate) fn wire_size(
    ethtool: &Ethtool,
    interface: &Interface,
    changing: &mut SettingsChange,
    notes: &mut Vec<String>,
) {
    switch_off(ethtool, &interface.name, MERGING, changing, notes);
    match interface.peer {
        Some(peer) if peer.here => {
            if let Ok(peer) = Interface::find_index(peer.index) {
                switch_off(ethtool, &peer.name, SEGMENTATION, changing, notes);
            }
        }
        Some(_) => notes.push(format!(
            "{}: its peer is in another namespace, so its segmentation offloads stay enabled",
            interface.name
        )),
        None => {}
    }
}

/// Disables the features in `wanted` that are enabled. Appends changes and failures to `notes`.
pub(crate) fn switch_off(
    ethtool: &Ethtool,
    interface: &str,
    wanted: &[&str],
    changing: &mut SettingsChange,
    notes: &mut Vec<String>,
) {
    let Ok(before) = ethtool.features(interface) else {
        return;
    };
    let on: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|name| before.active(name))
        .collect();
    if on.is_empty() {
        return;
    }
    for name in &on {
        changing.note(interface, Undo::Feature((*name).to_owned()));
    }
    let requested = on.iter().map(|name| (*name, false));
    if let Err(error) = ethtool.set_features(interface, requested) {
        notes.push(format!(
            "{interface}: cannot disable {}: {error}",
            on.join(", ")
        ));
        return;
    }
    // The device may override the request.
    let after = ethtool.features(interface).ok();
    let still = |name: &str| after.as_ref().is_none_or(|features| features.active(name));
    let (stubborn, off): (Vec<&str>, Vec<&str>) = on.into_iter().partition(|name| still(name));
    if !stubborn.is_empty() {
        notes.push(format!(
            "{interface}: {} cannot be disabled",
            stubborn.join(", ")
        ));
    }
    if !off.is_empty() {
        notes.push(format!(
            "{interface}: disabled {} for the run",
            off.join(", ")
        ));
    }
}
