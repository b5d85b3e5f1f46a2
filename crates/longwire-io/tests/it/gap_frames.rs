//! Gap frames on the in-memory wire, as seen by the device at its other end, byte time by byte
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::{BitRate, Nanos};
use longwire_io::port::gap::{
    FillStep, GapFiller, GapTx, Tally, frame_bytes, frame_check_sequence, wire_bytes,
};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_testbed::support::gap_wire::{Card, PREAMBLE, WireReceiver, spacing_error};
use longwire_units::random::Stream;
use proptest::prelude::*;

use crate::common::pair::Pair;

const TEN_GIGABIT: u64 = 10_000_000_000;

fn rate(bits: u64) -> BitRate {
    BitRate::from_bits_per_sec(bits).expect("a rate")
}

/// Returns a frame that contains its number.
fn frame(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; len];
    bytes[..14].fill(2);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    if len >= 18 {
        bytes[14..18].copy_from_slice(&(number as u32).to_be_bytes());
    }
    bytes
}

/// Sends frames and returns the wire with everything that it carried.
fn carry(frames: &[(Nanos, Vec<u8>)], bits: u64) -> (WireReceiver, Tally) {
    let mut tx = GapTx::new(Card::default(), "mem".to_owned(), rate(bits));
    for (release, bytes) in frames {
        let outgoing = TxFrame::whole(bytes, *release);
        assert_eq!(tx.push(outgoing), PushResult::Taken);
    }
    assert_eq!(tx.unsent(), frames.len());
    assert_eq!(tx.flush().unwrap(), frames.len());
    let tally = tx.tally();
    (tx.into_line().wire, tally)
}

