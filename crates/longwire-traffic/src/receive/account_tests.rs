use longwire_units::random::Stream;

use super::*;

/// Returns an epoch in 2023, half a day after the start of the arrival clock.
fn epoch() -> Epoch {
    Epoch {
        monotonic: Nanos::from_secs(43_200),
        wall: Nanos::from_secs(1_700_000_000),
    }
}

fn account(config: ReceiveConfig) -> Account {
    Account::open(config, epoch()).unwrap_or_else(|error| panic!("{error}"))
}

fn micros(micros: u64) -> Nanos {
    Nanos::from_secs(43_200).saturating_add(Nanos::from_micros(micros))
}

/// Returns an IPv4 UDP frame with this payload.
fn udp(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 4, 1, 4, 2, 0, 0, 0, 0]);
    let len = (payload.len() + 28) as u16;
    frame[16..18].copy_from_slice(&len.to_be_bytes());
    frame[38..40].copy_from_slice(&(len - 20).to_be_bytes());
    frame.extend(payload);
    frame
}

#[test]
fn gap_errors_agree_with_sorted_values() {
    let gap = Nanos::from_micros(70);
    let mut account = account(ReceiveConfig {
        expect_gap: Some(gap),
        ..ReceiveConfig::default()
    });
    let mut chance = Stream::of_seed(1);
    let arrivals: Vec<u64> = (0..20_000u64)
        .map(|number| 1_000_000_000_000 + number * 70_014 + chance.up_to(900))
        .collect();
    for arrival in &arrivals {
        account.frame(&[0; 60], 60, Nanos::from_nanos(*arrival));
    }
    let gaps: Vec<f64> = arrivals
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64 / 1e3)
        .collect();
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let errors = sorted(gaps.iter().map(|gap| (gap - 70.0).abs()).collect());
    let gaps = sorted(gaps);
    let report = account.report();
    let expected = report.expected_gap.unwrap_or_default();
    for (found, values, share) in [
        (report.gap_us.p50, &gaps, 0.5),
        (report.gap_us.p99, &gaps, 0.99),
        (expected.gap_error_us.p50, &errors, 0.5),
        (expected.gap_error_us.p999, &errors, 0.999),
    ] {
        let wanted = values[(share * values.len() as f64).ceil() as usize - 1];
        assert!((found - wanted).abs() <= 0.001 * wanted, "{found} {wanted}");
    }
    // Arrivals fall behind by 14 ns per 70 us.
    let drift = expected.drift.unwrap_or_default();
    assert!((drift.ppm - 200.0).abs() < 0.5, "{drift:?}");
    assert_eq!((report.packets, report.bytes), (20_000, 1_200_000));
    let rate = 1e9 / 70_014.0;
    assert!((report.packets_per_s - rate).abs() < rate * 1e-4);
    assert!((report.bits_per_s - rate * 480.0).abs() < rate * 480.0 * 1e-4);
}

#[test]
fn probes_are_found_after_every_header() {
    let mut account = account(ReceiveConfig::default());
    let probe = |stream, sequence| {
        let mut bytes = [0; Probe::LEN];
        let sent = Nanos::from_secs(1_700_000_000);
        Probe {
            stream,
            sequence,
            sent,
        }
        .write(&mut bytes);
        bytes
    };
    // UDP, ICMP, TCP with options, and a protocol without a known header.
    account.frame(&udp(&probe(0, 0)), 60, micros(25));
    let mut icmp = udp(&probe(1, 0));
    icmp[23] = 1;
    account.frame(&icmp, 60, micros(35));
    let mut tcp = udp(&[0; 16]);
    tcp[23] = 6;
    tcp[34 + 12] = 0x60;
    tcp.extend(probe(2, 0));
    account.frame(&tcp, 76, micros(45));
    let mut other = vec![2; 14];
    (other[12], other[13]) = (0x88, 0xb5);
    other.extend(probe(3, 0));
    account.frame(&other, 60, micros(55));
    // A payload of zeros is not a probe.
    account.frame(&udp(&[0; 18]), 60, micros(65));
    let report = account.report();
    let delays: Vec<(u32, f64)> = report
        .streams
        .iter()
        .map(|stream| (stream.stream, stream.delay_us.p50))
        .collect();
    assert_eq!(delays, [(0, 25.0), (1, 35.0), (2, 45.0), (3, 55.0)]);
}

#[test]
fn filtered_and_surplus_frames_are_not_counted() {
    let filter = "udp".parse().ok();
    assert!(filter.is_some());
    let mut account = account(ReceiveConfig {
        filter,
        count: Some(3),
        ..ReceiveConfig::default()
    });
    for number in 0..10 {
        account.frame(&[0; 60], 60, micros(2 * number));
        account.frame(&udp(&[1; 18]), 60, micros(2 * number + 1));
    }
    let report = account.report();
    assert_eq!((report.packets, report.left_out), (3, 3));
    assert_eq!(report.gap_us.max, 2.0);
}

#[test]
fn stamps_that_go_back_are_noted() {
    let mut account = account(ReceiveConfig::default());
    for arrival in [10, 30, 20, 40] {
        account.frame(&[0; 60], 60, micros(arrival));
    }
    let report = account.report();
    assert_eq!(report.gap_us.min, -10.0);
    assert!((report.duration_s - 30e-6).abs() < 1e-12);
    assert!(report.notes.iter().any(|note| note.starts_with("1 frame ")));
}

#[test]
fn without_frames_the_report_is_empty() {
    let report = account(ReceiveConfig::default()).report();
    assert_eq!((report.packets, report.duration_s), (0, 0.0));
    assert_eq!(report.packets_per_s, 0.0);
    assert!(report.streams.is_empty() && report.expected_gap.is_none());
}
