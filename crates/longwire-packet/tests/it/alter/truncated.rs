//! Truncated frames: restored, kept or skipped.

use longwire_packet::alter::Truncated;

use crate::alter::{
    About, Alterations, all_of, altered, count, holds, one, options, run, sctp, udp,
};
use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, ethernet, ipv6, transport};

fn filled(truncated: &str, frame: &[u8], captured: usize) -> (Vec<u8>, Alterations) {
    one(
        &format!("truncated={truncated}"),
        &frame[..captured],
        frame.len(),
    )
}

/// A frame truncated anywhere after its headers regains its length and valid checksums; its
/// captured bytes are otherwise unchanged.
#[test]
fn missing_payload_is_filled() {
    for sample in frames::samples() {
        let headers = sample.transport_at + if sample.protocol == 6 { 20 } else { 8 };
        for captured in headers..sample.frame.len() {
            for how in ["zeros", "random", "pattern:c0ffee"] {
                let (frame, alterations) = filled(how, &sample.frame, captured);
                let name = format!("{} {how} {captured}", sample.name);
                assert_eq!(frame.len(), sample.frame.len(), "{name}");
                assert!(sample.holds(&frame), "{name}");
                let missing = &frame[captured..];
                match how {
                    "zeros" => assert!(missing.iter().all(|byte| *byte == 0), "{name}"),
                    "random" => {
                        let varies = missing.iter().any(|byte| *byte != missing[0]);
                        assert!(varies || missing.len() < 16, "{name}");
                    }
                    _ => {
                        let repeats = |part: &[u8]| [0xc0, 0xff, 0xee].starts_with(part);
                        assert!(missing.chunks(3).all(repeats), "{name}");
                    }
                }
                let range = headers..captured;
                assert_eq!(frame[range.clone()], sample.frame[range], "{name}");
                assert_eq!(count(&alterations, "truncated_filled"), 1);
                assert_eq!(count(&alterations, "truncated_in_headers"), 0, "{name}");
            }
        }
    }
}

#[test]
fn a_pattern_is_whole_bytes() {
    for text in ["", "c", "c0f", "zz", "c0:", "c0:f"] {
        let pattern = format!("pattern:{text}").parse::<Truncated>();
        assert!(pattern.is_err(), "{text}: {pattern:?}");
    }
    let parsed = ["c0ffee", "c0:ff:ee"].map(|text| format!("pattern:{text}").parse());
    assert_eq!(
        parsed,
        [(); 2].map(|()| Ok(Truncated::Pattern(vec![0xc0, 0xff, 0xee])))
    );
}

/// A truncated transport header is completed so that it parses: TCP data offset, UDP length, and
/// checksums.
#[test]
fn headers_are_completed() {
    for sample in frames::samples() {
        let headers = sample.transport_at + if sample.protocol == 6 { 20 } else { 8 };
        for captured in sample.transport_at..headers {
            let (frame, alterations) = filled("random", &sample.frame, captured);
            let name = format!("{} {captured}", sample.name);
            assert!(sample.holds(&frame), "{name}");
            assert_eq!(count(&alterations, "truncated_in_headers"), 1, "{name}");
            match sample.protocol {
                6 => assert_eq!(frame[sample.transport_at + 12] >> 4, 5, "{name}"),
                17 => {
                    let at = sample.transport_at;
                    let said = u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
                    assert_eq!(usize::from(said), frame.len() - at, "{name}");
                    assert_ne!(frame[at + 6..at + 8], [0, 0], "{name}");
                }
                _ => {}
            }
        }
        // A frame truncated before the transport header loses more, but regains its length.
        for captured in 0..sample.transport_at {
            let (frame, alterations) = filled("zeros", &sample.frame, captured);
            let name = format!("{} {captured}", sample.name);
            assert_eq!(frame.len(), sample.frame.len());
            assert_eq!(count(&alterations, "truncated_in_headers"), 1, "{name}");
        }
    }
}

