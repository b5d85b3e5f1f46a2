//! Ethernet services: rates, limits and markings.

use std::sync::Arc;

use crate::sizes::SizeModel;
use longwire_engine::BitRate;
use serde::Serialize;

use super::trial::Headers;

/// Limits of a service.
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
    /// Name.
    pub name: String,
    /// Committed information rate.
    pub cir: BitRate,
    /// Excess information rate.
    pub eir: Option<BitRate>,
    /// Limits.
    pub limits: Limits,
    /// Frame sizes; default: those of the generator.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// Marking of committed frames.
    pub committed: Headers,
    /// Marking of excess frames in colour-aware mode.
    pub excess: Option<Headers>,
}
