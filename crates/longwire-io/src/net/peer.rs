//! The peer of a veth device, possibly in another namespace.

use super::interface::{Interface, read};
use super::link::{INFO_INDEX, INFO_LEN};
use super::netlink::{Netlink, NetlinkError, REQUEST};
use super::netlink_message::Message;

/// `IFLA_TARGET_NETNSID`: the namespace of a request's device.
const TARGET_NAMESPACE: u16 = 46;

/// Requests a device by index, in the namespace with id `namespace` here.
pub(crate) fn about(index: u32, namespace: Option<u32>) -> Message {
    let mut fixed = [0; INFO_LEN];
    fixed[INFO_INDEX..INFO_INDEX + 4].copy_from_slice(&index.to_ne_bytes());
    let mut message = Message::new(libc::RTM_GETLINK, REQUEST, &fixed);
    if let Some(namespace) = namespace {
        message.number(TARGET_NAMESPACE, namespace);
    }
    message
}

/// Reads the MTU of a veth peer.
#[derive(Debug)]
pub(crate) struct PeerMtu {
    netlink: Netlink,
    index: u32,
    namespace: Option<u32>,
}

impl PeerMtu {
    /// Returns a reader for an interface in the calling thread's namespace; `None` unless
    /// it is a veth device.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn of(interface: &Interface) -> Result<Option<PeerMtu>, NetlinkError> {
        let Some(peer) = interface.peer else {
            return Ok(None);
        };
        Ok(Some(PeerMtu {
            netlink: Netlink::route()?,
            index: peer.index,
            namespace: peer.namespace,
        }))
    }

    /// Returns the MTU in bytes, without the Ethernet header; `None` without
    /// CAP_NET_ADMIN in the other namespace.
    pub(crate) fn get(&mut self) -> Option<usize> {
        let request = about(self.index, self.namespace);
        let found = self.netlink.get(request, read).ok()??;
        Some(found.mtu as usize)
    }
}