/// The random payload of a frame is reproducible and differs between frames.
#[test]
fn random_payload_depends_on_seed_and_frame() {
    let frame = udp((1, 2), &[0; 400]);
    let fill = |seed, number| {
        let mut alterations = Alterations::new(options(&format!("truncated=random seed={seed}")));
        let about = About {
            number,
            ..About::default()
        };
        let mut taken: Vec<u8> = Vec::new();
        let take = &mut |bytes: &[u8], _| taken.extend(bytes);
        alterations.apply(&frame[..60], frame.len() as u32, about, take);
        taken
    };
    assert_eq!(fill(1, 5), fill(1, 5));
    assert_ne!(fill(1, 5), fill(1, 6));
    assert_ne!(fill(1, 5), fill(2, 5));
}

/// The checksum of a fragmented datagram is unknown.
#[test]
fn fragments_keep_their_checksum() {
    for fragment in [0x2000, 0x2010, 0x0010] {
        let segment = transport(4, 17, (1, 2), 0, &[9; 800]);
        let ip = Ipv4 { fragment, ..PLAIN4 };
        let whole = ethernet(&[], 0x0800, &ip.packet(17, &segment));
        let (frame, alterations) = filled("zeros", &whole, 96);
        assert_eq!(frame[..96], whole[..96], "{fragment:x}");
        assert_eq!(frame.len(), whole.len());
        assert_eq!(count(&alterations, "checksums_unknown"), 1);
    }
}

/// Super-packets from the kernel may lack a length.
#[test]
fn lengths_are_repaired() {
    let mut frame = udp((1, 2), &[9; 800]);
    frame[16..18].fill(0);
    let (frame, _) = filled("zeros", &frame, 96);
    assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 828);
    assert!(holds(&frame) && frames::header_holds(&frame, 14));
    let segment = transport(6, 6, (1, 2), 0x10, &[9; 700]);
    let mut frame = ethernet(&[], 0x86dd, &ipv6(0, &[], 6, &segment));
    frame[18..20].copy_from_slice(&60_000u16.to_be_bytes());
    let (frame, _) = filled("zeros", &frame, 96);
    let said = u16::from_be_bytes([frame[18], frame[19]]);
    assert_eq!(usize::from(said), frame.len() - 54);
    assert!(holds(&frame));
    // Frame padding is not payload.
    let mut frame = udp((1, 2), &[]);
    frame.resize(60, 0);
    let (again, _) = filled("pattern:ff", &frame, 42);
    assert_eq!(again, frame);
}

/// The missing chunks of an SCTP packet are replaced by a padding chunk.
#[test]
fn sctp_chunks_are_completed() {
    let mut frame = [&sctp(40), &sctp(20)[46..]].concat();
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    longwire_packet::repair_checksums(&mut frame);
    for captured in [34 + 12, 34 + 16, 34 + 12 + 30, 34 + 12 + 56, 34 + 12 + 58] {
        let (filled, _) = filled("random", &frame, captured);
        assert!(holds(&filled), "{captured}");
        let mut chunk = 46;
        let mut kinds = Vec::new();
        while chunk < filled.len() {
            kinds.push(filled[chunk]);
            let len = usize::from(u16::from_be_bytes([filled[chunk + 2], filled[chunk + 3]]));
            chunk += len.next_multiple_of(4);
        }
        assert_eq!(chunk, filled.len(), "{captured}: {kinds:x?}");
        assert_eq!(kinds.last(), Some(&0x84), "{captured}");
    }
}

#[test]
fn truncated_frames_are_kept_or_skipped() {
    let frame = udp((1, 2), &[9; 800]);
    let (taken, mut alterations) = run("truncated=skip", &frame[..96], frame.len());
    assert!(taken.is_empty());
    assert_eq!(all_of(&mut alterations, &frame).len(), 1);
    assert_eq!(count(&alterations, "truncated_skipped"), 1);
    // Truncated frames that are kept are altered as far as captured.
    let wanted = "truncated=keep map=10.0.0.0/8=11.0.0.0/8";
    let (kept, _) = one(wanted, &frame[..96], frame.len());
    assert_eq!(kept, altered(wanted, &frame)[..96]);
}

/// A record with an impossible wire length is not extended to it.
#[test]
fn the_length_of_a_filled_frame_is_bounded() {
    let frame = udp((1, 2), &[9; 100]);
    let (taken, alterations) = one("", &frame, u32::MAX as usize);
    assert_eq!(taken, frame);
    assert_eq!(count(&alterations, "truncated_too_long"), 1);
}
