//! Configuration of a replay.

use std::sync::Arc;

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::Port;

use crate::config::LinkSetup;
use crate::ledger::LinkCells;
use crate::record::Epoch;
use crate::sent::SentLog;

/// An output of a replay: a link and the port after it.
pub struct ReplayOutput {
    /// The port. Its receiving half is closed.
    pub port: Port,
    /// The emulated link before it.
    pub link: LinkSetup,
    /// Notes each frame before it leaves, for a receiver in the same process.
    pub sent: Option<SentLog>,
    /// Counters as of the present, for clients that look at the replay: brought up to date
    /// by its [observer](crate::RunningNetwork::observer).
    pub cells: Option<Arc<LinkCells>>,
}

/// The start of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// As soon as some frames have been read.
    #[default]
    Soon,
    /// At this time since 1970, by this machine's clock: several machines may
    /// start together.
    At(Nanos),
}

/// Configuration of a replay, besides that of every run.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// How many bytes of frames may wait for an output before reading pauses.
    /// The default memory of frames follows from it too.
    pub read_ahead: Bytes,
    /// When it starts.
    pub start: Start,
    /// The port is asked for the send stamp of one frame out of this many; 0
    /// asks for none. Frames without times are not stamped.
    pub stamp_every: u32,
}

/// Time for reading the first frames before the first one is due.
const PREPARE: Nanos = Nanos::from_millis(100);

impl ReplayConfig {
    /// Bytes read ahead by default: some seconds of a slow trace, and a small
    /// part of a fast one, for which the size of a cache is enough.
    pub const READ_AHEAD: Bytes = Bytes(32 << 20);

    /// One frame out of this many is stamped by default: enough for
    /// percentiles, and too few to cost anything.
    pub const STAMP_EVERY: u32 = 100;

    /// Returns the start on both clocks.
    pub(crate) fn epoch(&self) -> Epoch {
        let now = Epoch::now();
        match self.start {
            Start::Soon => Epoch {
                monotonic: now.monotonic.saturating_add(PREPARE),
                wall: now.wall.saturating_add(PREPARE),
            },
            Start::At(wall) => Epoch {
                monotonic: now.monotonic.saturating_add(wall).saturating_sub(now.wall),
                wall,
            },
        }
    }
}

impl Default for ReplayConfig {
    fn default() -> ReplayConfig {
        ReplayConfig {
            read_ahead: ReplayConfig::READ_AHEAD,
            start: Start::Soon,
            stamp_every: ReplayConfig::STAMP_EVERY,
        }
    }
}
