//! Known properties of each discipline under TCP. The TCP model is seeded and runs in virtual time,
//! so every figure is reproducible; the bounds allow for model changes, not for chance.

use crate::queues::link::link;
use crate::queues::tcp::{Control, FRAME, Network, Seen, Sender};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// 20 Mbit/s: a full frame takes 0.6 ms.
const RATE: u64 = 20_000_000;

/// Warm-up; the following minute is measured.
const WARM_UP: u64 = 20 * SECOND;
const END: u64 = 80 * SECOND;

fn run_at(rate: u64, queue: &str, senders: &[Sender]) -> Vec<Seen> {
    Network::new(link(rate, queue, 1), rate, senders, WARM_UP).run(END)
}

fn run(queue: &str, senders: &[Sender]) -> Vec<Seen> {
    run_at(RATE, queue, senders)
}

fn sender(control: Control, round_trip_ms: u64, ecn: u8) -> Sender {
    Sender {
        control,
        round_trip: round_trip_ms * MILLISECOND,
        ecn,
    }
}

/// Five Reno flows with similar round-trip times.
fn five_reno(ecn: u8) -> [Sender; 5] {
    [40, 40, 50, 60, 30].map(|ms| sender(Control::Reno, ms, ecn))
}

/// Returns the link utilisation.
fn utilisation(rate: u64, flows: &[Seen]) -> f64 {
    let bytes: u64 = flows.iter().map(|seen| seen.bytes).sum();
    let seconds = (END - WARM_UP) as f64 / SECOND as f64;
    bytes as f64 * 8.0 / seconds / rate as f64
}

/// Merges all flows.
fn together(flows: &[Seen]) -> Seen {
    let mut all = Seen::default();
    for seen in flows {
        all.bytes += seen.bytes;
        all.losses += seen.losses;
        all.marks += seen.marks;
        all.waits.extend(&seen.waits);
    }
    all
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984); 1 means equal shares.
fn jain(flows: &[Seen]) -> f64 {
    let shares = flows.iter().map(|seen| seen.bytes as f64);
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), share| {
        (sum + share, squares + share * share)
    });
    sum * sum / squares / flows.len() as f64
}

/// Returns the standing queue in milliseconds: the mean, over intervals of 100 ms, of the minimum
/// wait.
fn standing_queue_ms(flows: &[Seen]) -> f64 {
    let mut least = vec![u64::MAX; ((END - WARM_UP) / (100 * MILLISECOND)) as usize];
    for (departure, wait) in &together(flows).waits {
        let interval = departure.saturating_sub(WARM_UP) / (100 * MILLISECOND);
        if let Some(least) = least.get_mut(interval as usize) {
            *least = (*wait).min(*least);
        }
    }
    let seen = least.iter().filter(|wait| **wait < u64::MAX);
    seen.clone().sum::<u64>() as f64 / seen.count() as f64 / MILLISECOND as f64
}

#[track_caller]
fn assert_within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value}");
}

/// A tail-drop queue of 500 frames has a standing queue above 100 ms, at least ten times CoDel's.
#[test]
fn tail_drop_keeps_its_buffer_full() {
    let flows = run("tail-drop:500p", &five_reno(0));
    assert!(standing_queue_ms(&flows) > 100.0);
}

/// CoDel keeps the standing queue near its target of 5 ms (RFC 8289, section 3.2), and the link
/// stays utilised even with few flows.
#[test]
fn codel_holds_the_standing_queue_near_its_target() {
    let flows = run("codel", &five_reno(0));
    assert_within(standing_queue_ms(&flows), 2.5, 10.0, "is above interval");
    assert!(together(&flows).wait_ms(0.99) < 25.0);
    assert!(utilisation(RATE, &flows) > 0.98);
    let lone = run("codel", &[sender(Control::Cubic, 40, 0)]);
    assert!(standing_queue_ms(&lone) < 5.0);
    assert!(lone[0].wait_ms(0.99) < 10.0);
    assert!(utilisation(RATE, &lone) > 0.9);
}

/// PIE holds the delay at its target of 15 ms (RFC 8033, section 4.2).
#[test]
fn pie_holds_the_delay_at_its_target() {
    let five = five_reno(0);
    let lone = [sender(Control::Cubic, 40, 0)];
    for senders in [&five[..], &lone] {
        let flows = run("pie", senders);
        assert_within(together(&flows).mean_wait_ms(), 11.0, 20.0, "mean wait");
        assert!(utilisation(RATE, &flows) > 0.97);
    }
}

