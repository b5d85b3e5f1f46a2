//! Propagation delay and jitter.

use dyn_clone::DynClone;

use crate::loader::{Hook, Loader};
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::models::prelude::*;

mod distributions;
mod files;
mod sampled;
mod schedule;
mod sinusoid;

/// A distribution of propagation delays.
pub trait DelayModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Binds the model to per-link state, which only plugins have.
    ///
    /// # Errors
    /// If a plugin cannot be loaded.
    fn bind(&mut self, _loader: &dyn Loader) -> Result<(), SpecError> {
        Ok(())
    }

    /// Draws the next frame's delay; the frame enters the medium at `frame.at`.
    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos;

    /// Draws a delay for a duplicate without affecting later frames. The default suits memoryless
    /// models.
    fn draw_copy(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        self.draw(frame, stream)
    }

    /// Returns the delay if it is constant.
    fn fixed(&self) -> Option<Nanos> {
        None
    }

    /// Returns a lower bound on the delays, which limits how late a decision may be. Zero is always
    /// valid.
    fn least(&self) -> Nanos {
        self.fixed().unwrap_or(Nanos::ZERO)
    }

    /// Whether the model reads frame bytes, which requires super-packets to be segmented first.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Returns the mean, for default queue limits and reports.
    fn mean(&self) -> Nanos;

    /// Writes the model's specification text.
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
        Box::new(ConstantDelay(Nanos::ZERO))
    }
}

impl fmt::Display for dyn DelayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

const CONSTANT: Entry<Box<dyn DelayModel>> = Entry::new(
    "constant",
    "the same delay for every frame",
    &[Param::new("delay", Unit::Time).help("one-way propagation delay")],
    |arguments| Ok(Box::new(ConstantDelay(arguments.required("delay")?))),
);

/// A constant delay.
#[derive(Clone, Copy, Debug)]
pub struct ConstantDelay(pub Nanos);

impl DelayModel for ConstantDelay {
    fn draw(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.0
    }

    fn fixed(&self) -> Option<Nanos> {
        Some(self.0)
    }

    fn mean(&self) -> Nanos {
        self.0
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

const PLUGIN: Entry<Box<dyn DelayModel>> = Entry::new(
    NAME,
    "delays from a C plugin's delay hook",
    &[FILE, OWN],
    |arguments| Ok(Box::new(PluginHook::load(arguments, Hook::Delay)?)),
);

impl DelayModel for PluginHook {
    fn start(&mut self, epoch: Nanos) {
        PluginHook::start(self, epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        PluginHook::bind(self, loader)
    }

    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let least = self.least();
        let state = self.state();
        // A failed plugin returns zero, but callers rely on the lower bound until the run ends.
        state.map_or(least, |state| state.delay(frame, stream).max(least))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn least(&self) -> Nanos {
        self.hints.delay_least
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Nanos {
        self.hints.delay_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Delay models.
pub static KIND: Kind<Box<dyn DelayModel>> = Kind {
    name: "delay",
    example: "20ms",
    entries: &[
        CONSTANT,
        distributions::UNIFORM,
        distributions::NORMAL,
        distributions::LOGNORMAL,
        distributions::GAMMA,
        distributions::EXPONENTIAL,
        distributions::PARETO,
        distributions::PARETO_NORMAL,
        distributions::WEIBULL,
        files::TABLE,
        files::SAMPLES,
        files::CDF,
        files::PER_PACKET,
        schedule::TRACE,
        schedule::STEPS,
        sinusoid::ENTRY,
        PLUGIN,
    ],
};