/// Checks that every frame arrived, in order and unchanged, on a wire that was never idle, and that
/// every filler was discarded.
fn assert_carried(frames: &[(Nanos, Vec<u8>)], wire: &WireReceiver, fillers: u64) {
    assert_eq!(wire.frames.len(), frames.len());
    for (seen, (_, sent)) in wire.frames.iter().zip(frames) {
        assert_eq!(seen.bytes[..sent.len()], sent[..]);
        assert!(seen.bytes[sent.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(seen.bytes.len(), sent.len().max(60));
    }
    assert_eq!((wire.bad, wire.malformed, wire.idle), (fillers, 0, 0));
}

/// Returns frames separated by gaps of these byte times, or slightly more.
fn spaced(gaps: &[(u64, usize)], bits: u64) -> Vec<(Nanos, Vec<u8>)> {
    let mut free = 0u64;
    let mut frames = Vec::new();
    for (number, (gap, len)) in gaps.iter().enumerate() {
        let end = free + gap + frame_bytes(*len as u32);
        // The release is rounded up by less than a nanosecond.
        let release = (u128::from(end) * 8_000_000_000).div_ceil(u128::from(bits)) as u64;
        frames.push((Nanos::from_nanos(release), frame(number, *len)));
        let end = (u128::from(release) * u128::from(bits)).div_ceil(8_000_000_000);
        free = end as u64 + wire_bytes(0) - frame_bytes(0);
    }
    frames
}

fn releases(frames: &[(Nanos, Vec<u8>)]) -> Vec<Nanos> {
    frames.iter().map(|(release, _)| *release).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// If a filler fits in each gap, spacing is exact to a byte time, for all rates and lengths.
    #[test]
    fn spacing_is_exact_to_a_byte_time(
        gaps in prop::collection::vec((84u64..6_000, 14usize..=1514), 1..60),
        bits in prop::sample::select(vec![
            TEN_GIGABIT, 1_000_000_000, 2_500_000_000, 9_999_999_967, 25_000_000_000,
        ]),
    ) {
        let frames = spaced(&gaps, bits);
        let (wire, tally) = carry(&frames, bits);
        assert_carried(&frames, &wire, tally.fillers);
        let error = spacing_error(&wire.frames, &releases(&frames), rate(bits));
        prop_assert!(error < 1.0, "{error} byte times");
        prop_assert_eq!((tally.moved, tally.waited, tally.late), (0, 0, 0));
    }

    /// With gaps too short for a filler, a frame is off by at most half a filler, and errors never
    /// accumulate.
    #[test]
    fn short_gaps_cost_half_a_filler_and_no_more(
        gaps in prop::collection::vec((0u64..200, 14usize..=1514), 1..200),
    ) {
        let frames = spaced(&gaps, TEN_GIGABIT);
        let (wire, tally) = carry(&frames, TEN_GIGABIT);
        assert_carried(&frames, &wire, tally.fillers);
        let first = frames[0].0;
        let lead = i128::from(wire.frames[0].end());
        for (seen, (release, _)) in wire.frames.iter().zip(&frames) {
            let since = i128::from(release.as_nanos() - first.as_nanos());
            let off = (i128::from(seen.end()) - lead) * 8_000_000_000 - since * 10_000_000_000;
            prop_assert!(off.abs() <= 43 * 8_000_000_000, "{off} billionths of a bit");
        }
        prop_assert!(tally.moved_max <= 42);
        prop_assert_eq!((tally.waited, tally.late), (0, 0));
    }

    /// Above the wire's rate, frames follow one another like those of a queue served at that rate.
    #[test]
    fn a_wire_that_is_too_slow_queues(
        gaps in prop::collection::vec((0u64..900, 14usize..=1514), 1..200),
    ) {
        let mut at = 0;
        let frames: Vec<_> = gaps.iter().enumerate().map(|(number, (gap, len))| {
            at += gap;
            (Nanos::from_nanos(at), frame(number, *len))
        }).collect();
        let (wire, tally) = carry(&frames, TEN_GIGABIT);
        assert_carried(&frames, &wire, tally.fillers);
        prop_assert_eq!(tally.late, 0);
        // The oracle: each frame ends at its release, or directly follows the previous frame. The
        // wire's time starts at the first release, ahead of the first frame's end by 200 us and the
        // duration of two maximum-length frames.
        let byte_times = |nanos: u64| (nanos * 10).div_ceil(8);
        let (mut free, mut waited) = (0, 0);
        let origin = frames[0].0.as_nanos();
        for (seen, (release, bytes)) in wire.frames.iter().zip(&frames) {
            let lead = 200_000 + 2 * 1538 * 4 / 5;
            let end = byte_times(release.as_nanos() - origin + lead);
            let wanted = end - frame_bytes(bytes.len() as u32);
            let possible = wanted.max(free);
            waited += u64::from(free > wanted);
            prop_assert!(seen.at.abs_diff(possible) <= 42, "{} for {possible}", seen.at);
            free = possible + wire_bytes(bytes.len() as u32);
        }
        prop_assert_eq!(tally.waited, waited);
    }
}

#[test]
fn a_rate_between_two_gaps_is_kept_on_average() {
    // With 20 byte times between long frames, no filler fits into a single gap, and at most every
    // fourth gap needs one.
    let period = 1538 + 20;
    let count = 10_000u64;
    let release = |number: u64| Nanos::from_nanos((number * period * 4).div_ceil(5));
    let frames: Vec<_> = (0..count)
        .map(|n| (release(n), frame(n as usize, 1514)))
        .collect();
    let (wire, tally) = carry(&frames, TEN_GIGABIT);
    assert_carried(&frames, &wire, tally.fillers);
    let seen = &wire.frames;
    let took = seen[count as usize - 1].at - seen[0].at;
    let expected = (count - 1) * period;
    // After 8 million byte times, the error is below one filler.
    assert!(took.abs_diff(expected) <= 84, "{took} for {expected}");
    let fillers = tally.fillers;
    assert!((1..count / 3).contains(&fillers), "{fillers} fillers");
}

#[test]
fn an_idle_wire_keeps_every_gap_possible() {
    // The wire is filled in advance. A frame that becomes known at the last permitted moment still
    // leaves on time, for every gap.
    for (step, len) in (0..2_000u64).zip((14..=1514).cycle()) {
        let mut filler = GapFiller::new(rate(TEN_GIGABIT), Nanos::ZERO);
        let until = Nanos::from_nanos(20_000 + step);
        let end = (until.as_nanos() * 10).div_ceil(8);
        let mut sent = 0;
        while let Some(len) = filler.idle(until, 1514) {
            sent += wire_bytes(len);
        }
        // The wire is filled as far as permitted, to within one longest filler.
        let reach = end - frame_bytes(1514) - wire_bytes(60);
        assert!((reach - 1537..=reach).contains(&sent), "{sent} of {reach}");
        let placement = loop {
            match filler.step(until, len) {
                FillStep::Filler(len) => sent += wire_bytes(len),
                FillStep::Frame(placement) => break placement,
            }
        };
        assert_eq!(placement.at, sent);
        assert_eq!(placement.at, placement.wanted);
        assert_eq!(placement.at + frame_bytes(len), end);
    }
}

#[test]
fn late_frames_and_idle_wires_are_counted() {
    let mut filler = GapFiller::new(rate(TEN_GIGABIT), Nanos::ZERO);
    while filler.idle(Nanos::from_micros(50), 60).is_some() {}
    let FillStep::Frame(placement) = filler.step(Nanos::from_micros(10), 60) else {
        panic!("expected the late frame, not a filler");
    };
    assert!(placement.at > placement.wanted + 42);
    assert_eq!(filler.tally().late, 1);
    assert_eq!(filler.tally().ran_dry, 0);
    filler.sync_clock(Nanos::from_micros(100));
    assert_eq!(filler.tally().ran_dry, 1);
    // The wire continues at that time, and later frames are on time.
    let release = Nanos::from_nanos(100_000 + 72 * 4 / 5);
    let FillStep::Frame(placement) = filler.step(release, 60) else {
        panic!("expected the frame, not a filler");
    };
    assert_eq!(placement.wanted, 125_000);
    assert_eq!(placement.at, 125_000);
}

#[test]
fn the_receiver_accepts_only_undamaged_frames() {
    let good = frame(7, 60);
    let check = frame_check_sequence(&good);
    // The standard's own check value for the polynomial.
    let known = 0xcbf4_3926u32.to_le_bytes();
    assert_eq!(frame_check_sequence(b"123456789"), known);
    let mut receiver = WireReceiver::default();
    let mut send = |bytes: &[u8], from: usize, gap: usize| {
        receiver.receive(&PREAMBLE[from..], bytes, gap);
    };
    let whole = [&good[..], &check].concat();
    send(&whole, 0, 12);
    // Any single inverted bit is detected.
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        send(&damaged, 0, 12);
    }
    send(&whole[..63], 0, 12);
    send(&whole, 1, 20);
    send(&whole, 0, 12);
    assert_eq!((receiver.malformed, receiver.idle), (2, 8));
    assert_eq!(receiver.bad, whole.len() as u64 * 8);
    let frames = &receiver.frames;
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].at, &frames[0].bytes), (0, &good));
    let before = (whole.len() as u64 * 8 + 1) * 84 + 83 + 91;
    assert_eq!(frames[1].at, before);
}

