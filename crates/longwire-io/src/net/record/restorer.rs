//! Restores a device's settings.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use super::entry::Undo;
use crate::net::ethtool::Ethtool;
use crate::net::link;
use crate::net::netlink::Netlink;

/// Restores device settings in the network namespace of the opening thread, regardless of
/// the using thread. Handles changes by all kinds of ports, as a port may have to restore
/// those of another kind.
#[derive(Debug)]
pub(crate) struct Restorer {
    /// The device whose IPv6 it can enable.
    device: String,
    ipv6: Option<File>,
    ethtool: Option<Ethtool>,
    netlink: Option<Netlink>,
}

impl Restorer {
    /// Opens the interface `device` and its peer, in the calling thread's namespace.
    /// Settings that cannot be opened cannot be restored.
    pub(crate) fn open(device: &str) -> Restorer {
        let ipv6 = if device.contains('/') {
            None
        } else {
            OpenOptions::new()
                .write(true)
                .open(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"))
                .ok()
        };
        Restorer {
            device: device.to_owned(),
            ipv6,
            ethtool: Ethtool::open().ok(),
            netlink: Netlink::route().ok(),
        }
    }

    /// Restores a setting. Fails if the device is gone, and the setting with it.
    pub(crate) fn restore(&mut self, device: &str, undo: &Undo) {
        match undo {
            Undo::Ipv6 => {
                if let Some(file) = self.ipv6.as_ref().filter(|_| device == self.device) {
                    let _ = file.write_at(b"0", 0);
                }
            }
            Undo::Feature(feature) => {
                if let Some(ethtool) = &self.ethtool {
                    let on = std::iter::once((feature.as_str(), true));
                    let _ = ethtool.set_features(device, on);
                }
            }
            Undo::QueueLen(places) => {
                if let Some(netlink) = &mut self.netlink {
                    let _ = link::set_tx_queue_len(netlink, device, places.cast_unsigned());
                }
            }
            Undo::Down => {
                if let Some(netlink) = &mut self.netlink {
                    let _ = link::set_up_by(netlink, device, false);
                }
            }
        }
    }
}
