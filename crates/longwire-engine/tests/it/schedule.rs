//! The replay schedule: due times for a trace's frames.

use longwire_engine::models::FRAMING;
use longwire_engine::models::framing::Framing;
use longwire_engine::replay::{Pace, ReplaySchedule};
use longwire_engine::{Nanos, PacketRate, Speed};

fn due(schedule: &mut ReplaySchedule, stamps: &[u64]) -> Vec<u64> {
    let due = stamps
        .iter()
        .map(|stamp| schedule.due(Nanos::from_nanos(*stamp), 100));
    due.map(Nanos::as_nanos).collect()
}

fn at_speed(speed: &str) -> ReplaySchedule {
    ReplaySchedule::new(Pace::Trace(speed.parse().unwrap()), None)
}

#[test]
fn times_count_from_the_first_stamp() {
    let mut schedule = ReplaySchedule::new(Pace::default(), None);
    assert_eq!(due(&mut schedule, &[700, 770, 900]), [0, 70, 200]);
}

#[test]
fn a_speed_scales_the_whole_and_not_the_steps() {
    assert_eq!(due(&mut at_speed("2x"), &[0, 5, 10, 15]), [0, 2, 5, 7]);
    assert_eq!(due(&mut at_speed("0.1x"), &[3, 5]), [0, 20]);
    // A third of a nanosecond is lost once, not per frame.
    let mut thrice = at_speed("3x");
    let stamps: Vec<u64> = (0..=1_000_000).map(|n| n * 70_000).collect();
    let last = *due(&mut thrice, &stamps).last().unwrap();
    assert_eq!(last, 70_000_000_000 / 3);
}

#[test]
fn a_decreasing_stamp_keeps_its_position() {
    let mut schedule = ReplaySchedule::new(Pace::default(), None);
    assert_eq!(
        due(&mut schedule, &[10, 30, 20, 25, 40]),
        [0, 20, 20, 20, 30]
    );
    assert_eq!(schedule.set_back(), 2);
}

#[test]
fn long_gaps_are_cut_in_the_traces_time() {
    let pace = Pace::Trace("2x".parse().unwrap());
    let mut schedule = ReplaySchedule::new(pace, Some(Nanos::from_nanos(100)));
    assert_eq!(
        due(&mut schedule, &[0, 50, 1_050, 1_060, 5_000]),
        [0, 25, 75, 80, 130]
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
fn framing_counts_on_the_wire() {
    let rate = "1gbit".parse().unwrap();
    let framing = FRAMING.parse("ethernet").unwrap();
    let mut schedule = ReplaySchedule::new(Pace::Bits { rate, framing }, None);
    assert_eq!(due(&mut schedule, &[0, 0]), [0, 124 * 8]);
}

#[test]
fn packets_a_second_do_not_drift() {
    let rate: PacketRate = "3mpps".parse().unwrap();
    let mut schedule = ReplaySchedule::new(Pace::Packets(rate), None);
    let times = due(&mut schedule, &[9, 9, 9, 9]);
    assert_eq!(times, [0, 333, 666, 1_000]);
    assert_eq!(rate.due(3_000_000_000), Nanos::from_secs(1_000));
}

#[test]
fn top_speed_is_due_at_once() {
    let mut schedule = ReplaySchedule::new(Pace::TopSpeed, None);
    assert_eq!(due(&mut schedule, &[5, 500]), [0, 0]);
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