/// Drives a port as the egress stage does: every 1 to 5 us, pushes due frames, keeps the wire busy
/// and flushes. `pause` is the time and duration of a longer iteration, in nanoseconds. At the end,
/// all pushed frames have left.
fn drive(releases: &[Nanos], pause: Option<(u64, u64)>) -> (WireReceiver, Tally) {
    let clock = Arc::new(AtomicU64::new(0));
    let now = || clock.load(Ordering::Relaxed);
    let card = Card::new(Some(Arc::clone(&clock)));
    let mut tx = GapTx::new(card, "card".to_owned(), rate(TEN_GIGABIT));
    let mut stream = Stream::of_seed(3);
    let (mut next, mut left) = (0, 0);
    let last = releases.last().unwrap().as_nanos() + 1_000_000;
    while now() < last {
        assert!(tx.needs_idle_fill());
        tx.sync_clock(Nanos::from_nanos(now()));
        while let Some(release) = releases.get(next)
            && release.as_nanos() <= now()
        {
            let bytes = [next as u8; 400];
            let outgoing = TxFrame::whole(&bytes[..60 + next * 37 % 340], *release);
            if tx.push(outgoing) == PushResult::Full {
                break;
            }
            next += 1;
        }
        tx.fill(Nanos::from_nanos(now()));
        left += tx.flush().unwrap();
        let turn = match pause {
            Some((at, long)) if (at..at + 5_000).contains(&now()) => long,
            _ => 1_000 + stream.up_to(4_000),
        };
        clock.fetch_add(turn, Ordering::Relaxed);
    }
    let count = releases.len();
    assert_eq!((next, left, tx.unsent()), (count, count, 0));
    let tally = tx.tally();
    (tx.into_line().wire, tally)
}

