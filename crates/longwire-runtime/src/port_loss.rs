//! A port that goes away while a network runs: the network's reaction, and the
//! report of the loss.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use longwire_engine::Nanos;
use longwire_io::PortError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reaction of a network when one of its ports goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPortLoss {
    /// It ends.
    #[default]
    End,
    /// It continues without the port; frames for it are lost and counted.
    Continue,
}

impl OnPortLoss {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            OnPortLoss::End => "end",
            OnPortLoss::Continue => "continue",
        }
    }

    /// Whether the network continues after this error.
    pub(crate) fn outlives(self, error: &PortError) -> bool {
        self == OnPortLoss::Continue && matches!(error, PortError::Gone { .. })
    }
}

/// A port that went away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostPort {
    /// The time, in seconds since the start of the run.
    pub after_s: f64,
    /// The error that the port reported.
    pub error: String,
}

/// Whether a port went away: set by the stage that noticed it, read by others.
#[derive(Debug, Default)]
pub(crate) struct LossCell {
    lost: AtomicBool,
    first: Mutex<Option<(Nanos, String)>>,
}

impl LossCell {
    /// Notes that the port went away at `now`. The first report counts.
    pub fn set(&self, now: Nanos, error: &PortError) {
        let first = self.first.lock();
        let mut first = first.unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| (now, error.to_string()));
        drop(first);
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the port is lost.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns the loss, if the port is lost, in a run that began at `epoch`.
    pub fn get(&self, epoch: Nanos) -> Option<LostPort> {
        if !self.is_set() {
            return None;
        }
        let first = self.first.lock();
        let first = first.unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|(at, error)| LostPort {
            after_s: at.saturating_sub(epoch).as_secs_f64(),
            error: error.clone(),
        })
    }
}
