//! Parameters, specification text and state common to the `plugin` models of all kinds.

use crate::loader::{Hook, Loader, Plugin, PluginHints};
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

/// A plugin hook with its specification and state.
///
/// Clones are unbound: the hooks of a link share state, which only the link's loader provides
/// ([`PluginHook::bind`]). An unbound hook neither drops, delays nor edits frames.
#[derive(Debug)]
pub(super) struct PluginHook {
    hook: Hook,
    file: String,
    own: Vec<(String, String)>,
    pub hints: PluginHints,
    state: Option<Box<dyn Plugin>>,
}

impl Clone for PluginHook {
    fn clone(&self) -> PluginHook {
        PluginHook {
            hook: self.hook,
            file: self.file.clone(),
            own: self.own.clone(),
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
            hook,
            file: arguments.word(FILE.name).unwrap_or_default().into(),
            own: arguments.rest().to_vec(),
            hints: state.hints(),
            state: Some(state),
        })
    }

    /// Binds the hook to its state for one link.
    ///
    /// # Errors
    /// If the plugin cannot be loaded or rejects its parameters.
    pub fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        let state = loader.plugin(&self.file, self.hook, &self.own);
        let state = state.map_err(|message| SpecError::File {
            model: NAME,
            key: FILE.name,
            path: self.file.clone(),
            message,
        })?;
        self.hints = state.hints();
        self.state = Some(state);
        Ok(())
    }

    pub fn start(&mut self, epoch: Nanos) {
        if let Some(state) = &mut self.state {
            state.start(epoch);
        }
    }

    /// Returns the state; `None` if unbound.
    #[inline]
    pub fn state(&mut self) -> Option<&mut dyn Plugin> {
        match &mut self.state {
            Some(state) => Some(&mut **state),
            None => None,
        }
    }
}

impl fmt::Display for PluginHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}:{}={}", FILE.name, self.file)?;
        self.own
            .iter()
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}
