//! Detection that an interface leaves the namespace in which a link was attached to it.
//!
//! Programs stay at an interface that moves to another namespace, where they would drop
//! all its frames. A descriptor would keep the namespace alive, so the kernel is queried
//! by the namespace's id in the link's namespace.

use std::sync::{Mutex, PoisonError};

use crate::net::interface::about;
use crate::net::link::{INFO_FLAGS, INFO_LEN, LinkStats, stats_of};
use crate::net::netlink::{Netlink, REQUEST};
use crate::net::netlink_message::{Message, attribute, number_at};
use crate::net::{NetError, NetNamespace};

/// `IFLA_LINK_NETNSID`: the namespace of a veth device's other end.
const PEER_NAMESPACE: u16 = 37;

/// Queries about an interface, from the link's namespace.
#[derive(Debug)]
pub(super) struct Watch {
    /// A socket in the link's namespace.
    netlink: Mutex<Netlink>,
    /// Id of the interface's namespace there.
    namespace: u32,
    /// The interface's index.
    index: u32,
}

/// The state of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) enum InterfaceState {
    There {
        is_up: bool,
        stats: LinkStats,
    },
    /// Deleted, or moved to another namespace.
    Gone,
    /// The kernel did not answer.
    Unknown,
}

impl Watch {
    /// Watches an interface. `device` is a device of the hub whose peer is in the
    /// interface's namespace.
    pub(super) fn new(hub: &NetNamespace, device: &str, index: u32) -> Result<Watch, NetError> {
        let failed = |source| NetError::refused("look up", format!("device '{device}'"), source);
        hub.run(|| {
            let mut netlink = Netlink::route().map_err(failed)?;
            let mut request = Message::new(libc::RTM_GETLINK, REQUEST, &[0; INFO_LEN]);
            request.text(libc::IFLA_IFNAME, device);
            let found = netlink.get(request, |payload| {
                let number = attribute(payload.get(INFO_LEN..)?, PEER_NAMESPACE)?;
                number_at(number, 0)
            });
            let namespace = found.map_err(failed)?.ok_or_else(|| NetError::NoDevice {
                name: device.to_owned(),
            })?;
            Ok(Watch {
                netlink: Mutex::new(netlink),
                namespace,
                index,
            })
        })?
    }

    /// Queries the interface.
    pub(super) fn look(&self) -> InterfaceState {
        let request = about(self.index, Some(self.namespace));
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        let found = netlink.get(request, |payload| {
            let flags = number_at(payload, INFO_FLAGS).unwrap_or(0);
            InterfaceState::There {
                is_up: flags & libc::IFF_UP.cast_unsigned() != 0,
                stats: stats_of(payload).unwrap_or_default(),
            }
        });
        match found {
            Ok(state) => state,
            // The device or namespace no longer exists.
            Err(error)
                if matches!(
                    error.source.raw_os_error(),
                    Some(libc::ENODEV | libc::EINVAL)
                ) =>
            {
                InterfaceState::Gone
            }
            Err(_) => InterfaceState::Unknown,
        }
    }
}
