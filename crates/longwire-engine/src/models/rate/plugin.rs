//! Rates from user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Loader};
use crate::models::Entry;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "departures from the hooks ready and depart of a C plugin",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let hook = PluginHook::load(arguments, Hook::Rate)?;
    Ok(Rate::Model(Box::new(PluginRate(hook))))
}

#[derive(Clone, Debug)]
struct PluginRate(PluginHook);

impl RateModel for PluginRate {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        let state = self.0.state();
        state.map_or(from, |state| state.ready(from, stream))
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let state = self.0.state();
        state.map_or(frame.at, |state| state.depart(frame, wire_bits, stream))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Option<BitRate> {
        self.0.hints().rate_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
