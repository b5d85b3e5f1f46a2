//! Propagation delay and jitter.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::frame_context::FrameContext;
use crate::loader::Loader;
use crate::models::{Kind, PartModel};
use crate::spec::SpecError;

pub mod cdf;
pub mod constant;
mod distributions;
pub mod per_packet;
pub mod plugin;
mod sampled;
pub mod samples;
mod schedule;
pub mod sinusoid;
pub mod steps;
pub mod table;
pub mod trace;
pub mod uniform;

/// A distribution of propagation delays.
pub trait DelayModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, first; `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Binds the model to per-link state, which only plugins have.
    ///
    /// # Errors
    /// If a plugin cannot be loaded.
    fn bind(&mut self, _loader: &dyn Loader) -> Result<(), SpecError> {
        Ok(())
    }

    /// Draws the delay of the next frame, which enters the medium at `frame.at`.
    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos;

    /// Draws the separate delay of a duplicate, without effect on the delays of later
    /// frames. The default suits models without memory.
    fn draw_copy(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        self.draw(frame, stream)
    }

    /// Returns the delay if it is constant.
    fn fixed(&self) -> Option<Nanos> {
        None
    }

    /// Returns a lower bound of the delays: how late a decision may be. Zero is always
    /// valid.
    fn least(&self) -> Nanos {
        self.fixed().unwrap_or(Nanos::ZERO)
    }

    /// Whether it reads frames' bytes, so that super-packets must be segmented first.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Returns the mean, for default queue limits and reports.
    fn mean(&self) -> Nanos;

    /// Writes the model in the user's notation.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(DelayModel);

impl PartModel for Box<dyn DelayModel> {
    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        (**self).bind(loader)
    }
}

impl Default for Box<dyn DelayModel> {
    /// No delay.
    fn default() -> Box<dyn DelayModel> {
        Box::new(constant::ConstantDelay(Nanos::ZERO))
    }
}

impl fmt::Display for dyn DelayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Delay models.
pub static KIND: Kind<Box<dyn DelayModel>> = Kind {
    name: "delay",
    example: "20ms",
    entries: &[
        constant::ENTRY,
        uniform::ENTRY,
        distributions::NORMAL,
        distributions::LOGNORMAL,
        distributions::GAMMA,
        distributions::EXPONENTIAL,
        distributions::PARETO,
        distributions::PARETO_NORMAL,
        distributions::WEIBULL,
        table::ENTRY,
        samples::ENTRY,
        cdf::ENTRY,
        per_packet::ENTRY,
        trace::ENTRY,
        steps::ENTRY,
        sinusoid::ENTRY,
        plugin::ENTRY,
    ],
};
