//! Rewriting by user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::RewriteModel;
use crate::loader::{Hook, Loader};
use crate::models::Entry;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn RewriteModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "rewriting by the hook rewrite of a C plugin, which cannot change the length",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn RewriteModel>, SpecError> {
    let hook = PluginHook::load(arguments, Hook::Rewrite)?;
    Ok(Box::new(PluginRewrite(hook)))
}

#[derive(Clone, Debug)]
struct PluginRewrite(PluginHook);

impl RewriteModel for PluginRewrite {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        if let Some(state) = self.0.state() {
            state.rewrite(at, bytes, stream);
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
