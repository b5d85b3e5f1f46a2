//! ARP (RFC 826): its addresses are those of packets.

use super::addresses::Addresses;
use super::mac::{Mac, Renamed};
use super::options::Role;
use crate::frame::mac_header_len;

/// Ethernet and IPv4, addresses of six and four bytes.
const KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// From the hardware's type to the target's address, in bytes.
const LEN: usize = 28;

/// Rewrites the addresses in an ARP packet.
pub(super) fn rewrite(frame: &mut [u8], addresses: &mut Addresses, macs: &Renamed<'_>, round: u64) {
    let at = mac_header_len(frame) as usize;
    if frame.get(at - 2..at) != Some(&[0x08, 0x06]) {
        return;
    }
    let Some(packet) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<LEN>) else {
        return;
    };
    if packet[..6] != KIND {
        return;
    }
    for (hardware_at, role) in [(8, Role::Source), (18, Role::Destination)] {
        let mut mac: Mac = [0; 6];
        mac.copy_from_slice(&packet[hardware_at..hardware_at + 6]);
        if macs.anything() {
            packet[hardware_at..hardware_at + 6].copy_from_slice(&macs.name(mac));
        }
        let field = hardware_at + 6..hardware_at + 10;
        let mut address = [0; 4];
        address.copy_from_slice(&packet[field.clone()]);
        let after = addresses.v4(u32::from_be_bytes(address), role, round);
        packet[field].copy_from_slice(&after.to_be_bytes());
    }
}
