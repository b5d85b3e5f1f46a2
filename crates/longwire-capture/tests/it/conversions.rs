//! PPP, Cisco HDLC and IEEE 802.11 frames converted to Ethernet, and records that cannot be
//! converted.

use crate::common::captures::Builder;
use crate::common::{left_out, read_whole};
use crate::cooked::{Pairs, RECEIVER, check, ethernet, pair, v4, v6};
use longwire_capture::LeftOut;

fn joined(head: &[u8], payload: &[u8]) -> Vec<u8> {
    [head, payload].concat()
}

#[test]
fn ppp_gets_a_header() {
    let packet = v4([10, 0, 0, 2]);
    let labels = joined(&[0, 1, 0x11, 64], &packet);
    // The address and control fields and the protocol's upper byte are optional.
    let bare: Pairs = vec![
        pair(&[0xff, 3, 0, 0x21], RECEIVER, 0x0800, &packet),
        pair(&[0xff, 3, 0x21], RECEIVER, 0x0800, &packet),
        pair(&[0, 0x21], RECEIVER, 0x0800, &packet),
        pair(&[0x21], RECEIVER, 0x0800, &packet),
        pair(&[0xff, 3, 0, 0x57], RECEIVER, 0x86dd, &v6(false)),
        pair(&[2, 0x81], RECEIVER, 0x8847, &labels),
        // Not convertible: link control, IP control, compressed TCP, no protocol, and an empty
        // frame.
        (vec![0xff, 3, 0xc0, 0x21, 1, 1, 0, 4], None),
        (vec![0x80, 0x21, 1, 1, 0, 4], None),
        (vec![0xff, 3, 0, 0x2d, 1], None),
        (vec![0xff, 3], None),
        (vec![], None),
    ];
    for link_type in [9, 50] {
        let counts = check(link_type, &bare);
        assert_eq!(counts.ppp, 6);
        let expected = [(LeftOut::CutHeader, 2), (LeftOut::Protocol, 3)];
        assert_eq!(left_out(&counts), expected);
    }
    let bare = bare.into_iter();
    let directed = bare.map(|(frame, carried)| (joined(&[1], &frame), carried));
    let directed: Pairs = directed.collect();
    for link_type in [166, 204] {
        assert_eq!(check(link_type, &directed).ppp, 6);
    }
    let session = joined(&[0x11, 0, 0, 7, 0, 30, 0, 0x21], &packet);
    let discovery = vec![0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0];
    let frames = vec![
        pair(&[], RECEIVER, 0x8864, &session),
        pair(&[], RECEIVER, 0x8863, &discovery),
        (vec![0x11, 0, 0], None),
    ];
    assert_eq!(check(51, &frames).ppp, 2);
}

#[test]
fn cisco_hdlc_gets_a_header() {
    let packet = v4([239, 129, 2, 3]);
    let group = [1, 0, 0x5e, 1, 2, 3];
    let frames = vec![
        pair(&[0x0f, 0, 8, 0], group, 0x0800, &packet),
        pair(&[0x8f, 0, 0x86, 0xdd], RECEIVER, 0x86dd, &v6(false)),
        // Not convertible: keepalives, discovery, ISO, and a truncated header.
        (vec![0x8f, 0, 0x80, 0x35, 0, 0, 0, 2], None),
        (vec![0x8f, 0, 0x20, 0, 1, 180], None),
        (vec![0x0f, 0, 0xfe, 0xfe, 3, 0x83], None),
        (vec![0x0f, 0, 8], None),
    ];
    // LINKTYPE_PPP_HDLC (50) also covers Cisco HDLC.
    for link_type in [104, 50] {
        let counts = check(link_type, &frames);
        assert_eq!(counts.cisco_hdlc + counts.ppp, 2);
        let expected = [(LeftOut::CutHeader, 1), (LeftOut::Protocol, 3)];
        assert_eq!(left_out(&counts), expected);
    }
}

