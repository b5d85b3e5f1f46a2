//! Port loss: the reaction to a port that disappears while a network runs.

use std::sync::OnceLock;

use longwire_engine::Nanos;
use longwire_io::PortError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network's reaction to a port loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPortLoss {
    /// End the run.
    #[default]
    End,
    /// Continue without the port. Frames to it are lost and counted.
    Continue,
}

impl OnPortLoss {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            OnPortLoss::End => "end",
            OnPortLoss::Continue => "continue",
        }
    }

    /// Returns whether the network continues after this error.
    pub(crate) fn outlives(self, error: &PortError) -> bool {
        self == OnPortLoss::Continue && matches!(error, PortError::Gone { .. })
    }
}

/// A port that went away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostPort {
    /// Time of the loss, in seconds since the run's start.
    pub after_s: f64,
    /// Error that the port reported.
    pub error: String,
}

/// Time and error of a port loss, set by the stage that detects it.
#[derive(Debug, Default)]
pub(crate) struct LossCell(OnceLock<(Nanos, String)>);

impl LossCell {
    /// Records the loss at `now`. Only the first report is kept.
    pub fn set(&self, now: Nanos, error: &PortError) {
        self.0.get_or_init(|| (now, error.to_string()));
    }

    /// Returns whether the port is lost.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the loss, with its time relative to the start `epoch`.
    pub fn get(&self, epoch: Nanos) -> Option<LostPort> {
        self.0.get().map(|(at, error)| LostPort {
            after_s: at.saturating_sub(epoch).as_secs_f64(),
            error: error.clone(),
        })
    }
}
