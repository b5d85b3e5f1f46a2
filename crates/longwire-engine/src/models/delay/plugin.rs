//! Delays decided by user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Plugin};
use crate::models::Entry;
use crate::models::plugin::{self, FILE, NAME, OWN, PluginText};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "the hook delay of a plugin in C decides about each frame",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let (plugin, written) = plugin::load(arguments, Hook::Delay)?;
    Ok(Box::new(PluginDelay { plugin, written }))
}

#[derive(Debug)]
struct PluginDelay {
    plugin: Box<dyn Plugin>,
    written: PluginText,
}

impl DelayModel for PluginDelay {
    fn start(&mut self, epoch: Nanos) {
        self.plugin.start(epoch);
    }

    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        self.plugin.delay(frame, stream)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn least(&self) -> Nanos {
        self.plugin.hints().delay_least
    }

    /// Returns the plugin's statement, which may not be exact.
    fn mean(&self) -> Nanos {
        self.plugin.hints().delay_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}
