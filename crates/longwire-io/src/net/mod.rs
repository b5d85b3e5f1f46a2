//! The kernel's network devices and namespaces without helper programs: rtnetlink over a raw
//! socket, and namespaces held by descriptor.
//!
//! Functions that name a device act in the calling thread's network namespace, which
//! [`NetNamespace::run`] and [`NetNamespace::enter`] select.

use std::io;

pub mod address;
pub mod ethtool;
pub mod grace;
pub(crate) mod ifreq;
pub mod interface;
pub mod link;
pub mod netlink;
pub mod netlink_message;
pub mod netns;
pub(crate) mod offloads;
pub mod qdisc;
pub mod record;
pub mod sysctl;
pub mod tap;
pub mod veth;

use netlink::{Netlink, REQUEST};
use netlink_message::Message;

pub use address::{addr_add, default_route_add, neighbour_add, route_add};
pub use link::{LinkStats, link_delete, link_down, link_names, link_stats, link_up, set_gso_max};
pub use netns::NetNamespace;
pub use offloads::sctp_segmentation_off;

/// Failure to change or query the network.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NetError {
    #[error("cannot {action} {what}: {source}")]
    NetlinkError {
        action: &'static str,
        what: String,
        source: netlink::NetlinkError,
    },
    #[error("cannot {action} {what}: {source}")]
    System {
        action: &'static str,
        what: String,
        source: io::Error,
    },
    #[error("no device '{name}'")]
    NoDevice { name: String },
}

impl NetError {
    pub(crate) fn system(
        action: &'static str,
        what: impl Into<String>,
        source: impl Into<io::Error>,
    ) -> NetError {
        NetError::System {
            action,
            what: what.into(),
            source: source.into(),
        }
    }

    pub(crate) fn refused(
        action: &'static str,
        what: impl Into<String>,
        source: netlink::NetlinkError,
    ) -> NetError {
        NetError::NetlinkError {
            action,
            what: what.into(),
            source,
        }
    }

    /// Converts to a system error; ENODEV for a missing device.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            NetError::NetlinkError { source, .. } => source.source,
            NetError::System { source, .. } => source,
            NetError::NoDevice { .. } => io::Error::from_raw_os_error(libc::ENODEV),
        }
    }

    /// Returns the underlying system error, if any.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            NetError::NetlinkError { source, .. } => Some(&source.source),
            NetError::System { source, .. } => Some(source),
            NetError::NoDevice { .. } => None,
        }
    }
}

/// Requests a kernel table and returns the values that `read` extracts from its entries. The
/// request has a zeroed header of `header_len` bytes; `what` names the table in errors.
fn list<T>(
    kind: u16,
    header_len: usize,
    what: &'static str,
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Vec<T>, NetError> {
    let mut found = Vec::new();
    let all = Message::new(kind, REQUEST, &[0; 32][..header_len]);
    Netlink::route()
        .and_then(|mut netlink| netlink.dump(all, |payload| found.extend(read(payload))))
        .map_err(|source| NetError::refused("list", what, source))?;
    Ok(found)
}
