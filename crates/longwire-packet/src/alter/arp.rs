//! Rewrites addresses in ARP (RFC 826) and RARP packets.

use super::options::Role;
use super::rewriting::Rewriting;
use super::unaltered::Unaltered;
use crate::bytes::array;
use crate::header::IpVersion;

/// Length of the fixed part.
const FIXED: usize = 8;

/// Rewrites IPv4 and Ethernet addresses in the ARP packet at `at`.
pub(super) fn rewrite(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize) {
    const ETHERNET_LEN: usize = 6;
    const IPV4_LEN: usize = 4;
    let Some(fixed) = array::<FIXED>(frame, at) else {
        return rewriting.leave(Unaltered::Truncated);
    };
    let (hardware_len, len) = (usize::from(fixed[4]), usize::from(fixed[5]));
    let is_ipv4 = fixed[2..4] == [8, 0] && len == IPV4_LEN;
    if !is_ipv4 {
        if rewriting.addresses.anything {
            rewriting.leave(Unaltered::Unknown);
        }
        return;
    }
    let target = FIXED + hardware_len + len;
    for (hardware_at, role) in [(FIXED, Role::Source), (target, Role::Destination)] {
        let hardware_at = at + hardware_at;
        if rewriting.macs.anything && hardware_len == ETHERNET_LEN {
            rewriting.macs.rename(frame, hardware_at);
        }
        if rewriting.addresses.anything {
            _ = rewriting.address(frame, hardware_at + hardware_len, IpVersion::V4, role);
        }
    }
}
