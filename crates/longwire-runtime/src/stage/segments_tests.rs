//! Tests cutting buffers according to the link's decisions.

use longwire_io::port::offload::{Checksum, SegmentKind, Segments};

use super::*;

pub const HEADERS: usize = 14 + 20 + 20;
pub const PAYLOAD: usize = 100;

/// Returns a TCP super-packet with full segments. All bytes in segment `n` are `n`.
pub fn super_packet(segments: usize) -> (Vec<u8>, Offload) {
    let mut frame = vec![0u8; HEADERS];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    let total = (HEADERS - 14 + segments * PAYLOAD) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[22] = 64;
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34 + 12] = 0x50;
    for segment in 0..segments {
        frame.extend(std::iter::repeat_n(segment as u8, PAYLOAD));
    }
    let offload = Offload {
        checksum: Some(Checksum {
            start: 34,
            offset: 16,
        }),
        segments: Some(Segments {
            kind: SegmentKind::TcpV4,
            header_len: HEADERS as u16,
            payload_len: PAYLOAD as u16,
            cwr_once: false,
        }),
    };
    (frame, offload)
}

/// Cuts a super-packet according to these decisions. Returns each buffer's release, wire frames,
/// and segments by their bytes.
fn cut(decisions: &[Option<u64>], form: CutForm) -> Vec<(u64, u64, Vec<u8>)> {
    let (frame, offload) = super_packet(decisions.len());
    let mut piece = Vec::new();
    let mut cutter = Cutter::new(1, &frame, offload, &mut piece);
    let mut runs = Vec::new();
    for decision in decisions {
        let len = cutter.next_wire_len().expect("a wire frame for a decision");
        assert_eq!(len as usize, HEADERS + PAYLOAD);
        runs.extend(cutter.decided(decision.map(Nanos::from_nanos)));
    }
    assert_eq!(cutter.next_wire_len(), None);
    runs.extend(cutter.last_run());
    let mut buffers = Vec::new();
    for run in runs {
        let unmade = cutter.cut(run, form, |cut| {
            let wire_frames = cut.wire_frames;
            assert_eq!(cut.offload.segments.is_some(), wire_frames > 1);
            let mut carried = cut.bytes[HEADERS..].to_vec();
            carried.dedup();
            buffers.push((run.release.as_nanos(), wire_frames, carried));
        });
        assert_eq!(unmade, 0);
    }
    buffers
}

#[test]
fn only_frames_that_leave_together_stay_together() {
    use CutForm::{Finished, Trains};
    for (decisions, form, expected) in [
        (
            &[Some(5), Some(5), Some(5)][..],
            Trains,
            vec![(5, 3, vec![0, 1, 2])],
        ),
        (
            &[Some(1), Some(2), Some(2), Some(3)],
            Trains,
            vec![(1, 1, vec![0]), (2, 2, vec![1, 2]), (3, 1, vec![3])],
        ),
        (
            &[None, Some(7), None, Some(7), Some(7), None],
            Trains,
            vec![(7, 1, vec![1]), (7, 2, vec![3, 4])],
        ),
        (&[None, None], Trains, vec![]),
        (
            &[Some(4), Some(4), None, Some(4)],
            Finished,
            vec![(4, 1, vec![0]), (4, 1, vec![1]), (4, 1, vec![3])],
        ),
    ] {
        assert_eq!(cut(decisions, form), expected, "{decisions:?}");
    }
}

#[test]
fn an_unfinished_checksum_is_finished_for_a_port_without_offloads() {
    let (mut frame, mut offload) = super_packet(1);
    offload.segments = None;
    // The pseudo-header sum, as senders leave it.
    let transport_len = (frame.len() - 34) as u32;
    let sum = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + transport_len;
    let folded = ((sum & 0xffff) + (sum >> 16)) as u16;
    frame[50..52].copy_from_slice(&folded.to_be_bytes());
    let mut piece = Vec::new();
    let mut cutter = Cutter::new(1, &frame, offload, &mut piece);
    assert_eq!(cutter.next_wire_len(), Some(frame.len() as u32));
    assert_eq!(cutter.decided(Some(Nanos::ZERO)), None);
    assert_eq!(cutter.next_wire_len(), None);
    let run = cutter.last_run().expect("one run");
    let unmade = cutter.cut(run, CutForm::Finished, |cut| {
        assert_eq!((cut.offload, cut.wire_frames), (Offload::NONE, 1));
        let words = cut.bytes[34..].chunks(2);
        let total: u32 = words
            .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
            .sum();
        let total = total + 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + transport_len;
        let once = (total & 0xffff) + (total >> 16);
        assert_eq!(
            (once & 0xffff) + (once >> 16),
            0xffff,
            "the checksum is right"
        );
    });
    assert_eq!(unmade, 0);
}

#[test]
fn frames_that_cannot_be_cut_are_counted() {
    let (mut frame, offload) = super_packet(5);
    // A fragment cannot be segmented.
    frame[20] = 0x20;
    for form in [CutForm::Trains, CutForm::Unfinished, CutForm::Finished] {
        let mut piece = Vec::new();
        let mut cutter = Cutter::new(1, &frame, offload, &mut piece);
        let mut runs = Vec::new();
        for release in [Some(1), None, Some(2), Some(2), Some(2)] {
            assert!(cutter.next_wire_len().is_some());
            runs.extend(cutter.decided(release.map(Nanos::from_nanos)));
        }
        runs.extend(cutter.last_run());
        let unmade: u64 = runs
            .into_iter()
            .map(|run| cutter.cut(run, form, |_| panic!("made of a fragment")))
            .sum();
        assert_eq!(unmade, 4, "{form:?}");
    }
}

#[test]
fn frames_to_record_equal_the_cut_ones() {
    let (frame, offload) = super_packet(4);
    let mut piece = Vec::new();
    let mut cutter = Cutter::new(1, &frame, offload, &mut piece);
    let mut recorded = Vec::new();
    while cutter.next_wire_len().is_some() {
        recorded.extend(cutter.next_finished().map(<[u8]>::to_vec));
        cutter.decided(Some(Nanos::ZERO));
    }
    let run = cutter.last_run().expect("one run");
    let mut cut = Vec::new();
    let unmade = cutter.cut(run, CutForm::Finished, |frame| {
        assert_eq!(frame.offload, Offload::NONE);
        cut.push(frame.bytes.to_vec());
    });
    assert_eq!((unmade, recorded.len()), (0, 4));
    assert_eq!(recorded, cut);
}
