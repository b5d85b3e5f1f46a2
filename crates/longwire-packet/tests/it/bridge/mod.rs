//! The bridge, compared with a naive one, and its invariants.

mod behaviour;
mod loops;
mod model;

use longwire_packet::bridge::PortIndex;

/// Returns a frame with these addresses, with or without a tag.
pub fn frame(destination: [u8; 6], source: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0x00]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([0x08, 0x00]);
    frame.resize(64, 0);
    frame
}

pub fn station(number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [2, 0, a, b, c, d]
}

pub const BROADCAST: [u8; 6] = [0xff; 6];

pub const fn port(number: u16) -> PortIndex {
    PortIndex(number)
}
