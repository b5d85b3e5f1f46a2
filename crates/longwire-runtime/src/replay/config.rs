//! Configuration of a replay.

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::Port;

use crate::config::{GRACE, LinkSetup, WaitMode};
use crate::faults::Faults;
use crate::sent::SentLog;

/// An output of a replay: a link and the port after it.
pub struct ReplayOutput {
    /// The port. Its receiving half is closed.
    pub port: Port,
    /// The emulated link before it.
    pub link: LinkSetup,
    /// Notes each frame before it leaves, for a receiver in the same process.
    pub sent: Option<SentLog>,
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

/// Configuration of a replay.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// The seed of the links' random streams.
    pub seed: u64,
    /// How the sending thread waits.
    pub wait: WaitMode,
    /// How many bytes of frames may wait for an output before reading pauses.
    pub read_ahead: Bytes,
    /// The most memory that frames may wait in, for each output. `None`
    /// derives it from `read_ahead` and from the link's rate and delay.
    pub memory: Option<Bytes>,
    /// A departure later than this counts as an artifact.
    pub tolerance: Nanos,
    /// Frames released within this time after the start that are late count as
    /// artifacts of the start.
    pub grace: Nanos,
    /// Ask for a real-time scheduling class, locked memory and cores that do
    /// not sleep deeply.
    pub realtime: bool,
    /// When it starts.
    pub start: Start,
    /// The port is asked for the send stamp of one frame out of this many; 0
    /// asks for none. Frames without times are not stamped.
    pub stamp_every: u32,
    /// Receives the faults of the links' plugins; a fault ends the replay.
    pub faults: Faults,
}

impl ReplayConfig {
    /// Bytes read ahead by default: some seconds of a slow trace, and a small
    /// part of a fast one, for which the size of a cache is enough.
    pub const READ_AHEAD: Bytes = Bytes(32 << 20);

    /// One frame out of this many is stamped by default: enough for
    /// percentiles, and too few to cost anything.
    pub const STAMP_EVERY: u32 = 100;
}

impl Default for ReplayConfig {
    fn default() -> ReplayConfig {
        ReplayConfig {
            seed: 1,
            wait: WaitMode::Adaptive,
            read_ahead: ReplayConfig::READ_AHEAD,
            memory: None,
            tolerance: Nanos::from_millis(1),
            grace: GRACE,
            realtime: true,
            start: Start::Soon,
            stamp_every: ReplayConfig::STAMP_EVERY,
            faults: Faults::new(),
        }
    }
}