/// Returns releases 1 to 20 us apart.
fn random_releases(count: usize) -> Vec<Nanos> {
    let mut stream = Stream::of_seed(4);
    let mut at = 50_000;
    let mut release = || {
        at += 1_000 + stream.up_to(19_000);
        Nanos::from_nanos(at)
    };
    (0..count).map(|_| release()).collect()
}

#[test]
fn a_busy_card_is_exact() {
    let releases = random_releases(800);
    let (wire, tally) = drive(&releases, None);
    assert_eq!(wire.frames.len(), 800);
    assert_eq!((wire.idle, wire.malformed, tally.ran_dry), (0, 0, 0));
    let error = spacing_error(&wire.frames, &releases, rate(TEN_GIGABIT));
    assert!(error < 1.0, "{error} byte times");
    assert_eq!((tally.late, tally.waited, tally.moved), (0, 0, 0));
    // Most fillers have the maximum length.
    assert!(tally.fillers < 2 * 800 + wire.now / wire_bytes(1514));
}

#[test]
fn a_long_pause_is_counted_and_then_spacing_is_exact() {
    let releases = random_releases(800);
    // The frames in the ring bridge a pause of 90 us.
    let (wire, tally) = drive(&releases, Some((2_000_000, 90_000)));
    assert_eq!((wire.idle, tally.ran_dry, tally.late), (0, 0, 0));
    // A pause of 400 us outlasts the frames in the ring.
    let (wire, tally) = drive(&releases, Some((2_000_000, 400_000)));
    assert_eq!(wire.frames.len(), 800);
    assert!(wire.idle > 100_000);
    assert!(tally.ran_dry >= 1);
    assert!((10..60).contains(&tally.late), "{} frames late", tally.late);
    // After the pause, spacing is exact again.
    let after = 400;
    assert!(releases[after].as_nanos() > 3_000_000);
    let error = spacing_error(&wire.frames[after..], &releases[after..], rate(TEN_GIGABIT));
    assert!(error < 1.0, "{error} byte times");
}

#[test]
fn frames_of_impossible_lengths_are_refused() {
    let mut tx = GapTx::new(Card::default(), "mem".to_owned(), rate(TEN_GIGABIT));
    for len in [0, 13, 1515] {
        let bytes = vec![0; len];
        let outgoing = TxFrame::whole(&bytes, Nanos::ZERO);
        assert_eq!(tx.push(outgoing), PushResult::Refused);
    }
    assert!(!tx.takes_offload() && !tx.needs_idle_fill());
    assert!(tx.remarks()[0].contains("0 frames and 0 fillers"));
}

fn options(bits: u64) -> OpenOptions {
    OpenOptions {
        gap_frames: Some(rate(bits)),
        ..OpenOptions::default()
    }
}

fn reason(result: Result<registry::Port, PortError>) -> String {
    match result {
        Ok(port) => panic!("{} opened", port.name),
        Err(error) => error.to_string(),
    }
}

#[test]
fn ports_without_a_wire_of_their_own_refuse_with_the_reason() {
    for (port, why) in [
        ("tap:lwgap0", "a TAP device has no wire"),
        ("pcap:out=never-made.pcap", "a capture has no wire"),
        (
            "xdp:eth0",
            "AF_XDP cannot send a wrong frame check sequence",
        ),
    ] {
        let reason = reason(registry::open(port, &options(TEN_GIGABIT)));
        for part in ["no gap frames", why] {
            assert!(reason.contains(part), "{reason}");
        }
    }
    assert!(!std::path::Path::new("never-made.pcap").exists());
}

#[test]
fn a_driver_that_cannot_send_a_wrong_check_sequence_refuses_with_the_reason() {
    let Some(pair) = Pair::new() else { return };
    let open = |name: &str, bits| pair.in_port(|| registry::open(name, &options(bits)));
    for name in ["packet:port0", "port0"] {
        let reason = reason(open(name, TEN_GIGABIT));
        for part in ["packet:port0", "SO_NOFCS", "veth", "lacks SO_NOFCS"] {
            assert!(reason.contains(part), "'{part}' is not in: {reason}");
        }
    }
    // A veth pair reports 10 Gbit/s.
    let reason = reason(open("packet:port0", 1_000_000_000));
    let expected = "gap frames at 1gbit, but the wire has 10gbit";
    assert!(reason.contains(expected), "{reason}");
    // The interface still works as an ordinary port.
    pair.packet();
}
