//! Departures and queue occupancy, compared with naive oracles in exact arithmetic.

use crate::common::frame;
use longwire_engine::models;
use longwire_engine::models::framing::Framing;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{
    BitRate, Bytes, DropReason, Link, LinkConfig, LinkId, Nanos, Packets, Verdict,
};
use proptest::prelude::*;

/// Framing used by the oracle.
#[derive(Clone, Copy, Debug)]
struct Wire {
    overhead: u64,
    cell: u64,
    cell_header: u64,
}

impl Wire {
    fn framing(self) -> Framing {
        let text = format!(
            "bytes:overhead={},cell={},cell-header={}",
            self.overhead, self.cell, self.cell_header
        );
        models::FRAMING.parse(&text).unwrap()
    }

    fn bits(self, len: u32) -> u128 {
        let filled = u64::from(len) + self.overhead;
        let cells = filled.div_ceil(self.cell);
        u128::from(cells * (self.cell + self.cell_header)) * 8
    }
}

/// The departure formula without rounding: time as a fraction over the rate.
struct Oracle {
    rate: u128,
    wire: Wire,
    /// Time at which the link becomes idle, in nanoseconds times the rate.
    idle_at: u128,
}

impl Oracle {
    fn depart(&mut self, arrival: u64, len: u32) -> Nanos {
        let start = self.idle_at.max(u128::from(arrival) * self.rate);
        self.idle_at = start + self.wire.bits(len) * 1_000_000_000;
        let nanos = self.idle_at / self.rate;
        Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn any_rate() -> impl Strategy<Value = u64> {
    let edges = [1, 3, 1_000_003, 400_000_000_000, 10_000_000_000_000];
    prop_oneof![
        proptest::sample::select(edges.to_vec()),
        1..=BitRate::MAX.bits_per_sec(),
        // Log-uniform.
        (0u32..43).prop_flat_map(|power| (1u64 << power)..(2u64 << power).min(10_000_000_000_000)),
    ]
}

fn any_len() -> impl Strategy<Value = u32> {
    prop_oneof![
        proptest::sample::select(vec![0, 14, 64, 1514, 65_535, u32::MAX]),
        0u32..2_000,
        any::<u32>(),
    ]
}

fn any_wire() -> impl Strategy<Value = Wire> {
    let wires = [(0, 1, 0), (24, 1, 0), (18, 48, 5), (65_535, 1, 65_535)];
    proptest::sample::select(wires.to_vec()).prop_map(|(overhead, cell, cell_header)| Wire {
        overhead,
        cell,
        cell_header,
    })
}

/// Frames as (arrival in nanoseconds, length in bytes), starting at an arbitrary time.
fn any_arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let start = prop_oneof![
        Just(0),
        any::<u64>(),
        (0u64..10_000_000_000).prop_map(|before| u64::MAX - before),
    ];
    let gap = prop_oneof![Just(0u64), 0u64..10, 0u64..2_000_000, 0u64..3_000_000_000];
    let frames = proptest::collection::vec((gap, any_len()), 1..120);
    (start, frames).prop_map(|(start, mut frames)| {
        let mut clock = start;
        for (gap, _) in &mut frames {
            clock = clock.saturating_add(*gap);
            *gap = clock;
        }
        frames
    })
}

fn link(rate: u64, wire: Wire, queue: QueueLimit) -> Link {
    let config = LinkConfig {
        rate: BitRate::from_bits_per_sec(rate).into(),
        framing: wire.framing(),
        queue: Some(Queue::TailDrop(queue)),
        ..LinkConfig::default()
    };
    Link::new(config, 1, LinkId(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_queue_holds_what_a_list_would(
        rate in any_rate(),
        wire in any_wire(),
        arrivals in any_arrivals(),
        packets in proptest::option::of(1u64..40),
        bytes in proptest::option::of(64u64..60_000),
    ) {
        let limit = QueueLimit { packets: packets.map(Packets), bytes: bytes.map(Bytes) };
        let mut link = link(rate, wire, limit);
        let mut oracle = Oracle { rate: u128::from(rate), wire, idle_at: 0 };
        let mut held: Vec<(Nanos, u64)> = Vec::new();
        let (mut packets_max, mut bytes_max) = (0, 0);
        for (arrival, len) in arrivals {
            held.retain(|(departure, _)| departure.as_nanos() > arrival);
            let bytes_held = held.iter().map(|(_, len)| len).sum::<u64>();
            let fits = packets.is_none_or(|limit| (held.len() as u64) < limit)
                && bytes.is_none_or(|limit| bytes_held + u64::from(len) <= limit);
            let verdict = link.offer(frame(arrival, len), &[]);
            if fits {
                let departure = oracle.depart(arrival, len);
                if departure.as_nanos() > arrival {
                    held.push((departure, u64::from(len)));
                }
                prop_assert!(
                    matches!(verdict, Verdict::Deliver(delivery) if delivery.departure == departure),
                    "{:?}, not {:?}", verdict, departure
                );
            } else {
                prop_assert_eq!(verdict, Verdict::Drop(DropReason::QueueFull));
            }
            let held_now = (held.len() as u64, held.iter().map(|(_, len)| len).sum::<u64>());
            packets_max = packets_max.max(held_now.0);
            bytes_max = bytes_max.max(held_now.1);
            prop_assert_eq!(link.occupancy(), (Packets(held_now.0), Bytes(held_now.1)));
            prop_assert_eq!(link.occupancy_max(), (Packets(packets_max), Bytes(bytes_max)));
        }
    }
}

/// Three million back-to-back frames whose serialisation time is not a whole number of nanoseconds:
/// accumulated rounding would show.
#[test]
fn no_rounding_is_carried_on() {
    let wire = Wire {
        overhead: 0,
        cell: 1,
        cell_header: 0,
    };
    // 3 Gbit/s: 1000 bytes take 2666 + 2/3 ns.
    let mut link = link(3_000_000_000, wire, QueueLimit::UNLIMITED);
    let mut departure = Nanos::ZERO;
    for index in 0..3_000_000u64 {
        // Each frame arrives when the previous one departs, so the link is never idle.
        if let Verdict::Deliver(delivery) = link.offer(frame(departure.as_nanos(), 1000), &[]) {
            departure = delivery.departure;
        }
        assert_eq!(departure.as_nanos(), (index + 1) * 8_000 / 3);
    }
}

#[test]
fn an_infinite_rate_departs_at_arrival_and_holds_nothing() {
    let mut link = crate::common::link("queue=1p", 1);
    for arrival in [0, 5, 5, 5, u64::MAX] {
        let verdict = link.offer(frame(arrival, 1514), &[]);
        assert_eq!(crate::common::release(verdict), arrival);
    }
    assert_eq!(link.occupancy_max(), (Packets(0), Bytes(0)));
}

#[test]
fn an_arrival_back_in_time_counts_as_simultaneous() {
    let mut link = crate::common::link("delay=1ms", 1);
    link.offer(frame(5_000, 64), &[]);
    let verdict = link.offer(frame(1_000, 64), &[]);
    assert_eq!(crate::common::release(verdict), 1_005_000);
}
