//! Common parts of the models `plugin` of all kinds: their parameters, and their
//! notation.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::loader::{Hook, Plugin};
use crate::spec::{Arguments, Param, SpecError, Unit};

/// The name of the models in every kind.
pub(crate) const NAME: &str = "plugin";

/// The parameter that names the plugin.
pub(crate) const FILE: Param = Param {
    name: "file",
    unit: Unit::File("a shared library that exports longwire_plugin"),
    default: None,
    help: "the plugin: a shared library built against longwire_plugin.h (docs/plugins.md)",
};

/// The plugin's own parameters.
pub(crate) const OWN: Param = Param {
    name: "key",
    unit: Unit::Rest,
    default: None,
    help: "any other key=value is the plugin's own parameter",
};

/// A plugin as its user wrote it.
#[derive(Debug)]
pub(crate) struct PluginText {
    file: String,
    own: Vec<(String, String)>,
}

/// Loads the plugin that the arguments name.
pub(crate) fn load(
    arguments: &Arguments<'_>,
    hook: Hook,
) -> Result<(Box<dyn Plugin>, PluginText), SpecError> {
    let plugin = arguments.plugin(FILE.name, hook)?;
    let written = PluginText {
        file: arguments.word(FILE.name).unwrap_or_default().into(),
        own: arguments.rest().to_vec(),
    };
    Ok((plugin, written))
}

impl fmt::Display for PluginText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}:{}={}", FILE.name, self.file)?;
        self.own
            .iter()
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}
