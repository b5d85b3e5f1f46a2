//! Delays from user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Loader};
use crate::models::Entry;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "delays from the hook delay of a C plugin",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let hook = PluginHook::load(arguments, Hook::Delay)?;
    Ok(Box::new(PluginDelay(hook)))
}

#[derive(Clone, Debug)]
struct PluginDelay(PluginHook);

impl DelayModel for PluginDelay {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let least = self.least();
        let state = self.0.state();
        // A failed plugin returns no delay. The lower bound holds until the run ends,
        // because callers rely on it.
        state.map_or(least, |state| state.delay(frame, stream).max(least))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn least(&self) -> Nanos {
        self.0.hints().delay_least
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Nanos {
        self.0.hints().delay_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
