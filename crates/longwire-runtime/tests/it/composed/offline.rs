//! The engine alone, on in-memory frames.

use longwire_engine::{
    Bytes, Fragments, FrameMeta, Lane, Link, LinkConfig, LinkId, Nanos, Packets, Verdict,
};
use longwire_io::port::offload;

use crate::composed::fates::Fates;
use crate::composed::traffic::Buffer;

/// A wire frame and its arrival.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// Returns the wire frames in buffers, with complete checksums and with arrivals relative to
/// `start`.
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

/// The outcome for one frame.
#[derive(Debug, Default)]
pub struct Fate {
    /// The frame's own verdict, then one per duplicate.
    pub verdicts: Vec<Verdict>,
    /// The queue's occupancy right after the arrival.
    pub queue: (Packets, Bytes),
}

/// The outcome for all frames.
#[derive(Debug)]
pub struct Outcome {
    /// Outcomes in order of arrival; fragments replace their frame.
    pub frames: Vec<Fate>,
    /// Departed frames, in order of release.
    pub released: Vec<(Nanos, Vec<u8>)>,
    /// Whether releases may decrease.
    pub overtaken: bool,
}

/// Runs the engine in virtual time on frames fragmented at the link's MTU.
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
    let (mut lane, mut fates) = (Lane::new(link), Fates::default());
    let mut queues = Vec::new();
    for arrival in &offered {
        lane.poll(..=arrival.at, &mut fates);
        let meta = FrameMeta::new(arrival.at, arrival.bytes.len() as u32);
        let index = fates.add(&arrival.bytes);
        lane.offer(meta, index, &mut fates);
        queues.push(lane.link().occupancy());
    }
    lane.poll(.., &mut fates);
    let mut verdicts = fates.verdicts();
    let mut released = Vec::new();
    while let Some((_, index, delivery)) = fates.pop_due(Nanos::MAX) {
        released.push((delivery.release, fates.frames[index].clone()));
    }
    let fate = |(index, queue)| Fate {
        verdicts: verdicts.remove(&index).unwrap_or_default(),
        queue,
    };
    Outcome {
        frames: queues.into_iter().enumerate().map(fate).collect(),
        released,
        overtaken,
    }
}
