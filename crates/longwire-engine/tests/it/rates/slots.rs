//! Time-division multiplexing, simulated slot by slot.

use proptest::prelude::*;

use crate::rates::links::{any_frames, both_ways};

/// Periodic slots of a link.
#[derive(Clone, Copy, Debug)]
struct Slots {
    rate: u64,
    period: u64,
    slot: u64,
    guard: u64,
    offset: u64,
    whole: bool,
}

const NANOBITS: u128 = 1_000_000_000;

impl Slots {
    fn written(&self) -> String {
        format!(
            "tdm:rate={}bit,period={}ns,slot={}ns,guard={}ns,offset={}ns,partial={}",
            self.rate,
            self.period,
            self.slot,
            self.guard,
            self.offset,
            if self.whole { "whole" } else { "fragment" }
        )
    }

    /// Returns departures, computed slot by slot; times are integers in nanoseconds times the rate.
    fn departures(&self, frames: &[(u64, u32)]) -> Vec<u64> {
        let rate = u128::from(self.rate);
        let open = u128::from(self.slot - self.guard) * rate;
        let begins = |slot: u128| (u128::from(self.offset) + slot * u128::from(self.period)) * rate;
        let (mut free, mut slot) = (0u128, 0u128);
        let mut departures = Vec::new();
        for (arrival, len) in frames {
            let mut left = u128::from(*len) * 8 * NANOBITS;
            let arrival = u128::from(*arrival);
            // The link is idle only after the exact instant.
            if arrival > free / rate {
                free = arrival * rate;
            }
            let keep = self.whole && left <= open;
            loop {
                while begins(slot) + open <= free {
                    slot += 1;
                }
                free = free.max(begins(slot));
                let room = begins(slot) + open - free;
                if left <= room {
                    free += left;
                    break;
                }
                if !keep {
                    left -= room;
                }
                free = begins(slot + 1);
            }
            departures.push((free / rate) as u64);
        }
        departures
    }
}

fn any_slots() -> impl Strategy<Value = Slots> {
    let rate = prop_oneof![Just(10_000_000u64), 1_000_000u64..10_000_000_000];
    let period = 1_000u64..5_000_000;
    (rate, period, any::<bool>()).prop_flat_map(|(rate, period, whole)| {
        let slot = prop_oneof![Just(period), period / 20 + 2..=period];
        (slot, 0u64..10_000_000).prop_flat_map(move |(slot, offset)| {
            (prop_oneof![Just(0), 0..slot / 2 + 1]).prop_map(move |guard| Slots {
                rate,
                period,
                slot,
                guard,
                offset,
                whole,
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn frames_leave_in_their_slots(slots in any_slots(), frames in any_frames(3_000_000)) {
        let departures = both_ways(&slots.written(), "", 0, &frames);
        prop_assert_eq!(departures, slots.departures(&frames));
    }
}

#[test]
fn a_frame_waits_for_its_slot_on_an_idle_link() {
    let rate = "tdm:rate=8mbit,period=10ms,slot=2ms,offset=3ms,guard=500us";
    // 1000 bytes take 1 ms: within a slot, between slots and in the guard time.
    let frames = [(0, 1_000), (6_000_000, 1_000), (14_600_000, 1_000)];
    assert_eq!(
        both_ways(rate, "", 0, &frames),
        [4_000_000, 14_000_000, 24_000_000]
    );
    // Only half of the second frame fits; it is split or has to wait.
    let frames = [(3_000_000, 1_000), (3_000_000, 1_000)];
    assert_eq!(both_ways(rate, "", 0, &frames), [4_000_000, 13_500_000]);
    let whole = format!("{rate},partial=whole");
    assert_eq!(both_ways(&whole, "", 0, &frames), [4_000_000, 14_000_000]);
    // A frame longer than any slot takes several: 1.5 ms, 1.5 ms and 1 ms.
    assert_eq!(both_ways(&whole, "", 0, &[(0, 4_000)]), [24_000_000]);
}
