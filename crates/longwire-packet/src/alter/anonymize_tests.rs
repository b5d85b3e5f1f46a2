//! Crypto-PAn compared with published vectors, and its invariants.

use core::net::IpAddr;

use super::*;
use crate::bytes::left_aligned;

/// Key of the sample in the authors' distribution.
const KEY: [u8; 32] = [
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
];

/// An address as [`Anonymizer::replacement`] takes it.
fn address(text: &str) -> (IpVersion, u128) {
    let address: IpAddr = text.parse().unwrap();
    let version = match address {
        IpAddr::V4(_) => IpVersion::V4,
        IpAddr::V6(_) => IpVersion::V6,
    };
    (version, left_aligned(address))
}

fn replaced(anonymizer: &mut Anonymizer, text: &str) -> u128 {
    let (version, address) = address(text);
    anonymizer.replacement(version, address)
}

/// IPv4 vectors from the authors' sample_trace_raw.dat and sample_trace_sanitized.dat; IPv6 vectors
/// from another implementation.
#[test]
fn addresses_match_other_implementations() {
    let mut anonymizer = Anonymizer::new(&KEY, true);
    for (before, expected) in [
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
        ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
        ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
        ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
        ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
    ] {
        let found = replaced(&mut anonymizer, before);
        assert_eq!(found, address(expected).1, "{before}");
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
        let (first4, common4) = (first6 >> 96 << 96, common % 32);
        let bit4 = 1u128 << (127 - common4);
        let second4 = (first4 ^ bit4) ^ (rest << 96 & (bit4 - 1));
        for anonymizer in &mut anonymizers {
            for (version, first, second, common) in [
                (IpVersion::V6, first6, second6, common),
                (IpVersion::V4, first4, second4, common4),
            ] {
                let [a, b] = [first, second].map(|of| anonymizer.replacement(version, of));
                assert_eq!((a ^ b).leading_zeros(), common, "{first:x} {second:x}");
            }
        }
    }
}

/// Well-known addresses are preserved, and no other address maps to one.
#[test]
fn special_addresses_are_kept() {
    let mut anonymizer = Anonymizer::new(&KEY, false);
    let kept = "0.0.0.0 127.0.0.1 224.0.0.251 255.255.255.255 :: ::1 ff02::1 ff02::fb";
    for same in kept.split(' ') {
        assert_eq!(replaced(&mut anonymizer, same), address(same).1, "{same}");
    }
    for (partly, bits) in [("fe80::1234", 10), ("ff02::1:ff12:3456", 104)] {
        let (becomes, before) = (replaced(&mut anonymizer, partly), address(partly).1);
        assert_eq!((becomes ^ before) >> (128 - bits), 0, "{partly}");
        assert_ne!(becomes, before, "{partly}");
    }
    for first in 1..=223 {
        let before = (first << 24 | 0x01_0203) << 96;
        let becomes = anonymizer.replacement(IpVersion::V4, before) >> 120;
        assert_eq!(first == 127, becomes == 127);
        assert!((1..224).contains(&becomes), "{first} becomes {becomes}");
    }
}

/// Cached results equal computed ones, even after collisions.
#[test]
fn cached_results_are_correct() {
    let mut anonymizer = Anonymizer::new(&KEY, false);
    let mut check = |version, address| {
        let found = anonymizer.replacement(version, address);
        assert_eq!(found, anonymizer.compute(version, address));
    };
    for _ in 0..2 {
        for n in 0..20_000u32 {
            check(IpVersion::V4, u128::from(n.wrapping_mul(0x0101_0301)) << 96);
        }
        for n in 0..6_000u128 {
            check(IpVersion::V6, n * 0x1_0000_0001_0000_0000_0001_0003);
        }
    }
}
