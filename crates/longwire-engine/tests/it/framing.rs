//! Frame lengths on the wire under each framing profile.

use longwire_engine::models;
use longwire_engine::models::framing::Framing;
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
    // A pure ACK over PPPoE takes two cells, a full packet 32.
    assert_eq!(wire_bytes("atm", 54), 2 * 53);
    assert_eq!(wire_bytes("atm", 1_506), 32 * 53);
}

#[test]
fn docsis_counts_ethernet_frames() {
    assert_eq!(wire_bytes("docsis", 1_514), 1_518);
    assert_eq!(wire_bytes("docsis", 60), 64);
    assert_eq!(wire_bytes("docsis", 42), 64);
}

/// IEEE 802.3: at least 64 bytes with FCS, plus 20 for preamble and gap.
#[test]
fn the_shortest_ethernet_frame_takes_84_bytes() {
    for len in [14, 42, 54, 59, 60] {
        assert_eq!(wire_bytes("ethernet", len), 84, "{len}");
    }
    assert_eq!(wire_bytes("ethernet", 61), 85);
    assert_eq!(wire_bytes("ethernet", 1_514), 1_538);
}

/// Padding never makes a packet exceed the tunnel MTU.
#[test]
fn wireguard_does_not_pad_beyond_the_mtu() {
    let data = |text: &str, packet: u32| wire_bytes(text, 14 + packet) - 14 - 60;
    for (packet, padded) in [
        (1_408, 1_408),
        (1_409, 1_420),
        (1_419, 1_420),
        (1_420, 1_420),
        (1, 16),
        // Longer than the tunnel MTU: only the remainder after whole MTUs is padded.
        (1_421, 1_420 + 16),
        (2 * 1_420, 2 * 1_420),
        (2 * 1_420 + 1_418, 3 * 1_420),
    ] {
        assert_eq!(data("wireguard", packet), padded, "{packet}");
    }
    assert_eq!(data("wireguard:mtu=1280", 1_279), 1_280);
    assert_eq!(data("wireguard:mtu=1412", 1_411), 1_412);
    assert_eq!(data("wireguard:mtu=9000", 1_411), 1_424);
    assert_eq!(
        framing("wireguard:over=ipv6,mtu=1380").to_string(),
        "wireguard:over=ipv6,mtu=1380"
    );
}

/// A full packet of 1420 bytes, WireGuard's usual MTU, becomes 1500 bytes over IPv6. Over IPv4, the
/// overhead is 60 bytes plus padding to a multiple of 16.
#[test]
fn wireguard_pads_and_wraps() {
    assert_eq!(
        wire_bytes("wireguard:over=ipv6", 14 + 1_408),
        14 + 1_408 + 80
    );
    assert_eq!(
        wire_bytes("wireguard:over=ipv4", 14 + 1_408),
        14 + 1_408 + 60
    );
    assert_eq!(wire_bytes("wireguard", 14 + 1_401), 14 + 1_408 + 60);
    // A keepalive has no payload but still takes one cell, so every frame takes time.
    assert_eq!(wire_bytes("wireguard", 14), 14 + 16 + 60);
}

#[test]
fn wifi_subframes_end_at_four_bytes() {
    // Delimiter 4, header 26, LLC and SNAP 8, sequence 4, packet 1500: 1542.
    assert_eq!(wire_bytes("wifi", 1_514), 1_544);
}

#[test]
fn overhead_may_be_negative_but_a_frame_takes_a_byte() {
    assert_eq!(wire_bytes("bytes:overhead=-14", 1_514), 1_500);
    assert_eq!(wire_bytes("bytes:overhead=-14", 14), 1);
    assert_eq!(wire_bytes("bytes:overhead=-64", 60), 1);
    assert_eq!(wire_bytes("bytes:overhead=-4,minimum=64", 60), 64);
    assert_eq!(wire_bytes("bytes:overhead=38,minimum=84", 46), 84);
}

proptest! {
    #[test]
    fn bytes_and_cells_are_added_up(
        overhead in -64i64..2_000,
        cell in 1u64..2_000,
        cell_header in 0u64..100,
        minimum in prop_oneof![Just(0u64), 0u64..2_000],
        len in any::<u32>(),
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
