//! Flows between ordinary sockets on two hosts, each a network namespace. Their frames take the
//! same path as those of real programs.

mod echo;
mod one_way;
mod pace;
mod stamped;
mod tcp;
mod udp;

pub use echo::{Probes, RoundTrips, probe_trips, round_trips};
pub use one_way::{OneWay, one_way};
pub use tcp::{TcpFlow, tcp_flow, windowed_tcp_flow};
pub use udp::{Datagrams, UdpFlow, udp_flow};

use std::io;
use std::net::Ipv4Addr;

use longwire_io::net::{NetError, NetNamespace};

/// An endpoint of a path.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Network namespace of the host.
    pub namespace: &'a NetNamespace,
    /// IPv4 address of the host.
    pub address: Ipv4Addr,
}

/// The two endpoints of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// The sending host.
    pub from: Host<'a>,
    /// The receiving host.
    pub to: Host<'a>,
}

impl<'a> Path<'a> {
    /// Returns the reverse path.
    pub fn reversed(self) -> Path<'a> {
        Path {
            from: self.to,
            to: self.from,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrafficError {
    #[error("{0}")]
    Namespace(#[from] NetError),
    #[error("cannot {action}: {source}")]
    Socket {
        action: &'static str,
        source: io::Error,
    },
    #[error("no traffic over the link within {0} s")]
    Silence(u64),
}

/// Adds the failed action to an error.
fn during(action: &'static str) -> impl Fn(io::Error) -> TrafficError {
    move |source| TrafficError::Socket { action, source }
}

/// Length of the Ethernet, IPv4 and UDP headers in bytes.
pub const UDP_HEADERS: u32 = 14 + 20 + 8;
