//! Frame lengths on the wire under each framing profile.

use longwire_engine::models;
use longwire_engine::models::framing::Framing;
use longwire_testbed::support::rows;
use proptest::prelude::*;

fn framing(text: &str) -> Framing {
    models::FRAMING
        .parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wire_bytes(text: &str, len: u32) -> u64 {
    framing(text).wire_bits(len) / 8
}

/// Cells per encapsulation, with overheads for an IP packet from the manual of tc's CAKE.
#[test]
fn atm_carries_packets_in_whole_cells() {
    for (over, overhead) in [
        ("pppoa-vcmux", 10),
        ("pppoa-llc", 14),
        ("pppoe-vcmux", 32),
        ("pppoe-llc", 40),
        ("bridged-vcmux", 24),
        ("bridged-llc", 32),
        ("ipoa-vcmux", 8),
        ("ipoa-llc", 16),
    ] {
        for packet in [40u32, 46, 576, 1_492, 1_500] {
            let mut cells = 0;
            let mut left = i64::from(packet) + overhead;
            while left > 0 {
                left -= 48;
                cells += 1;
            }
            let bytes = wire_bytes(&format!("atm:over={over}"), packet + 14);
            assert_eq!(bytes, cells * 53, "{over} {packet}");
        }
    }
}

/// DOCSIS counts Ethernet frames. The shortest Ethernet frame takes 84 bytes.
///
/// WireGuard adds 60 bytes over IPv4, and pads to a multiple of 16, but never beyond the tunnel's
/// MTU, 1420 by default; of a longer packet, only the remainder after whole MTUs is padded. A
/// keepalive has no payload but still takes one cell. A full packet becomes 1500 bytes over IPv6.
///
/// A Wi-Fi subframe (delimiter 4, header 26, LLC and SNAP 8, packet, frame check sequence 4) is
/// padded to a multiple of four bytes.
#[test]
fn frames_take_their_bytes_on_the_wire() {
    for [text, len, bytes] in rows(
        "
        atm | 54 | 106
        atm | 1506 | 1696
        docsis | 1514 | 1518
        docsis | 60 | 64
        docsis | 42 | 64
        ethernet | 14 | 84
        ethernet | 42 | 84
        ethernet | 54 | 84
        ethernet | 59 | 84
        ethernet | 60 | 84
        ethernet | 61 | 85
        ethernet | 1514 | 1538
        wireguard | 1422 | 1482
        wireguard | 1423 | 1494
        wireguard | 1433 | 1494
        wireguard | 1434 | 1494
        wireguard | 15 | 90
        wireguard | 14 | 90
        wireguard | 1415 | 1482
        wireguard | 1435 | 1510
        wireguard | 2854 | 2914
        wireguard | 4272 | 4334
        wireguard:mtu=1280 | 1293 | 1354
        wireguard:mtu=1412 | 1425 | 1486
        wireguard:mtu=9000 | 1425 | 1498
        wireguard:over=ipv6 | 1422 | 1502
        wireguard:over=ipv4 | 1422 | 1482
        wifi | 1514 | 1544
        ",
    ) {
        let wire = wire_bytes(text, len.parse().expect(len));
        assert_eq!(wire.to_string(), bytes, "{text} {len}");
    }
}

proptest! {
    #[test]
    fn bytes_and_cells_are_added_up(
        overhead in -64i64..2_000,
        cell in 1u64..2_000,
        cell_header in 0u64..100,
        minimum in prop_oneof![Just(0u64), 0u64..2_000],
        len in prop_oneof![0u32..100, any::<u32>()],
    ) {
        let text = format!(
            "bytes:overhead={overhead},cell={cell},cell-header={cell_header},minimum={minimum}"
        );
        let least = minimum.max(u64::from(overhead < 0));
        let bytes = (i64::from(len) + overhead).max(0) as u64;
        let cells = bytes.max(least).div_ceil(cell);
        let framing = framing(&text);
        prop_assert_eq!(framing.wire_bits(len), cells * (cell + cell_header) * 8);
        let again = models::FRAMING.parse(&framing.to_string()).unwrap();
        prop_assert_eq!(again, framing);
    }
}
