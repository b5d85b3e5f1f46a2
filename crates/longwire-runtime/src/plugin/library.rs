//! Loads plugin files and checks their version.

use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use longwire_engine::Hook;

use super::calls::{CallSite, Function};
use super::host::text_of;
use super::{abi, crash};

/// Failure to load a plugin.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PluginError {
    #[error("no such file")]
    Missing,
    #[error("not a regular file")]
    NotRegular,
    #[error("cannot be loaded: {0}")]
    Load(libloading::Error),
    #[error("does not export longwire_plugin; a plugin defines it with LONGWIRE_EXPORT")]
    NoEntry,
    #[error("longwire_plugin returned NULL")]
    NoPlugin,
    #[error(
        "built for plugin interface {found}, but this Longwire has {}; rebuild it with the \
         current longwire_plugin.h",
        abi::VERSION
    )]
    Version { found: u32 },
    #[error(
        "struct_size is {found}, but version {} needs at least {least}; set it to sizeof(struct \
         longwire_plugin)",
        abi::VERSION
    )]
    Size { found: u32, least: usize },
    #[error("has unknown hooks; it needs a newer Longwire")]
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
    #[error("has invalid hints: {0}")]
    Hints(String),
}

/// A loaded plugin file.
pub(super) struct Library {
    /// Its hooks.
    pub plugin: abi::Plugin,
    /// Its name in messages.
    pub name: String,
    pub site: &'static CallSite,
}

// SAFETY: the pointers refer to constants and functions in a library that stays loaded; a state's
// owner decides which thread calls them.
unsafe impl Send for Library {}
// SAFETY: as above; nothing in the value changes.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a file. A name without a slash refers to the working directory, not to a system
    /// library.
    ///
    /// # Errors
    /// The file is not a plugin of this version.
    pub fn load(file: &str) -> Result<Library, PluginError> {
        let path = if file.contains('/') {
            file.to_owned()
        } else {
            format!("./{file}")
        };
        match Path::new(&path).metadata() {
            // Opening a FIFO would block.
            Ok(metadata) if !metadata.is_file() => return Err(PluginError::NotRegular),
            Ok(_) => {}
            Err(_) => return Err(PluginError::Missing),
        }
        crash::install();
        let site = CallSite::of(file);
        // SAFETY: the library's initialisers run, as the user requested: a plugin is trusted like
        // the program itself.
        let open = || unsafe { Loaded::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = site.during(Function::Load, open);
        // Never unload the library: the plugin's threads and exit handlers would lose their code.
        let loaded = ManuallyDrop::new(loaded.map_err(PluginError::Load)?);
        // SAFETY: a function with this name has the type from the header.
        let entry = unsafe { loaded.get::<abi::Entry>(abi::ENTRY) };
        let entry = entry.map_err(|_| PluginError::NoEntry)?;
        // SAFETY: as above; the function has no arguments.
        let plugin = site.during(Function::Load, || unsafe { entry() });
        // SAFETY: the header requires a struct that never changes.
        let plugin = unsafe { checked(plugin) }?;
        // SAFETY: the header requires a string that never changes.
        let name = match unsafe { text_of(plugin.name) } {
            name if name.is_empty() => path,
            name => name,
        };
        crash::start_watchdog();
        Ok(Library { plugin, name, site })
    }

    /// Returns a plugin whose code is in the test.
    #[cfg(test)]
    pub fn of(plugin: abi::Plugin, name: &str) -> Library {
        Library {
            plugin,
            name: name.to_owned(),
            site: CallSite::of(name),
        }
    }

    /// Checks that the plugin has this hook.
    ///
    /// # Errors
    /// The plugin lacks the hook.
    pub fn require(&self, hook: Hook) -> Result<(), PluginError> {
        let plugin = &self.plugin;
        let hooks = [
            (Hook::Loss, "lose", "loss", plugin.lose.is_some()),
            (Hook::Delay, "delay", "delay", plugin.delay.is_some()),
            (Hook::Rate, "depart", "rate", plugin.depart.is_some()),
            (
                Hook::Rewrite,
                "rewrite",
                "rewrite",
                plugin.rewrite.is_some(),
            ),
        ];
        let lacking = hooks
            .iter()
            .find(|(of, .., present)| *of == hook && !present);
        let Some((_, wanted, option, _)) = lacking else {
            return Ok(());
        };
        let present = hooks.iter().filter(|(.., present)| *present);
        let present: Vec<&str> = present.map(|(_, name, ..)| *name).collect();
        let present = match present[..] {
            [] => "none".to_owned(),
            _ => present.join(", "),
        };
        Err(PluginError::NoHook {
            wanted,
            option,
            present,
        })
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &self.name).finish()
    }
}

/// Returns a copy of a plugin's struct after a version check.
///
/// # Safety
/// The pointer is null, or points to a struct that begins with a version and a size and has that
/// size.
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
    // SAFETY: the struct has this size.
    let beyond = unsafe { std::slice::from_raw_parts(plugin.add(1).cast::<u8>(), beyond) };
    if beyond.iter().any(|byte| *byte != 0) {
        return Err(PluginError::Newer);
    }
    // SAFETY: the struct has this program's version and size.
    Ok(unsafe { plugin.read() })
}
