//! Propagation delay and jitter.

use dyn_clone::DynClone;

use crate::loader::Hook;
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
}

dyn_clone::clone_trait_object!(DelayModel);

impl Default for Described<dyn DelayModel> {
    /// No delay.
    fn default() -> Described<dyn DelayModel> {
        Nanos::ZERO.into()
    }
}

impl From<Nanos> for Described<dyn DelayModel> {
    /// Creates a constant delay.
    fn from(delay: Nanos) -> Described<dyn DelayModel> {
        Described::new(delay.to_string(), Box::new(ConstantDelay(delay)))
    }
}

const CONSTANT: Entry<Described<dyn DelayModel>> = Entry::new(
    "constant",
    "the same delay for every frame",
    &[Param::new("delay", Unit::Time).help("one-way propagation delay")],
    |arguments| Ok(arguments.required::<Nanos>("delay")?.into()),
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
}

const PLUGIN: Entry<Described<dyn DelayModel>> = Entry::new(
    NAME,
    "delays from a C plugin's delay hook",
    &[FILE, OWN],
    |arguments| Ok(arguments.described(Box::new(PluginHook::load(arguments, Hook::Delay)?))),
);

impl DelayModel for PluginHook {
    fn start(&mut self, epoch: Nanos) {
        PluginHook::start(self, epoch);
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
}

/// Delay models.
pub static KIND: Kind<Described<dyn DelayModel>> = Kind {
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
