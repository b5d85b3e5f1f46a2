//! An Ethernet service: rates, limits, and the marks of its frames.

use std::sync::Arc;

use crate::sizes::SizeModel;
use longwire_engine::BitRate;
use serde::Serialize;

use super::trial::Headers;

/// The limits of a service.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Frame loss ratio.
    pub loss: f64,
    /// Frame transfer delay, in microseconds.
    pub delay_us: f64,
    /// Frame delay variation, in microseconds.
    pub jitter_us: f64,
}

/// An Ethernet service under test.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Committed information rate.
    pub cir: BitRate,
    /// Excess information rate.
    pub eir: Option<BitRate>,
    /// Its limits.
    pub limits: Limits,
    /// How long its frames are; `None` is the size of the generator's configuration.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// How its frames are marked.
    pub committed: Headers,
    /// How frames beyond the committed rate are marked, where the network is
    /// colour-aware.
    pub excess: Option<Headers>,
}
