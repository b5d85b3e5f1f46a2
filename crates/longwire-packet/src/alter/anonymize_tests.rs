//! Crypto-PAn compared with published vectors, and its invariants.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use super::*;

/// Key of the sample in the authors' distribution.
const KEY: [u8; 32] = [
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
];

fn v4(text: &str) -> u32 {
    Ipv4Addr::from_str(text).unwrap().into()
}

fn v6(text: &str) -> u128 {
    Ipv6Addr::from_str(text).unwrap().into()
}

/// Vectors from the authors' sample_trace_raw.dat and sample_trace_sanitized.dat.
#[test]
fn ipv4_matches_the_published_vectors() {
    let pan = CryptoPan::new(&KEY);
    for (address, expected) in [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
        ("152.163.225.39", "151.140.114.167"),
        ("156.29.3.236", "147.225.12.42"),
        ("165.247.96.84", "162.9.99.234"),
        ("166.107.77.190", "160.132.178.185"),
        ("192.102.249.13", "252.138.62.131"),
        ("192.215.32.125", "252.43.47.189"),
        ("192.233.80.103", "252.25.108.8"),
        ("193.150.244.223", "253.169.52.216"),
        ("195.205.63.100", "255.186.223.5"),
        ("198.36.213.5", "249.7.21.132"),
        ("202.49.198.20", "245.206.7.234"),
        ("216.32.132.250", "235.192.139.38"),
        ("24.0.250.221", "100.15.198.226"),
        ("24.5.0.80", "100.9.15.210"),
        ("38.15.67.68", "64.3.66.187"),
        ("4.3.88.225", "124.60.155.63"),
        ("63.14.55.111", "95.9.215.7"),
        ("64.14.118.196", "0.255.183.58"),
    ] {
        assert_eq!(pan.v4(v4(address)), v4(expected), "{address}");
    }
}

/// Vectors from the tests of implementations that agree on the 128-bit extension.
#[test]
fn ipv6_matches_another_implementation() {
    let pan = CryptoPan::new(&KEY);
    for (address, expected) in [
        ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
        ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
        ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
        ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
    ] {
        assert_eq!(pan.v6(v6(address)), v6(expected), "{address}");
    }
}

/// 4,000 address pairs with random common prefix lengths, some in well-known blocks.
#[test]
fn exactly_the_common_prefix_is_kept() {
    let mut anonymizers = [Anonymizer::new(&KEY, true), Anonymizer::new(&KEY, false)];
    let mut state = 1u64;
    let mut random = || {
        state = longwire_units::random::absorb(state, 7);
        state
    };
    for round in 0..4_000 {
        let first6 = match round % 4 {
            0 => BLOCKS6[(random() % 4) as usize].start ^ u128::from(random()),
            _ => u128::from(random()) << 64 | u128::from(random()),
        };
        let common = (random() % 128) as u32;
        // The next bit differs; the remaining bits are random.
        let rest = u128::from(random()) << 64 | u128::from(random());
        let bit = 1u128 << (127 - common);
        let second6 = (first6 ^ bit) ^ (rest & (bit - 1));
        let (first4, common4) = ((first6 >> 96) as u32, common % 32);
        let bit4 = 1u32 << (31 - common4);
        let second4 = (first4 ^ bit4) ^ (rest as u32 & (bit4 - 1));
        for anonymizer in &mut anonymizers {
            let (a, b) = (anonymizer.v6(first6), anonymizer.v6(second6));
            assert_eq!((a ^ b).leading_zeros(), common, "{first6:x} {second6:x}");
            let (a, b) = (anonymizer.v4(first4), anonymizer.v4(second4));
            assert_eq!((a ^ b).leading_zeros(), common4, "{first4:x} {second4:x}");
        }
    }
}

/// Well-known addresses are preserved, and no other address maps to one.
#[test]
fn special_addresses_are_kept() {
    let mut anonymizer = Anonymizer::new(&KEY, false);
    for same in ["0.0.0.0", "127.0.0.1", "224.0.0.251", "255.255.255.255"] {
        assert_eq!(anonymizer.v4(v4(same)), v4(same));
    }
    for same in ["::", "::1", "ff02::1", "ff02::fb"] {
        assert_eq!(anonymizer.v6(v6(same)), v6(same));
    }
    let link_local = anonymizer.v6(v6("fe80::1234"));
    assert_eq!(link_local >> 118, 0xfe80 >> 6);
    assert_ne!(link_local, v6("fe80::1234"));
    let group = anonymizer.v6(v6("ff02::1:ff12:3456"));
    assert_eq!(group >> 24, v6("ff02::1:ff00:0") >> 24);
    assert_ne!(group, v6("ff02::1:ff12:3456"));
    for first in 1..=223 {
        let becomes = anonymizer.v4(first << 24 | 0x01_0203) >> 24;
        assert_eq!(first == 127, becomes == 127);
        assert!((1..224).contains(&becomes), "{first} becomes {becomes}");
    }
}

/// Cached results equal computed ones, even after collisions.
#[test]
fn cached_results_are_correct() {
    let mut anonymizer = Anonymizer::new(&KEY, false);
    for _ in 0..2 {
        for n in 0..20_000u32 {
            let address = n.wrapping_mul(0x0101_0301);
            assert_eq!(anonymizer.v4(address), anonymizer.compute4(address));
        }
        for n in 0..6_000u128 {
            let address = n * 0x1_0000_0001_0000_0000_0001_0003;
            assert_eq!(anonymizer.v6(address), anonymizer.compute6(address));
        }
    }
}
