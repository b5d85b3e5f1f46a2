//! The replay schedule: due times for a trace's frames.

use longwire_engine::models::FRAMING;
use longwire_engine::models::framing::Framing;
use longwire_engine::replay::{Pace, ReplaySchedule};
use longwire_engine::{Nanos, PacketRate, Speed};
use longwire_testbed::support::rows;

fn due(schedule: &mut ReplaySchedule, stamps: &[u64]) -> Vec<u64> {
    let due = stamps
        .iter()
        .map(|stamp| schedule.due(Nanos::from_nanos(*stamp), 100));
    due.map(Nanos::as_nanos).collect()
}

/// Each row: pace, maximum gap, timestamps, due times, and the number of timestamps earlier than
/// their predecessor. Gaps are clamped before scaling by the pace; a frame with an earlier
/// timestamp is due with its predecessor.
#[test]
fn frames_are_due_at_their_pace() {
    let numbers = |text: &str| text.split(' ').map(|word| word.parse().unwrap()).collect();
    let speed = |text: &str| Pace::Trace(text.parse().unwrap());
    for [pace, gap_cap, stamps, expected, set_back] in rows(
        "
        1x        |       | 700 770 900         | 0 70 200       | 0
        2x        |       | 0 5 10 15           | 0 2 5 7        | 0
        0.1x      |       | 3 5                 | 0 20           | 0
        1x        |       | 10 30 20 25 40      | 0 20 20 20 30  | 2
        2x        | 100ns | 0 50 1050 1060 5000 | 0 25 75 80 130 | 0
        1gbit     |       | 0 0                 | 0 992          | 0
        3mpps     |       | 9 9 9 9             | 0 333 666 1000 | 0
        top-speed |       | 5 500               | 0 0            | 0
        ",
    ) {
        let parsed = match pace {
            "top-speed" => Pace::TopSpeed,
            "3mpps" => Pace::Packets(pace.parse().unwrap()),
            "1gbit" => Pace::Bits {
                rate: pace.parse().unwrap(),
                framing: FRAMING.parse("ethernet").unwrap(),
            },
            _ => speed(pace),
        };
        let mut schedule = ReplaySchedule::new(parsed, gap_cap.parse().ok());
        let (stamps, expected): (Vec<u64>, Vec<u64>) = (numbers(stamps), numbers(expected));
        assert_eq!(due(&mut schedule, &stamps), expected, "{pace}");
        assert_eq!(schedule.set_back().to_string(), set_back, "{pace}");
    }
    let rate: PacketRate = "3mpps".parse().unwrap();
    assert_eq!(rate.due(3_000_000_000), Nanos::from_secs(1_000));
    // A third of a nanosecond is lost once, not per frame.
    let mut thrice = ReplaySchedule::new(speed("3x"), None);
    let stamps: Vec<u64> = (0..=1_000_000).map(|n| n * 70_000).collect();
    assert_eq!(
        due(&mut thrice, &stamps).last(),
        Some(&(70_000_000_000 / 3))
    );
}

#[test]
fn a_round_begins_a_mean_gap_after_the_last_frame() {
    let mut schedule = ReplaySchedule::new(Pace::default(), None);
    assert_eq!(due(&mut schedule, &[5, 15, 45]), [0, 10, 40]);
    schedule.next_round(None);
    assert_eq!(due(&mut schedule, &[5, 15, 45]), [60, 70, 100]);
    schedule.next_round(Some(Nanos::from_nanos(7)));
    assert_eq!(due(&mut schedule, &[5, 15]), [107, 117]);
}

#[test]
fn a_rate_continues_across_rounds() {
    let rate = PacketRate::from_packets_per_sec(1_000_000).unwrap();
    let mut schedule = ReplaySchedule::new(Pace::Packets(rate), None);
    assert_eq!(due(&mut schedule, &[0, 9]), [0, 1_000]);
    schedule.next_round(Some(Nanos::from_secs(1)));
    assert_eq!(due(&mut schedule, &[0, 9]), [2_000, 3_000]);
}

#[test]
fn a_wire_that_is_never_idle_is_exact_over_a_billion_bits() {
    let rate = "3gbit".parse().unwrap();
    let framing = Framing::NONE;
    let mut schedule = ReplaySchedule::new(Pace::Bits { rate, framing }, None);
    let last = (0..=1_250_000)
        .map(|_| schedule.due(Nanos::ZERO, 100))
        .last();
    // After 1,250,000 frames of 800 bits.
    assert_eq!(last, Some(Nanos::from_nanos(1_000_000_000 / 3)));
}

#[test]
fn speeds_and_packet_rates_read_back() {
    for text in ["1x", "2x", "0.1x", "1.000000001x", "1000000x"] {
        assert_eq!(text.parse::<Speed>().unwrap().to_string(), text);
    }
    assert_eq!("150%".parse::<Speed>().unwrap().to_string(), "1.5x");
    for text in ["1mpps", "1.5kpps", "0.001pps", "1gpps", "999.999pps"] {
        assert_eq!(text.parse::<PacketRate>().unwrap().to_string(), text);
    }
    for text in ["", "x", "0x", "2", "-1x", "nan", "1e3x", "1000001x"] {
        assert!(text.parse::<Speed>().is_err(), "{text}");
    }
    for text in ["", "pps", "0pps", "5", "-1pps", "2gpps", "0.0001pps"] {
        assert!(text.parse::<PacketRate>().is_err(), "{text}");
    }
}
