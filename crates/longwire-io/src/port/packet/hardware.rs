//! Detection and configuration of devices that stamp frames as they go onto the wire.
//!
//! No such device was available: this follows linux/net_tstamp.h and the kernel's
//! Documentation/networking/timestamping.rst; only the detection of devices without
//! stamps is tested.

use std::io;

use crate::net::ethtool::Ethtool;
use crate::rights;

/// A device configured to stamp; its previous configuration is restored when this is
/// dropped.
pub(super) struct DeviceStamping {
    ethtool: Ethtool,
    interface: String,
    clock: u32,
    before: libc::hwtstamp_config,
}

impl DeviceStamping {
    /// Configures a device to stamp the frames that it sends; `None` if it cannot, or
    /// the process may not.
    pub(super) fn start(ethtool: Ethtool, interface: &str) -> Option<DeviceStamping> {
        DeviceStamping::try_start(ethtool, interface).ok().flatten()
    }

    fn try_start(ethtool: Ethtool, interface: &str) -> io::Result<Option<DeviceStamping>> {
        let stamps = ethtool.stamps(interface)?;
        let Some(clock) = stamps.clock.filter(|_| stamps.sends) else {
            return Ok(None);
        };
        let before = ethtool.stamping(interface)?;
        let on = libc::hwtstamp_config {
            tx_type: libc::HWTSTAMP_TX_ON.cast_signed(),
            ..before
        };
        rights::will_restore();
        ethtool.set_stamping(interface, on)?;
        Ok(Some(DeviceStamping {
            ethtool,
            interface: interface.to_owned(),
            clock,
            before,
        }))
    }

    /// Returns the number of the device's clock.
    pub(super) fn clock(&self) -> u32 {
        self.clock
    }
}

impl Drop for DeviceStamping {
    fn drop(&mut self) {
        // Fails if the interface, and with it the setting, is gone.
        let _ = self.ethtool.set_stamping(&self.interface, self.before);
    }
}
