//! Multicast groups of a host's IPv6 addresses, and the kernel's reports of them.
//!
//! Each address has a solicited-node group, which the kernel reports on the link (RFC 3810).
//! Without a carrier, the kernel reports nothing. Joining all groups before the carrier appears
//! therefore makes the number of reports predictable.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_io::net::link::link_index;
use longwire_io::net::{NetError, sysctl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::network::DEVICE;
use crate::plan::{Host, link_local_of, mac_of};

/// Maximum wait for the reports.
const REPORTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum wait if the settings that keep an idle link silent could not be applied. The kernel then
/// spreads its reports over seconds, too long a delay for every run.
const UNSET_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between two reads of the counter.
const INTERVAL: Duration = Duration::from_millis(2);
/// Default number of times the kernel reports a change (RFC 3810, section 9.1).
const ROBUSTNESS: u64 = 2;

/// Memberships in a host's solicited-node groups. Without these, the kernel would join each group
/// some time after the device comes up, and report it separately.
#[derive(Debug)]
pub struct Groups {
    /// Never bound, so no port is used.
    _member: Option<UdpSocket>,
    timeout: Duration,
}

impl Groups {
    /// Joins the host's groups; a no-op without IPv6. Call in the host's network while its device
    /// is down. `is_set`: the network has the settings that keep an idle link silent.
    pub fn join(host: &Host, is_set: bool) -> Result<Groups, NetError> {
        let timeout = if is_set {
            REPORTS_TIMEOUT
        } else {
            UNSET_TIMEOUT
        };
        if sent().is_none() {
            return Ok(Groups {
                _member: None,
                timeout,
            });
        }
        let failed = |source: io::Error| NetError::System {
            action: "join",
            what: format!("the multicast groups of '{DEVICE}'"),
            source,
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let member = socket(AddressFamily::Inet6, SockType::Datagram, flags, None);
        let member = UdpSocket::from(member.map_err(|error| failed(error.into()))?);
        let device = link_index(DEVICE)?;
        let addresses = host.addresses.iter().map(|found| found.address);
        let link_local = link_local_of(mac_of(host.number, 0));
        let mut groups: Vec<Ipv6Addr> = addresses
            .chain([link_local.into()])
            .filter_map(solicited_node)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            // Fails beyond some hundreds of groups (`net.core.optmem_max`); the kernel itself joins
            // and reports further groups.
            let _ = member.join_multicast_v6(&group, device);
        }
        Ok(Groups {
            _member: Some(member),
            timeout,
        })
    }

    /// Waits until the kernel has sent all reports: one set when the carrier appears, and another
    /// when the link-local address becomes valid. Call in the host's network.
    pub fn wait_reported(&self) {
        let robustness = sysctl::get("ipv6/mld_qrv").ok();
        let robustness = robustness.and_then(|value| value.parse().ok());
        let expected = 2 * robustness.unwrap_or(ROBUSTNESS);
        let end = Instant::now() + self.timeout;
        while sent().is_some_and(|sent| sent < expected) && Instant::now() < end {
            sleep(INTERVAL);
        }
    }
}

/// Returns the solicited-node group of an address (RFC 4291, section 2.7.1).
fn solicited_node(address: IpAddr) -> Option<Ipv6Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [.., a, b, c] = address.octets();
    let last = [0xff00 | u16::from(a), u16::from_be_bytes([b, c])];
    Some(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, last[0], last[1]))
}

/// Returns the number of ICMPv6 messages sent by the device; `None` without IPv6.
fn sent() -> Option<u64> {
    let counters = format!("/proc/thread-self/net/dev_snmp6/{DEVICE}");
    let text = fs::read_to_string(counters).ok()?;
    let value = |line: &str| line.strip_prefix("Icmp6OutMsgs")?.trim().parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_from_the_last_bytes_of_addresses() {
        let group = |address: &str| solicited_node(address.parse().expect("an address"));
        assert_eq!(group("fd77:4c57::1"), "ff02::1:ff00:1".parse().ok());
        assert_eq!(
            group("fe80::12:34ab:cdef"),
            "ff02::1:ffab:cdef".parse().ok()
        );
        assert_eq!(group("10.77.0.1"), None);
    }
}
