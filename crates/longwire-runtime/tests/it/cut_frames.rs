//! Frames truncated by the capture: links serialise and record the original length, in whichever
//! stage they decide.

use longwire_testbed::support::Folder;

use crate::common::{delayed, run, write_capture};
use longwire_capture::CaptureReader;
use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{LinkConfig, Nanos, models};
use longwire_runtime::{Placement, RunConfig};

const FRAMES: u32 = 200;
const KEPT: usize = 64;
const LENGTH: u32 = 1_000;
/// Serialisation time of the original length at 80 Mbit/s, in nanoseconds.
const SERIALISED_NS: u64 = 100_000;

#[test]
fn truncated_frames_count_their_original_length() {
    let folder = Folder::new();
    // The frames are nearly simultaneous, so they queue.
    let cut = (0..FRAMES).map(|number| {
        let mut frame = number.to_be_bytes().to_vec();
        frame.resize(KEPT, 0);
        (
            Nanos::from_nanos(1_000_000_000 + u64::from(number)),
            frame,
            LENGTH,
        )
    });
    write_capture(&folder.file("in.pcap"), cut);
    let unlimited = QueueLimit::UNLIMITED;
    for queue in [
        Queue::TailDrop(unlimited),
        Queue::Managed(Box::new(ManagedFifo::new(unlimited))),
    ] {
        let config = LinkConfig {
            rate: models::RATE.parse("80mbit").expect("a rate"),
            queue: Some(queue),
            ..delayed("1ms")
        };
        let together = RunConfig {
            placement: Placement::Together,
            ..RunConfig::default()
        };
        let (report, frames) = run(&folder, config, together);
        let link = &report.links[0];
        assert_eq!(link.traffic.packets_out, u64::from(FRAMES));
        assert_eq!(link.traffic.bytes_in, u64::from(FRAMES * LENGTH));
        let apart = frames.windows(2).map(|pair| pair[1].1 - pair[0].1);
        assert_eq!(apart.collect::<Vec<_>>(), [SERIALISED_NS; 199]);
        let mut reader = CaptureReader::open(&folder.file("out.pcap")).expect("the output");
        while let Some(record) = reader.next().expect("the output is whole") {
            assert_eq!((record.bytes.len(), record.wire_len), (KEPT, LENGTH));
        }
    }
}
