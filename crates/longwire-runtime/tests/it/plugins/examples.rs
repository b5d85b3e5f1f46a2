//! Tests the example plugins.

use longwire_engine::{DropReason, Verdict};

use crate::plugins::tools::{bounds, documented, link, offer, refusal, release};

/// Returns an IPv4 frame with this protocol.
fn ip_frame(protocol: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len];
    bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    bytes[23] = protocol;
    bytes
}

#[test]
fn data_loss_loses_what_matches_and_nothing_else() {
    let (mut link, faults) = link("loss=plugin:data_loss,offset=23,bytes=11", 1);
    for number in 0..1000u64 {
        let protocol = [6, 17, 1, 0x11, 0x12][number as usize % 5];
        let verdict = offer(&mut link, number * 1000, &ip_frame(protocol, 60));
        let expected = protocol == 17;
        assert_eq!(verdict == Verdict::Drop(DropReason::Content), expected);
    }
    // A frame too short for the offset cannot match.
    assert_eq!(release(offer(&mut link, 2_000_000, &[0x11; 23])), 2_000_000);
    let at_its_end = offer(&mut link, 2_000_000, &[0x11; 24]);
    assert_eq!(at_its_end, Verdict::Drop(DropReason::Content));
    assert_eq!(faults.first(), None);
}

#[test]
fn data_loss_loses_with_its_probability() {
    let lost = |seed| {
        let (mut link, faults) = link("loss=plugin:data_loss,offset=23,bytes=11,p=0.3", seed);
        let mut is_lost = |n| matches!(offer(&mut link, n, &ip_frame(17, 60)), Verdict::Drop(_));
        let lost: Vec<bool> = (0..20_000).map(&mut is_lost).collect();
        assert_eq!(faults.first(), None);
        lost
    };
    let first = lost(1);
    let count = first.iter().filter(|lost| **lost).count() as u64;
    assert!(bounds(20_000, 0.3).contains(&count), "{count} of 20000");
    assert_eq!(lost(1), first);
    assert_ne!(lost(2), first);
}

#[test]
fn data_loss_refuses_what_is_no_bytes() {
    for wrong in ["1", "0x11", "zz", "1G", &"00".repeat(65)] {
        let message = refusal("loss", &format!("plugin:data_loss,bytes={wrong}"));
        assert!(message.contains("in hexadecimal"), "{message}");
    }
}

/// Returns the departure of `bits` on a slotted channel that is free at `from`, by trying one slot
/// after another.
fn slotted(from: u64, bits: u64, (period, slot, offset): (u64, u64, u64)) -> u64 {
    let need = (bits * 1_000_000_000).div_ceil(10_000_000);
    let mut begins = offset;
    loop {
        let start = from.max(begins);
        if start + need <= begins + slot {
            return start + need;
        }
        begins += period;
    }
}

#[test]
fn tdm_departs_in_slots_only() {
    let shape = (1_000_000, 300_000, 70_000);
    let line = "rate=plugin:tdm,rate=10mbit,period=1ms,slot=300us,offset=70us queue=unlimited";
    let (mut link, faults) = link(line, 1);
    let (mut arrival, mut free) = (0u64, 0u64);
    for number in 0..20_000u64 {
        // The channel alternates between idle and backlogged, with frames of 60 to 359 bytes.
        arrival += [0, 10_000, 650_000, 1_900_000][(number * number % 11 % 4) as usize];
        let len = 60 + (number * 37 % 300) as usize;
        let departure = release(offer(&mut link, arrival, &vec![0; len]));
        free = slotted(arrival.max(free), len as u64 * 8, shape);
        assert_eq!(departure, free, "frame {number} at {arrival}");
    }
    assert_eq!(faults.first(), None);
}

#[test]
fn a_frame_too_long_for_any_slot_ends_the_run_with_its_message() {
    let (mut link, faults) = link("rate=plugin:tdm,rate=10mbit,period=1ms,slot=300us", 1);
    offer(&mut link, 0, &[0; 375]);
    assert_eq!(faults.first(), None);
    offer(&mut link, 0, &[0; 376]);
    let message = faults.first().unwrap();
    let expected = "depart: a frame of 376 bytes takes 300800 ns, longer than a slot of 300000 ns";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn the_plugin_of_the_page_does_what_the_page_says() {
    let file = documented();
    let (mut link, faults) = link(&format!("loss=plugin:file={file},every=100,length=3"), 1);
    let lost = |number| matches!(offer(&mut link, number, &[0; 60]), Verdict::Drop(_));
    let fates: Vec<bool> = (0..100_000).map(lost).collect();
    assert_eq!(faults.first(), None);
    // Losses come in bursts of three. Two bursts may be adjacent, and the last may be truncated.
    let runs: Vec<&[bool]> = fates.chunk_by(|a, b| a == b).filter(|run| run[0]).collect();
    let whole = &runs[..runs.len() - 1];
    assert!(whole.iter().all(|run| run.len() % 3 == 0));
    // Each frame outside a burst begins one with probability 1 %.
    let bursts = whole.iter().map(|run| run.len() as u64 / 3).sum::<u64>();
    let chances = fates.iter().filter(|lost| !**lost).count() as u64 + bursts;
    let is_likely = bounds(chances, 0.01).contains(&bursts);
    assert!(is_likely, "{bursts} of {chances}");
    let refused = |parameters| refusal("loss", &format!("plugin:file={file},{parameters}"));
    let message = refused("evry=100");
    assert!(message.contains("missing parameter every="), "{message}");
    let message = refused("every=9,evry=100");
    let said = "unknown parameter 'evry'; parameters are every, length";
    assert!(message.ends_with(said), "{message}");
}
