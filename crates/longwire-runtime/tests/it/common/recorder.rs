//! An in-memory recorder.

use std::sync::{Arc, Mutex};

use longwire_engine::{LinkId, Nanos};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::record::{Epoch, Event, Recorder};
use longwire_runtime::sync::locked;

/// The contents of a recording.
#[derive(Default)]
pub struct Recorded {
    pub epoch: Nanos,
    /// Frames with their port and arrival.
    pub entered: Vec<(PortIndex, Nanos, Vec<u8>)>,
    /// Link events.
    pub events: Vec<Event>,
}

/// Returns a recorder, with or without frames at ports, and a reader of its recording.
pub fn keeper(wants_frames: bool) -> (Box<dyn Recorder>, Kept) {
    let kept = Arc::default();
    let keeper = Keeper {
        kept: Arc::clone(&kept),
        wants_frames,
    };
    (Box::new(keeper), Kept(kept))
}

struct Keeper {
    kept: Arc<Mutex<Recorded>>,
    wants_frames: bool,
}

/// Reads a recorder's recording.
pub struct Kept(Arc<Mutex<Recorded>>);

impl Kept {
    pub fn take(&self) -> Recorded {
        std::mem::take(&mut locked(&self.0))
    }
}

impl Recorder for Keeper {
    fn start(&mut self, epoch: Epoch) {
        locked(&self.kept).epoch = epoch.monotonic;
    }

    fn wants_frames(&self) -> bool {
        self.wants_frames
    }

    fn record(&mut self, _: LinkId, events: &[Event], all: &mut [u8]) -> Result<(), String> {
        let mut recorded = locked(&self.kept);
        for event in events {
            match event {
                Event::Entered {
                    port,
                    arrival,
                    wire_len,
                    bytes,
                } => {
                    let bytes = all[bytes.clone()].to_vec();
                    assert_eq!(*wire_len as usize, bytes.len());
                    recorded.entered.push((*port, *arrival, bytes));
                }
                Event::Left { .. } => {}
                event => recorded.events.push(event.clone()),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}
