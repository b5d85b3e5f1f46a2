//! Switching off the offloads that make frames longer than the wire's, and
//! putting them back.

use std::io;

use super::ethtool::Ethtool;
use super::interface::Interface;

/// Merging of frames as they are received.
const MERGING: &[&str] = &["rx-gro", "rx-lro", "rx-gro-hw", "rx-gro-list"];
/// Buffers of many frames that a sender hands its device.
const SEGMENTATION: &[&str] = &[
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
];

/// What was changed on interfaces; put back when dropped, from whichever
/// namespace.
#[derive(Debug)]
pub struct OffloadGuard {
    ethtool: Ethtool,
    changed: Vec<Change>,
}

/// The features of one interface that were switched off.
#[derive(Debug)]
struct Change {
    interface: String,
    features: Vec<String>,
}

impl OffloadGuard {
    /// Makes every frame that is received on an interface as long as on the
    /// wire: frames are not merged on it, and the other end of a veth pair,
    /// where it is in the same namespace, does not leave cutting up to it.
    /// What was done, and what could not be, is said in `notes`.
    pub fn wire_size(interface: &Interface, notes: &mut Vec<String>) -> io::Result<OffloadGuard> {
        let mut guard = OffloadGuard {
            ethtool: Ethtool::open()?,
            changed: Vec::new(),
        };
        guard.switch_off(&interface.name, MERGING, notes);
        match interface.peer {
            Some(peer) if peer.here => {
                if let Ok(peer) = Interface::find_index(peer.index) {
                    guard.switch_off(&peer.name, SEGMENTATION, notes);
                }
            }
            Some(_) => notes.push(format!(
                "{}: its other end is in another namespace, where segmentation offloads could \
                 not be switched off",
                interface.name
            )),
            None => {}
        }
        Ok(guard)
    }

    /// Switches off the one kind of merging that cannot be undone: frames
    /// merged by LRO have lost where they were cut.
    pub fn reversible(interface: &Interface, notes: &mut Vec<String>) -> io::Result<OffloadGuard> {
        let mut guard = OffloadGuard {
            ethtool: Ethtool::open()?,
            changed: Vec::new(),
        };
        guard.switch_off(&interface.name, &["rx-lro"], notes);
        Ok(guard)
    }

    /// What was switched off: interfaces with the kernel's names of features.
    pub fn changes(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.changed
            .iter()
            .map(|change| (change.interface.as_str(), change.features.as_slice()))
    }

    fn switch_off(&mut self, interface: &str, wanted: &[&str], notes: &mut Vec<String>) {
        let Ok(before) = self.ethtool.features(interface) else {
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
        let asked = on.iter().map(|name| (*name, false));
        if let Err(error) = self.ethtool.set_features(interface, asked) {
            notes.push(format!(
                "{interface}: could not switch off {}: {error}",
                on.join(", ")
            ));
            return;
        }
        // The device has the last word.
        let after = self.ethtool.features(interface).ok();
        let still = |name: &str| after.as_ref().is_none_or(|features| features.active(name));
        let (stubborn, off): (Vec<&str>, Vec<&str>) = on.into_iter().partition(|name| still(name));
        if !stubborn.is_empty() {
            notes.push(format!(
                "{interface}: {} cannot be switched off",
                stubborn.join(", ")
            ));
        }
        if !off.is_empty() {
            notes.push(format!(
                "{interface}: {} switched off until the end",
                off.join(", ")
            ));
            self.changed.push(Change {
                interface: interface.to_owned(),
                features: off.into_iter().map(str::to_owned).collect(),
            });
        }
    }
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        for change in self.changed.iter().rev() {
            let on = change.features.iter().map(|name| (name.as_str(), true));
            // Fails when the interface is gone, and the setting with it.
            let _ = self.ethtool.set_features(&change.interface, on);
        }
    }
}
