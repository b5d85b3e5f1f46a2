//! The largest flows of a link, in bounded memory.

use std::collections::HashMap;

use longwire_engine::LinkId;
use longwire_packet::five_tuple::FiveTuple;

/// Maximum number of tracked flows.
const FLOWS: usize = 256;

/// The delivered frames of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCount {
    /// The flow; `None` for all frames without IP.
    pub flow: Option<FiveTuple>,
    /// Number of frames, overestimated by at most `error`.
    pub packets: u64,
    /// Bytes since tracking began, without framing.
    pub bytes: u64,
    /// The count inherited from the replaced flow.
    pub error: u64,
}

/// The largest flows of a link by Space-Saving (Metwally, Agrawal and El Abbadi, 2005,
/// section 3). The sketch contains every flow above 1/256 of all frames, and overestimates
/// a count by at most that share.
#[derive(Debug)]
pub(super) struct FlowSketch {
    link: LinkId,
    flows: Vec<FlowCount>,
    place_of: HashMap<Option<FiveTuple>, usize>,
    packets: u64,
}

impl FlowSketch {
    /// Returns an empty sketch of a link.
    pub fn of(link: LinkId) -> FlowSketch {
        FlowSketch {
            link,
            flows: Vec::with_capacity(FLOWS),
            place_of: HashMap::with_capacity(FLOWS),
            packets: 0,
        }
    }

    /// Counts a delivered frame if it belongs to the sketch's link.
    pub fn delivered(&mut self, link: LinkId, frame: &[u8], len: u32) {
        if link != self.link {
            return;
        }
        self.packets += 1;
        let flow = FiveTuple::of(frame);
        let place = match self.place_of.get(&flow) {
            Some(place) => *place,
            None => self.place_for(flow),
        };
        let count = &mut self.flows[place];
        count.packets += 1;
        count.bytes += u64::from(len);
    }

    /// Returns the entry for a new flow. If the table is full, the smallest entry is
    /// replaced.
    fn place_for(&mut self, flow: Option<FiveTuple>) -> usize {
        let mut new = FlowCount {
            flow,
            packets: 0,
            bytes: 0,
            error: 0,
        };
        let place = self.flows.len();
        if place < FLOWS {
            self.flows.push(new);
            self.place_of.insert(flow, place);
            return place;
        }
        let smallest = (0..FLOWS)
            .min_by_key(|place| self.flows[*place].packets)
            .unwrap_or(0);
        let old = self.flows[smallest];
        new.packets = old.packets;
        new.error = old.packets;
        self.flows[smallest] = new;
        self.place_of.remove(&old.flow);
        self.place_of.insert(flow, smallest);
        smallest
    }

    /// Returns the frame count, and the flows in descending order.
    pub fn read(&self) -> (u64, Vec<FlowCount>) {
        let mut flows = self.flows.clone();
        flows.sort_by_key(|count| (std::cmp::Reverse(count.packets - count.error), count.flow));
        (self.packets, flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flow: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(flow.to_be_bytes());
        frame.extend([0, 53, 0, 8, 0, 0]);
        frame
    }

    /// Two flows have a tenth of the frames each; every other flow has one frame.
    #[test]
    fn large_flows_are_found_among_many_small_ones() {
        let mut sketch = FlowSketch::of(LinkId(1));
        for round in 0..10_000u16 {
            let flow = match round % 10 {
                0 => 1,
                1 => 2,
                _ => 100 + round,
            };
            sketch.delivered(LinkId(1), &frame(flow), 100);
            sketch.delivered(LinkId(0), &frame(3), 100);
        }
        let (packets, flows) = sketch.read();
        assert_eq!((packets, flows.len()), (10_000, FLOWS));
        for (place, port) in [(0, 1), (1, 2)] {
            let found = flows[place];
            let ports = found.flow.and_then(|flow| flow.ports);
            assert_eq!(ports, Some((port, 53)));
            assert!(
                (1_000..=1_000 + 10_000 / FLOWS as u64).contains(&found.packets),
                "{found:?}"
            );
            assert_eq!(found.packets - found.error, found.bytes / 100);
        }
        // Space-Saving never underestimates.
        assert_eq!(flows.iter().map(|flow| flow.packets).sum::<u64>(), packets);
    }
}
