//! Devices that stamp frames as they put them on the wire: whether one does,
//! and how it is told to.
//!
//! No such device was at hand: this follows linux/net_tstamp.h and
//! Documentation/networking/timestamping.rst of the kernel, and what was
//! tested is that devices without stamps are told from it.

use std::io;

use crate::net::ethtool::Ethtool;
use crate::rights;

/// A device that was told to stamp; what it did before is put back when this
/// is dropped.
pub(super) struct Stamping {
    ethtool: Ethtool,
    interface: String,
    clock: u32,
    before: libc::hwtstamp_config,
}

impl Stamping {
    /// Makes a device stamp what it sends; `None` if it cannot, or we may
    /// not.
    pub(super) fn start(ethtool: Ethtool, interface: &str) -> Option<Stamping> {
        Stamping::try_start(ethtool, interface).ok().flatten()
    }

    fn try_start(ethtool: Ethtool, interface: &str) -> io::Result<Option<Stamping>> {
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
        Ok(Some(Stamping {
            ethtool,
            interface: interface.to_owned(),
            clock,
            before,
        }))
    }

    /// The number of the device's clock.
    pub(super) fn clock(&self) -> u32 {
        self.clock
    }
}

impl Drop for Stamping {
    fn drop(&mut self) {
        // Fails when the interface is gone, and the setting with it.
        let _ = self.ethtool.set_stamping(&self.interface, self.before);
    }
}
