//! The engine alone, on frames in memory.

use longwire_engine::emulator::ItemBytes;
use longwire_engine::{
    Bytes, Emulator, Fragments, FrameMeta, Link, LinkConfig, LinkId, Nanos, Packets, Verdict,
};
use longwire_io::port::offload;

use crate::composed::traffic::Buffer;

/// A wire frame and when it arrives.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// Returns the wire frames in buffers, checksums finished, with arrivals
/// counted from `start`.
pub fn wire_frames(buffers: &[Buffer], start: Nanos) -> Vec<Arrival> {
    let mut frames = Vec::new();
    for buffer in buffers {
        let at = start.saturating_add(Nanos::from_nanos(buffer.at));
        let Some(segments) = buffer.offload.segments else {
            let mut bytes = buffer.bytes.clone();
            if let Some(checksum) = buffer.offload.checksum {
                assert!(offload::finish_checksum(&mut bytes, checksum));
            }
            frames.push(Arrival { at, bytes });
            continue;
        };
        for index in 0..segments.wire_frames(buffer.bytes.len()).len() {
            let mut bytes = Vec::new();
            let cut = offload::cut(&buffer.bytes, segments, index..index + 1, &mut bytes);
            assert_eq!(cut, Some(offload::Offload::NONE));
            frames.push(Arrival { at, bytes });
        }
    }
    frames
}

/// The outcome of one frame.
#[derive(Debug, Default)]
pub struct Fate {
    /// The frame's own verdict, then one for each further delivery.
    pub verdicts: Vec<Verdict>,
    /// The queue right after its arrival.
    pub queue: (Packets, Bytes),
    /// Its bytes once it is delivered.
    bytes: Vec<u8>,
}

/// The outcome of all frames.
#[derive(Debug)]
pub struct Outcome {
    /// In the order of their arrival, fragments in the place of what was cut.
    pub frames: Vec<Fate>,
    /// The frames that left, in the order of releases.
    pub released: Vec<(Nanos, Vec<u8>)>,
    /// Releases may decrease.
    pub overtaken: bool,
}

struct Arrivals<'a>(&'a [Arrival]);

impl ItemBytes<usize> for Arrivals<'_> {
    fn bytes<'a>(&'a self, item: &'a usize) -> &'a [u8] {
        &self.0[*item].bytes
    }
}

/// Offers the frames to the link, fragmented where it does that, in virtual
/// time.
pub fn simulate(config: LinkConfig, seed: u64, arrivals: &[Arrival]) -> Outcome {
    let link = Link::new(config, seed, LinkId(0));
    let overtaken = !link.in_order();
    let mut offered = Vec::new();
    for arrival in arrivals {
        let at = arrival.at;
        let mut fragments = Fragments::default();
        if fragments.cut(link.mtu(), &arrival.bytes) {
            offered.extend(fragments.iter().map(|bytes| {
                let bytes = bytes.to_vec();
                Arrival { at, bytes }
            }));
        } else {
            offered.push(arrival.clone());
        }
    }
    let mut outcome = Outcome {
        frames: offered.iter().map(|_| Fate::default()).collect(),
        released: Vec::new(),
        overtaken,
    };
    let mut emulator = Emulator::new(vec![link]);
    for (index, arrival) in offered.iter().enumerate() {
        emulator.advance(arrival.at, &Arrivals(&offered));
        take_decided(&mut emulator, &offered, &mut outcome);
        let meta = FrameMeta::new(arrival.at, arrival.bytes.len() as u32);
        let verdict = emulator.offer(LinkId(0), meta, &arrival.bytes, index);
        let link = emulator.link(LinkId(0)).expect("the link");
        outcome.frames[index].queue = link.occupancy();
        if verdict != Verdict::Queued {
            decided(&mut emulator, index, verdict, &offered, &mut outcome);
        }
        take_decided(&mut emulator, &offered, &mut outcome);
    }
    emulator.advance(Nanos::MAX, &Arrivals(&offered));
    take_decided(&mut emulator, &offered, &mut outcome);
    while let Some((_, index, delivery)) = emulator.poll(Nanos::MAX) {
        let bytes = outcome.frames[index].bytes.clone();
        outcome.released.push((delivery.release, bytes));
    }
    outcome
}

fn take_decided(emulator: &mut Emulator<usize>, offered: &[Arrival], outcome: &mut Outcome) {
    while let Some(next) = emulator.next_decided() {
        decided(emulator, next.item, next.verdict, offered, outcome);
    }
}

fn decided(
    emulator: &mut Emulator<usize>,
    index: usize,
    verdict: Verdict,
    offered: &[Arrival],
    outcome: &mut Outcome,
) {
    let fate = &mut outcome.frames[index];
    if let Verdict::Deliver(delivery) = &verdict
        && fate.verdicts.is_empty()
    {
        fate.bytes.clone_from(&offered[index].bytes);
        if let Some(link) = emulator
            .link_mut(LinkId(0))
            .filter(|_| delivery.edits.any())
        {
            link.edit(delivery, &mut fate.bytes);
        }
    }
    fate.verdicts.push(verdict);
}
