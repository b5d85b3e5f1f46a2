//! A plugin's file: loaded, and its version checked.

use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use longwire_engine::Hook;

use super::abi;
use super::host::text_of;

/// Why a plugin was refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PluginError {
    #[error("no such file")]
    Missing,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("cannot be loaded: {0}")]
    Load(libloading::Error),
    #[error(
        "does not export the function longwire_plugin: is it a plugin, and does the function's \
         definition begin with LONGWIRE_EXPORT?"
    )]
    NoEntry,
    #[error("its function longwire_plugin returned NULL")]
    NoPlugin,
    #[error(
        "built for version {found} of the plugin interface, and this Longwire has version {}: \
         build it again with this Longwire's longwire_plugin.h",
        abi::VERSION
    )]
    Version { found: u32 },
    #[error(
        "its struct longwire_plugin says that it has {found} bytes, and version {} has at least \
         {least}: set struct_size to sizeof(struct longwire_plugin)",
        abi::VERSION
    )]
    Size { found: u32, least: usize },
    #[error("has hooks that this Longwire does not know: a newer Longwire is needed")]
    Newer,
    #[error("has no hook '{wanted}', which --{option} needs; it has {present}")]
    NoHook {
        wanted: &'static str,
        option: &'static str,
        present: String,
    },
    #[error("{0}")]
    Parameters(String),
    #[error("create: {0}")]
    Create(String),
    #[error("its hints make no sense: {0}")]
    Hints(String),
}

/// A loaded plugin's file.
pub(super) struct Library {
    plugin: abi::Plugin,
    name: String,
    /// Never unloaded: threads that the plugin began, and functions that it
    /// left to be called at the program's end, would run into nothing.
    _loaded: ManuallyDrop<Loaded>,
}

// SAFETY: the pointers are to constants and functions of a library that
// stays loaded; which thread calls them is up to the owner of a state.
unsafe impl Send for Library {}
// SAFETY: as above; nothing here is changed.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a file. A name without a slash is one of this folder, not of
    /// the system's libraries.
    ///
    /// # Errors
    /// When it is no plugin of this version.
    pub fn load(path: &str) -> Result<Library, PluginError> {
        let path = match path.contains('/') {
            true => path.to_owned(),
            false => format!("./{path}"),
        };
        match Path::new(&path).metadata() {
            // To open a FIFO would wait for its other end.
            Ok(metadata) if !metadata.is_file() => return Err(PluginError::NotRegular),
            Ok(_) => {}
            Err(_) => return Err(PluginError::Missing),
        }
        // SAFETY: the library's initialisers run, as its user asked: a plugin
        // is trusted as the program itself is.
        let loaded = unsafe { Loaded::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = ManuallyDrop::new(loaded.map_err(PluginError::Load)?);
        // SAFETY: a function of this name has the type that the header gives
        // it.
        let entry = unsafe { loaded.get::<abi::Entry>(abi::ENTRY) };
        let entry = entry.map_err(|_| PluginError::NoEntry)?;
        // SAFETY: as above; it takes nothing.
        let plugin = unsafe { entry() };
        // SAFETY: the header asks for a struct that is never changed.
        let plugin = unsafe { checked(plugin) }?;
        let name = match text_of(plugin.name) {
            name if name.is_empty() => path,
            name => name,
        };
        Ok(Library {
            plugin,
            name,
            _loaded: loaded,
        })
    }

    /// Its hooks.
    pub fn plugin(&self) -> &abi::Plugin {
        &self.plugin
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// If it does not have this hook.
    pub fn require(&self, hook: Hook) -> Result<(), PluginError> {
        let present = self.present();
        let (wanted, option) = match hook {
            Hook::Loss => ("lose", "loss"),
            Hook::Delay => ("delay", "delay"),
            Hook::Rate => ("depart", "rate"),
            Hook::Rewrite => ("rewrite", "rewrite"),
        };
        if present.contains(&wanted) {
            return Ok(());
        }
        let present = match present.is_empty() {
            true => "none".to_owned(),
            false => present.join(", "),
        };
        Err(PluginError::NoHook {
            wanted,
            option,
            present,
        })
    }

    fn present(&self) -> Vec<&'static str> {
        let hooks = [
            ("lose", self.plugin.lose.is_some()),
            ("delay", self.plugin.delay.is_some()),
            ("depart", self.plugin.depart.is_some()),
            ("rewrite", self.plugin.rewrite.is_some()),
        ];
        let present = hooks.iter().filter(|(_, present)| *present);
        present.map(|(name, _)| *name).collect()
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &self.name).finish()
    }
}

/// A copy of a plugin's struct, once its version is known to be ours.
///
/// # Safety
/// The pointer is null or to a struct that begins with a version and a size,
/// and is as long as it says.
unsafe fn checked(plugin: *const abi::Plugin) -> Result<abi::Plugin, PluginError> {
    if plugin.is_null() {
        return Err(PluginError::NoPlugin);
    }
    // SAFETY: every version begins with these two fields.
    let [found, size] = unsafe { plugin.cast::<[u32; 2]>().read() };
    if found != abi::VERSION {
        return Err(PluginError::Version { found });
    }
    let least = size_of::<abi::Plugin>();
    let Some(beyond) = (size as usize).checked_sub(least) else {
        return Err(PluginError::Size { found: size, least });
    };
    // SAFETY: the struct is as long as it says.
    let beyond = unsafe { std::slice::from_raw_parts(plugin.add(1).cast::<u8>(), beyond) };
    if beyond.iter().any(|byte| *byte != 0) {
        return Err(PluginError::Newer);
    }
    // SAFETY: it is as long as ours, and of our version.
    Ok(unsafe { plugin.read() })
}
