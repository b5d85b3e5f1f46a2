//! The jumbo payload option of long IPv6 super-packets (RFC 2675).

/// Bytes of an IPv6 header.
const IPV6: usize = 40;
/// Length of a hop-by-hop header with only the jumbo payload option.
const JUMBO: usize = 8;
/// Offset of the next header number in an IPv6 header.
const NEXT_HEADER: usize = 6;
/// Protocol number of a hop-by-hop header.
const HOP_BY_HOP: u8 = 0;
/// Type and length of the jumbo payload option.
const JUMBO_OPTION: [u8; 2] = [0xc2, 4];

/// Removes the hop-by-hop header that the kernel adds to a long IPv6 super-packet.
/// Returns the offset at which the frame now begins in `frame`; 0 without that header.
/// Bytes after the header stay in place.
pub fn strip_jumbo(frame: &mut [u8]) -> usize {
    let network_at = longwire_packet::frame::mac_header_len(frame) as usize;
    let Some(header) = frame.get(network_at..network_at + IPV6 + JUMBO) else {
        return 0;
    };
    let is_v6 = frame[network_at - 2..network_at] == [0x86, 0xdd] && header[0] >> 4 == 6;
    let without_len = header[4..6] == [0, 0] && header[NEXT_HEADER] == HOP_BY_HOP;
    let extension = &header[IPV6..];
    if !is_v6 || !without_len || extension[1] != 0 || extension[2..4] != JUMBO_OPTION {
        return 0;
    }
    frame[network_at + NEXT_HEADER] = extension[0];
    frame.copy_within(..network_at + IPV6, JUMBO);
    JUMBO
}