const FIRST: [u8; 6] = [2, 0, 0, 0, 0, 0x11];
const SECOND: [u8; 6] = [2, 0, 0, 0, 0, 0x22];
const THIRD: [u8; 6] = [2, 0, 0, 0, 0, 0x33];
const FOURTH: [u8; 6] = [2, 0, 0, 0, 0, 0x44];
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Returns an IEEE 802.11 frame with these first bytes, and with `more` after its addresses.
fn wireless(first: u8, flags: u8, more: &[u8], payload: &[u8]) -> Vec<u8> {
    let addresses = [FIRST, SECOND, THIRD].concat();
    let head = [&[first, flags, 0, 0], &addresses[..], &[0x10, 0]];
    [&head.concat()[..], more, payload].concat()
}

/// Returns an IPv4 packet after LLC and SNAP.
fn snap() -> Vec<u8> {
    [&SNAP[..], &[8, 0], &v4([10, 0, 0, 2])].concat()
}

fn carried(receiver: [u8; 6], sender: [u8; 6]) -> Option<Vec<u8>> {
    Some(ethernet(receiver, sender, 0x0800, &v4([10, 0, 0, 2])))
}

#[test]
fn wireless_data_gets_a_header() {
    let llc = [0x42; 38];
    let bridged = joined(&[0xaa, 0xaa, 3, 0, 0, 0xf8, 0x81, 0x37], &llc);
    let control = [0, 0, 1, 2, 3, 4];
    let frames = vec![
        // Between stations, to an access point, from an access point, and between access points.
        (wireless(8, 0, &[], &snap()), carried(FIRST, SECOND)),
        (wireless(8, 1, &[], &snap()), carried(THIRD, SECOND)),
        (wireless(8, 2, &[], &snap()), carried(FIRST, THIRD)),
        (wireless(8, 3, &FOURTH, &snap()), carried(THIRD, FOURTH)),
        // With QoS control, and with both QoS control and HT control.
        (wireless(0x88, 1, &[0, 0], &snap()), carried(THIRD, SECOND)),
        (
            wireless(0x88, 0x81, &control, &snap()),
            carried(THIRD, SECOND),
        ),
        (
            wireless(0x88, 2, &[0, 0], &bridged),
            Some(ethernet(FIRST, THIRD, 0x8137, &llc)),
        ),
    ];
    assert_eq!(check(105, &frames).wireless, 7);
    let fragment = [&wireless(8, 0, &[], &[])[..22], &[1, 0], &snap()].concat();
    let frames = vec![
        // A beacon, an acknowledgement, null frames without and with QoS, and an encrypted frame.
        (wireless(0x80, 0, &[], &[0; 40]), None),
        (vec![0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1], None),
        (wireless(0x48, 1, &[], &[]), None),
        (wireless(0xc8, 1, &[0, 0], &[]), None),
        (wireless(0x88, 0x41, &[0, 0], &snap()), None),
        // The first fragment, a later one, and an aggregate.
        (wireless(8, 4, &[], &snap()), None),
        (fragment, None),
        (wireless(0x88, 1, &[0x80, 0], &snap()), None),
        // Truncated within the addresses, within QoS control, and within LLC.
        (wireless(8, 1, &[], &[])[..20].to_vec(), None),
        (wireless(0x88, 1, &[], &[]), None),
        (wireless(8, 1, &[], &[0xaa, 0xaa]), None),
    ];
    let expected = [
        (LeftOut::CutHeader, 3),
        (LeftOut::WirelessControl, 2),
        (LeftOut::WirelessEmpty, 2),
        (LeftOut::WirelessEncrypted, 1),
        (LeftOut::WirelessPart, 3),
    ];
    assert_eq!(left_out(&check(105, &frames)), expected);
}

/// Bytes and wire length of a frame, and the skipped records.
type Outcome = (Option<(Vec<u8>, u32)>, Vec<(LeftOut, u64)>);

/// Reads one frame of this link type that was captured as a whole.
fn one(link_type: u32, frame: &[u8]) -> Outcome {
    let mut file = Builder::pcap(false, 0xa1b2_c3d4, 0, link_type);
    file.record(1, 0, frame, frame.len() as u32);
    let (mut frames, counts) = read_whole(&file.bytes, false);
    let found = frames.pop().map(|(_, bytes, wire_len)| (bytes, wire_len));
    (found, left_out(&counts))
}

