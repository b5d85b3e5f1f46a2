//! Flow five-tuples.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::bytes::array;
use crate::flow::ports;
use crate::header::{IpHeader, IpVersion};

/// An IP packet's addresses, protocol and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// Transport protocol number.
    pub protocol: u8,
    /// Source and destination port; `None` for protocols without ports and for fragments without a
    /// transport header.
    pub ports: Option<(u16, u16)>,
}

impl FiveTuple {
    /// Parses a frame's headers; returns `None` without a complete IP header.
    pub fn of(frame: &[u8]) -> Option<FiveTuple> {
        let ip = IpHeader::parse(frame)?;
        let address = |at| -> Option<IpAddr> {
            Some(match ip.version {
                IpVersion::V4 => array::<4>(frame, at)?.into(),
                IpVersion::V6 => array::<16>(frame, at)?.into(),
            })
        };
        let transport = ip.transport(frame)?;
        Some(FiveTuple {
            source: address(ip.source_at())?,
            destination: address(ip.destination_at())?,
            protocol: transport.protocol,
            ports: ports(frame, &transport),
        })
    }
}

impl fmt::Display for FiveTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            1 => f.write_str("icmp")?,
            6 => f.write_str("tcp")?,
            17 => f.write_str("udp")?,
            33 => f.write_str("dccp")?,
            58 => f.write_str("icmp6")?,
            132 => f.write_str("sctp")?,
            number => write!(f, "protocol {number}")?,
        }
        let Some((from, to)) = self.ports else {
            return write!(f, " {} > {}", self.source, self.destination);
        };
        let from = SocketAddr::new(self.source, from);
        write!(f, " {from} > {}", SocketAddr::new(self.destination, to))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use longwire_testbed::support::frames::{ethernet, ipv6, udp4};

    use super::*;

    #[test]
    fn flows_are_printed_with_addresses_and_ports() {
        let whole = udp4([10, 0, 0, 1], [10, 0, 0, 2], (40_000, 5_201), &[]);
        let mut later = whole.clone();
        later[21] = 5;
        let six = ethernet(&[], 0x86dd, &ipv6(0, &[], 58, &[128, 0, 0, 0]));
        for (frame, name) in [
            (&whole, "udp 10.0.0.1:40000 > 10.0.0.2:5201"),
            (&later, "udp 10.0.0.1 > 10.0.0.2"),
            (&six, "icmp6 2001:db8::1 > 2001:db8:9::2"),
        ] {
            let flow = FiveTuple::of(frame).map(|flow| flow.to_string());
            assert_eq!(flow.as_deref(), Some(name));
        }
        for short in 0..whole.len() - 8 {
            assert_eq!(FiveTuple::of(&whole[..short]), None, "{short} bytes");
        }
    }
}
