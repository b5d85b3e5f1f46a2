//! Replay: sends frames known ahead of time exactly when they are due.
//!
//! A reading thread takes frames from a [feed](crate::feed), offers them to emulated links at their
//! times, and keeps delay lines filled. A sending thread only waits and sends, in one order over
//! all ports. Each departure follows from the schedule, not from the previous departure, so errors
//! do not accumulate.

mod build;
mod observed;
mod pacer;
mod threads;

use std::sync::Arc;

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::Port;

use crate::config::LinkSetup;
use crate::counters::LinkCells;
use crate::record::Epoch;
use crate::sent::SentLog;

pub(crate) use build::ReplayPlan;
pub(crate) use observed::{ObservedOutput, OfferLogger};

/// A replay's output: a link and its port.
pub struct ReplayOutput {
    /// The port. Its receiving half is closed.
    pub port: Port,
    /// The emulated link.
    pub link: LinkSetup,
    /// Logs each frame before it leaves, for a receiver in the same process.
    pub sent: Option<SentLog>,
    /// Counters for clients. The replay's [observer](crate::RunningNetwork::observer) updates them.
    pub cells: Option<Arc<LinkCells>>,
}

/// A replay's start time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// As soon as some frames have been read.
    #[default]
    Soon,
    /// At this Unix time on this machine's clock, so that several machines can start together.
    At(Nanos),
}

/// Replay-specific configuration.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// Bytes of frames that may be queued for an output before reading pauses. Also determines the
    /// default memory.
    pub read_ahead: Bytes,
    /// The start.
    pub start: Start,
    /// Sampling interval of send stamps in frames; 0 requests none. Frames without times are not
    /// stamped.
    pub stamp_every: u32,
}

/// Time to read the first frames before the first one is due.
const PREPARE: Nanos = Nanos::from_millis(100);

impl ReplayConfig {
    /// Default read-ahead in bytes: seconds of a slow trace, and small enough for a cache.
    pub const READ_AHEAD: Bytes = Bytes(32 << 20);

    /// Default sampling interval of send stamps: enough for quantiles at negligible cost.
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
