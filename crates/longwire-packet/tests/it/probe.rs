//! Probes are read from payloads as they were written; other payloads are not read as probes.

use longwire_packet::probe::Probe;
use longwire_units::Nanos;
use longwire_units::random::Stream;

fn probe() -> Probe {
    Probe {
        stream: 513,
        sequence: 0x1234_5678_9abc,
        sent: Nanos::from_nanos(1_795_000_000_123_456_789),
    }
}

fn written(probe: &Probe) -> [u8; Probe::LEN] {
    let mut bytes = [0xee; Probe::LEN];
    assert!(probe.write(&mut bytes));
    bytes
}

#[test]
fn a_probe_fits_the_shortest_frame() {
    // 14 for Ethernet, 20 for IPv4 and 8 for UDP, in 60 bytes.
    assert_eq!(60 - (14 + 20 + 8), Probe::LEN);
}

#[test]
fn written_probes_are_found() {
    let mut payload = [7; 100];
    assert!(probe().write(&mut payload));
    assert_eq!(Probe::find(&payload), Some(probe()));
    assert_eq!(payload[Probe::LEN..], [7; 100 - Probe::LEN]);
    let bytes = written(&probe());
    assert_eq!(bytes[2..4], 513u16.to_be_bytes());
    assert_eq!(bytes[4..10], [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc]);
    assert_eq!(bytes[10..], 1_795_000_000_123_456_789u64.to_be_bytes());
}

#[test]
fn numbers_beyond_their_fields_wrap() {
    let large = Probe {
        stream: Probe::STREAMS + 3,
        sequence: Probe::SEQUENCES + 5,
        sent: Nanos::from_secs(1),
    };
    let (stream, sequence) = (3, 5);
    let small = Probe {
        stream,
        sequence,
        ..large
    };
    assert_eq!(Probe::find(&written(&large)), Some(small));
}

#[test]
fn a_short_payload_is_unchanged() {
    let mut payload = [9; Probe::LEN - 1];
    assert!(!probe().write(&mut payload));
    assert_eq!(payload, [9; Probe::LEN - 1]);
    for len in 0..Probe::LEN {
        assert_eq!(Probe::find(&written(&probe())[..len]), None);
    }
}

#[test]
fn other_payloads_are_not_probes() {
    for byte in 0..=255 {
        assert_eq!(Probe::find(&[byte; 64]), None, "{byte}");
    }
    let counting: Vec<u8> = (0..=255).collect();
    let mut windows = counting.windows(32);
    assert!(windows.all(|window| Probe::find(window).is_none()));
}

/// A 16-bit check misses one change in 65,536. For 144 corrupted bits in each of 2,000 probes, 4.4
/// misses are expected; twenty have a probability below 1e-7 (Poisson).
#[test]
fn corrupted_probes_are_rejected() {
    let mut missed = 0;
    for sequence in 0..2_000 {
        let bytes = written(&Probe {
            sequence,
            ..probe()
        });
        for bit in 0..8 * Probe::LEN {
            let mut spoilt = bytes;
            spoilt[bit / 8] ^= 1 << (bit % 8);
            missed += u32::from(Probe::find(&spoilt).is_some());
        }
    }
    assert!(missed < 20, "{missed}");
}

/// One random payload in 2^19 passes: of 2^22, eight are expected; more than 30 have a probability
/// below 1e-8 (Poisson; seed 1).
#[test]
fn random_payloads_are_rarely_probes() {
    let mut stream = Stream::of_seed(1);
    let mut passed = 0;
    for _ in 0..1 << 22 {
        let mut payload = [0; 24];
        for word in payload.chunks_exact_mut(8) {
            word.copy_from_slice(&stream.next_u64().to_be_bytes());
        }
        passed += u32::from(Probe::find(&payload).is_some());
    }
    assert!((1..=30).contains(&passed), "{passed}");
}
