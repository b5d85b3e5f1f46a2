//! Bytes changed by user code.

use alloc::boxed::Box;
use core::fmt::{self, Display};

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::RewriteModel;
use crate::loader::{Hook, Plugin};
use crate::models::Entry;
use crate::models::plugin::{self, FILE, NAME, OWN, PluginText};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// The registry line.
pub const ENTRY: Entry<Box<dyn RewriteModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: NAME,
    summary: "the hook rewrite of a plugin in C changes the bytes of each frame, not its length",
    params: &[FILE, OWN],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn RewriteModel>, SpecError> {
    let (plugin, written) = plugin::load(arguments, Hook::Rewrite)?;
    Ok(Box::new(PluginRewrite { plugin, written }))
}

#[derive(Debug)]
struct PluginRewrite {
    plugin: Box<dyn Plugin>,
    written: PluginText,
}

impl RewriteModel for PluginRewrite {
    fn start(&mut self, epoch: Nanos) {
        self.plugin.start(epoch);
    }

    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        self.plugin.rewrite(at, bytes, stream);
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}
