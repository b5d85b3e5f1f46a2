//! Arbitrary frames: parsing headers, completing checksums and segmenting super-packets never
//! panics, and the segments contain the whole payload.
//!
//! The input is a virtio-net header followed by a frame.

use longwire_io::port::offload::{
    Headers, Offload, Segments, Splitter, cut, finish_checksum, finish_if_partial,
};
use longwire_io::port::vnet::{self, Decoded};
use longwire_packet::flow_hash::flow_hash;
use longwire_packet::frame::mac_header_len;

/// Maximum number of segments to check individually. More would be slow and cover nothing new.
const SEGMENTS_MAX: usize = 64;

/// Checks every function that parses a frame.
pub fn check(data: &[u8]) {
    let (header, frame) = data.split_at(data.len().min(vnet::LEN));
    check_headers(frame);
    check_partial(frame);
    let frame = &mut frame.to_vec()[..];
    let offload = match vnet::decode(header, frame) {
        Some(Decoded::Plain(offload)) => offload,
        Some(Decoded::Tunnelled(segments)) => return check_split(frame, segments),
        None => return,
    };
    let again = vnet::decode(&vnet::encode(offload), frame);
    assert_eq!(again, Some(Decoded::Plain(offload)), "encoded again");
    if let Some(checksum) = offload.checksum {
        let finished = finish_checksum(&mut frame.to_vec(), checksum);
        assert!(finished, "a decoded checksum lies in the frame");
    }
    if let Some(segments) = offload.segments {
        check_segments(frame, segments);
    }
}

/// Splits a tunnelled super-packet into pieces that contain its wire frames.
fn check_split(frame: &[u8], segments: Segments) {
    let lens: Vec<usize> = segments.wire_frames(frame.len()).collect();
    if lens.len() > SEGMENTS_MAX {
        return;
    }
    let mut splitter = Splitter::of_tunnelled(frame, segments).expect("it was decoded");
    let mut found = Vec::new();
    let mut piece = Vec::new();
    while !splitter.is_done() {
        let offload = splitter.next(frame, &mut piece).expect("a piece");
        check_headers(&piece);
        match offload.segments {
            Some(datagrams) => found.extend(datagrams.wire_frames(piece.len())),
            None => found.push(piece.len()),
        }
    }
    assert_eq!(found, lens, "no byte is lost or doubled");
}

fn check_headers(frame: &[u8]) {
    let mac_len = mac_header_len(frame);
    assert!([14, 18, 22, 26, 30].contains(&mac_len), "{mac_len}");
    flow_hash(frame, 1);
    let Some(headers) = Headers::parse(frame) else {
        return;
    };
    assert_eq!(headers.ip.at, mac_len as usize);
    assert!(headers.ip.at < headers.transport_at());
    assert!(headers.transport_at() < headers.payload_at);
    assert!(headers.payload_at <= headers.ip.end && headers.ip.end <= frame.len());
    assert!(headers.checksum_at() + 2 <= headers.payload_at);
}

fn check_partial(frame: &[u8]) {
    let mut once = frame.to_vec();
    let finished = finish_if_partial(&mut once);
    assert!(finished || once == frame, "an untouched frame changed");
    let mut twice = once.clone();
    finish_if_partial(&mut twice);
    assert_eq!(twice, once, "finishing twice is finishing once");
}

fn check_segments(frame: &[u8], segments: Segments) {
    let lens: Vec<usize> = segments.wire_frames(frame.len()).collect();
    let header_len = usize::from(segments.header_len);
    let payload: usize = lens.iter().map(|len| len - header_len).sum();
    let total = header_len + payload;
    assert_eq!(total, frame.len(), "no byte is lost or doubled");
    if lens.len() > SEGMENTS_MAX {
        return;
    }
    let singles: Vec<Vec<u8>> = (0..lens.len())
        .map(|n| {
            let (single, offload) = piece(frame, segments, n, n + 1);
            assert_eq!(offload, Offload::NONE);
            assert_eq!(single.len(), lens[n]);
            check_headers(&single);
            single
        })
        .collect();
    let beyond = cut(frame, segments, 0..lens.len() + 1, &mut Vec::new());
    assert_eq!(beyond, None);
    // Segmenting a part yields the same segments as segmenting the whole.
    let (from, to) = (lens.len() / 3, lens.len());
    let (part, _) = piece(frame, segments, from, to);
    if to - from > 1 {
        for (n, expected) in singles[from..].iter().enumerate() {
            let (single, _) = piece(&part, segments, n, n + 1);
            assert_eq!(single, *expected, "segment {n} of those from {from}");
        }
    }
}

fn piece(frame: &[u8], segments: Segments, from: usize, to: usize) -> (Vec<u8>, Offload) {
    let mut out = Vec::new();
    let offload = cut(frame, segments, from..to, &mut out);
    (out, offload.expect("a decoded super-packet can be cut"))
}
