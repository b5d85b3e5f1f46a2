//! Losses decided by user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Plugin};
use crate::models::Entry;
use crate::models::plugin::{self, FILE, NAME, OWN, PluginText};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// The registry line.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "the hook lose of a plugin in C decides about each frame",
    params: &[FILE, PLACE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let (plugin, written) = plugin::load(arguments, Hook::Loss)?;
    placed(arguments, PluginLoss { plugin, written })
}

#[derive(Debug)]
struct PluginLoss {
    plugin: Box<dyn Plugin>,
    written: PluginText,
}

impl LossModel for PluginLoss {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&mut self, epoch: Nanos) {
        self.plugin.start(epoch);
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.plugin.lose(frame, stream)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}
