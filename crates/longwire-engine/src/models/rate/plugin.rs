//! Rates decided by user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Plugin};
use crate::models::Entry;
use crate::models::plugin::{self, FILE, NAME, OWN, PluginText};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// The registry line.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "the hooks ready and depart of a plugin in C decide when each frame leaves",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let (plugin, written) = plugin::load(arguments, Hook::Rate)?;
    Ok(Rate::Model(Box::new(PluginRate { plugin, written })))
}

#[derive(Debug)]
struct PluginRate {
    plugin: Box<dyn Plugin>,
    written: PluginText,
}

impl RateModel for PluginRate {
    fn start(&mut self, epoch: Nanos) {
        self.plugin.start(epoch);
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        self.plugin.ready(from, stream)
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        self.plugin.depart(frame, wire_bits, stream)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    /// Returns the plugin's statement, which may not be exact.
    fn mean(&self) -> Option<BitRate> {
        self.plugin.hints().rate_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}
