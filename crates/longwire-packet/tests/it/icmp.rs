//! ICMP errors of a router, compared with errors built by scapy.

use std::net::{Ipv4Addr, Ipv6Addr};

use longwire_packet::icmp::{Refusal, RouterAddresses, write_error};
use longwire_testbed::support::rows;
use proptest::prelude::*;

use crate::bytes_of;

const ROUTER: RouterAddresses = RouterAddresses {
    v4: Ipv4Addr::new(10, 0, 0, 254),
    v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe),
};

fn refusal_of(text: &str) -> Refusal {
    match text.split_once('=') {
        Some(("toobig", mtu)) => Refusal::TooBig(mtu.parse().expect("an MTU")),
        _ => Refusal::Expired,
    }
}

#[test]
fn errors_equal_those_of_scapy() {
    // Skips two comment lines.
    let table = include_str!("icmp_scapy.txt").splitn(3, '\n').last();
    let (mut sent, mut withheld) = (0, 0);
    for [name, refusal, frame, expected] in rows(table.unwrap()) {
        // Contents of an earlier error must not remain.
        let mut error = vec![7; 3];
        let wrote = write_error(&bytes_of(frame), refusal_of(refusal), &ROUTER, &mut error);
        let expected = bytes_of(expected.trim_matches('-'));
        assert_eq!(error, expected, "{name}");
        assert_eq!(wrote, !expected.is_empty(), "{name}");
        if wrote {
            sent += 1;
            let mut again = Vec::new();
            let about = write_error(&error, Refusal::Expired, &ROUTER, &mut again);
            assert!(!about, "{name}: an error about an error");
        } else {
            withheld += 1;
        }
    }
    assert_eq!((sent, withheld), (19, 28));
}

proptest! {
    /// No input panics, and no error exceeds its maximum length.
    #[test]
    fn arbitrary_frames_give_bounded_errors(
        start in prop::sample::select(vec![
            &[][..], &[0x08, 0x00, 0x45], &[0x86, 0xdd, 0x60], &[0x81, 0x00, 0, 7, 0x08, 0x00, 0x4f],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..1_600),
        mtu in prop::option::of(0u32..70_000),
    ) {
        let frame = [&[2; 12], start, &rest[..]].concat();
        let refusal = mtu.map_or(Refusal::Expired, Refusal::TooBig);
        let mut error = Vec::new();
        for len in [frame.len(), frame.len() / 2, 13] {
            let frame = &frame[..len.min(frame.len())];
            if write_error(frame, refusal, &ROUTER, &mut error) {
                prop_assert!(error.len() <= 14 + 16 + 1_280);
            } else {
                prop_assert!(error.is_empty());
            }
        }
    }
}