/// Adaptive RED keeps the average between its thresholds, 5 and 15 packets of 0.6 ms, for any
/// number of flows.
#[test]
fn adaptive_red_keeps_the_average_between_its_thresholds() {
    for count in [5, 20] {
        let senders: Vec<Sender> = five_reno(0).into_iter().cycle().take(count).collect();
        let flows = run("red:adaptive=true", &senders);
        let mean = together(&flows).mean_wait_ms();
        assert_within(mean, 5.0 * 0.6, 15.0 * 0.6, "mean wait");
    }
}

/// FQ-CoDel shares the link among flows regardless of round-trip time and congestion control (RFC
/// 8290, section 1). A sparse flow waits at most for one frame of each other flow and the one in
/// service.
#[test]
fn fq_codel_shares_and_lets_sparse_flows_pass() {
    let sparse = sender(Control::Constant(20 * MILLISECOND), 0, 0);
    let senders = [
        sender(Control::Reno, 10, 0),
        sender(Control::Cubic, 20, 0),
        sender(Control::Reno, 50, 0),
        sender(Control::Cubic, 100, 0),
        sparse,
    ];
    let fair = run("fq-codel", &senders);
    let (flows, sparse) = fair.split_at(4);
    assert!(jain(flows) > 0.97, "{}", jain(flows));
    assert!(utilisation(RATE, &fair) > 0.99);
    let frame_ms = f64::from(FRAME) * 8e3 / RATE as f64;
    assert!(sparse[0].wait_ms(1.0) < 5.0 * frame_ms);
    assert_eq!(sparse[0].losses, 0);
    // The same flows without per-flow queues.
    let shared = run("codel", &senders);
    assert!(jain(&shared[..4]) < 0.85, "{}", jain(&shared[..4]));
    assert!(shared[4].wait_ms(0.5) > 5.0);
}

/// While a classic flow keeps the C queue at its target, every L4S packet in a minute at 100 Mbit/s
/// waits less than a millisecond (RFC 9332, section 1.4). Neither flow starves the other.
#[test]
fn dualpi2_keeps_l4s_below_a_millisecond_beside_a_classic_flow() {
    let rate = 5 * RATE;
    for scheduler in ["wrr", "ts-fifo"] {
        for control in [Control::Cubic, Control::Reno] {
            let senders = [sender(control, 20, 0), sender(Control::Dctcp, 20, 1)];
            let queue = format!("dualpi2:scheduler={scheduler}");
            let flows = run_at(rate, &queue, &senders);
            let (classic, l4s) = (&flows[0], &flows[1]);
            assert!(l4s.wait_ms(1.0) < 1.0, "{scheduler}, {control:?}");
            assert_eq!(l4s.losses, 0);
            assert!(l4s.marks > 1_000 && classic.losses > 10);
            assert!(classic.wait_ms(0.99) < 25.0);
            assert!(utilisation(rate, &flows) > 0.98);
            let share = classic.bytes as f64 / (classic.bytes + l4s.bytes) as f64;
            assert_within(share, 0.2, 0.6, "classic share");
        }
    }
}

/// Without L4S traffic, the C queue stays at its target of 15 ms.
#[test]
fn dualpi2_holds_classic_flows_at_their_target() {
    let flows = run("dualpi2", &five_reno(0));
    assert_within(together(&flows).mean_wait_ms(), 12.0, 18.0, "mean wait");
    assert!(utilisation(RATE, &flows) > 0.98);
}

/// With ECN at both ends, no frame is lost, and queues are equally short.
#[test]
fn marks_take_the_place_of_drops() {
    for (queue, most_ms) in [
        ("codel:ecn=true", 20.0),
        ("fq-codel:ecn=true", 20.0),
        ("pie:ecn=true", 25.0),
        ("red:ecn=true", 10.0),
        ("dualpi2", 20.0),
    ] {
        let flows = together(&run(queue, &five_reno(2)));
        assert_eq!(flows.losses, 0, "{queue}");
        assert!(flows.marks > 100, "{queue}: {} marks", flows.marks);
        assert!(flows.mean_wait_ms() < most_ms, "{queue}");
        // Packets from senders without ECN are still dropped.
        let flows = together(&run(queue, &five_reno(0)));
        assert!(flows.losses > 100 && flows.marks == 0, "{queue}");
    }
}