fn radiotap(fields: u32, body: &[u8]) -> Vec<u8> {
    let len = 8 + body.len() as u16;
    [&[0, 0][..], &len.to_le_bytes(), &fields.to_le_bytes(), body].concat()
}

#[test]
fn the_headers_of_wireless_drivers_are_taken_off() {
    let inner = wireless(8, 1, &[], &snap());
    let expected = carried(THIRD, SECOND).expect("a frame");
    let whole = |len: u32| (Some((expected.clone(), len)), vec![]);
    let lost = |reason| (None, vec![(reason, 1)]);
    let len = expected.len() as u32;
    let prism = |big: bool, code: u32| {
        let mut head = Builder::new(big);
        head.u32(code).u32(144).raw(&[0; 136]);
        head.bytes
    };
    let mut avs = Builder::new(true);
    avs.u32(0x8021_1001).u32(64).raw(&[0; 56]);
    let mut common = Builder::new(false);
    common.raw(&[0, 0]).u16(8 + 4 + 20).u32(105).u16(2).u16(20);
    let ppi = |flags: u16| {
        let mut head = common.clone();
        head.raw(&[0; 8]).u16(flags).raw(&[0; 10]);
        head.bytes
    };
    // Radiotap without fields, with flags alone, with flags after a timestamp, and with a second
    // word of field bits; then Prism, AVS and PPI.
    let stamp = [&[7; 8][..], &[0]].concat();
    let words = [&2u32.to_le_bytes()[..], &[0; 4], &[7; 8], &[0]].concat();
    for (link_type, head) in [
        (105, vec![]),
        (127, radiotap(0, &[])),
        (127, radiotap(2, &[0])),
        (127, radiotap(3, &stamp)),
        (127, radiotap(3 | 1 << 31, &words)),
        (119, prism(false, 0x44)),
        (119, prism(true, 0x41)),
        (119, avs.bytes.clone()),
        (163, avs.bytes.clone()),
        (192, ppi(0)),
    ] {
        let found = one(link_type, &joined(&head, &inner));
        assert_eq!(found, whole(len), "{link_type}");
        for end in 0..head.len() {
            let found = one(link_type, &head[..end]);
            assert_eq!(found, lost(LeftOut::CutHeader), "{link_type}");
        }
    }
    // An FCS is not part of the frame, and a frame with an incorrect FCS is skipped.
    let checked = joined(&inner, &[1, 2, 3, 4]);
    for head in [(127, radiotap(2, &[0x10])), (192, ppi(1))] {
        assert_eq!(one(head.0, &joined(&head.1, &checked)), whole(len));
    }
    for head in [(127, radiotap(2, &[0x50])), (192, ppi(5))] {
        let found = one(head.0, &joined(&head.1, &checked));
        assert_eq!(found, lost(LeftOut::WirelessDamaged));
    }
    // A header of 26 bytes is padded to 28.
    let padded = wireless(0x88, 1, &[0, 0, 9, 9], &snap());
    let padded = joined(&radiotap(2, &[0x20]), &padded);
    assert_eq!(one(127, &padded), whole(len));
    let other = [&[0, 0, 8, 0][..], &195u32.to_le_bytes(), &inner].concat();
    assert_eq!(one(192, &other).1, [(LeftOut::LinkType(195), 1)]);
}

#[test]
fn wireless_frames_without_an_ethertype_keep_their_length() {
    let llc = [&[0x42, 0x42, 3][..], &[0; 35]].concat();
    let frame = wireless(8, 2, &[], &llc);
    let expected = ethernet(FIRST, THIRD, 38, &llc);
    assert_eq!(one(105, &frame).0, Some((expected.clone(), 52)));
    let checked = [&radiotap(2, &[0x10])[..], &frame, &[1, 2, 3, 4]].concat();
    assert_eq!(one(127, &checked).0, Some((expected, 52)));
    // An Ethernet length field is at most 1,500.
    let long = wireless(8, 2, &[], &[0x42; 1501]);
    assert_eq!(one(105, &long).1, [(LeftOut::Protocol, 1)]);
}
