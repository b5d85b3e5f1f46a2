//! Losses from user code.

use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Loader};
use crate::models::Entry;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "losses from the hook lose of a C plugin",
    params: &[FILE, PLACE, ECN, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let hook = PluginHook::load(arguments, Hook::Loss)?;
    placed(arguments, PluginLoss(hook))
}

#[derive(Clone, Debug)]
struct PluginLoss(PluginHook);

impl LossModel for PluginLoss {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.0.state()?.lose(frame, stream)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
