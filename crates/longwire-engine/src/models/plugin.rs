//! Parameters and state common to the `plugin` models of all kinds.

use crate::loader::{Hook, Plugin, PluginHints};
use crate::models::prelude::*;

/// Model name in every kind.
pub(crate) const NAME: &str = "plugin";

/// Path of the plugin.
pub(super) const FILE: Param = Param::new(
    "file",
    Unit::File("a shared library that exports longwire_plugin"),
)
.help("shared library built with longwire_plugin.h (docs/plugins.md)");

/// Parameters passed to the plugin.
pub(super) const OWN: Param =
    Param::new("key", Unit::Rest).help("other key=value pairs are passed to the plugin");

/// A plugin hook with its state.
///
/// Clones have no state: the hooks of a link share it, and only the link's loader provides it, so a
/// plugin is loaded again for every link. A hook without state neither drops, delays nor edits
/// frames.
#[derive(Debug)]
pub(super) struct PluginHook {
    pub hints: PluginHints,
    state: Option<Box<dyn Plugin>>,
}

impl Clone for PluginHook {
    fn clone(&self) -> PluginHook {
        PluginHook {
            hints: self.hints,
            state: None,
        }
    }
}

impl PluginHook {
    /// Loads the plugin named in the arguments.
    pub fn load(arguments: &Arguments<'_>, hook: Hook) -> Result<PluginHook, SpecError> {
        let state = arguments.plugin(FILE.name, hook)?;
        Ok(PluginHook {
            hints: state.hints(),
            state: Some(state),
        })
    }

    pub fn start(&mut self, epoch: Nanos) {
        if let Some(state) = &mut self.state {
            state.start(epoch);
        }
    }

    /// Returns the state, which clones lack.
    #[inline]
    pub fn state(&mut self) -> Option<&mut (dyn Plugin + 'static)> {
        self.state.as_deref_mut()
    }
}
