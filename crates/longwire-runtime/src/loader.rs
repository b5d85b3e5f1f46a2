//! Loads files and plugins for the engine's models. The engine does no I/O.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use longwire_capture::files::{FileAccess, FileError, FileReader, ReadLimits};
use longwire_engine::loader::{Hook, Loader, Plugin, TakePiece};

use crate::faults::Faults;
use crate::plugin::{PluginError, SharedState};
use crate::sync::locked;

/// Reads the files and loads the plugins that models name.
///
/// A link's hooks with the same plugin and parameters share one plugin state
/// ([`Loader::begin_link`]). A state created to check a specification is reused by the first link
/// built by the same loader.
#[derive(Debug, Default)]
pub struct FileLoader {
    faults: Faults,
    access: FileAccess,
    plugins: PluginUse,
    stop: Option<Arc<AtomicBool>>,
    states: Mutex<Vec<LoadedState>>,
}

/// A loader's treatment of plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PluginUse {
    /// Loads permitted plugins.
    #[default]
    Load,
    /// Only checks that the file is permitted, because another process loads it.
    Defer,
    /// Refuses all plugins with this reason.
    Refuse(&'static str),
}

/// Placeholder for a plugin that another process loads.
#[derive(Debug)]
struct DeferredPlugin;

impl Plugin for DeferredPlugin {}

/// A plugin state, with the file and parameters that created it.
#[derive(Debug)]
struct LoadedState {
    file: String,
    parameters: Vec<(String, String)>,
    /// Hooks that use the state, each at most once: otherwise, two models of one hook would share
    /// decisions.
    hooks: Vec<Hook>,
    shared: SharedState,
}

impl FileLoader {
    /// Returns a loader with default file access, to check models. Plugin faults are not reported
    /// to a run.
    pub fn new() -> FileLoader {
        FileLoader::default()
    }

    /// Returns a loader whose plugins report faults to `faults`.
    pub fn reporting_to(faults: &Faults) -> FileLoader {
        FileLoader {
            faults: faults.clone(),
            ..FileLoader::default()
        }
    }

    /// Makes the loader stop waiting for files once `stop` is set.
    #[must_use]
    pub fn until(mut self, stop: &Arc<AtomicBool>) -> FileLoader {
        self.stop = Some(Arc::clone(stop));
        self
    }

    /// Restricts the files and plugins that may be named.
    #[must_use]
    pub fn with_access(self, access: FileAccess) -> FileLoader {
        FileLoader { access, ..self }
    }

    /// Restricts the plugins that are loaded.
    #[must_use]
    pub fn with_plugins(self, plugins: PluginUse) -> FileLoader {
        FileLoader { plugins, ..self }
    }

    /// Returns the file access that the loader permits.
    pub fn access(&self) -> &FileAccess {
        &self.access
    }

    /// Checks that a plugin is permitted, without looking up its file.
    ///
    /// # Errors
    /// Plugins or the path are refused.
    pub fn check_plugin(&self, path: &str, access: &FileAccess) -> Result<(), String> {
        if let PluginUse::Refuse(reason) = self.plugins {
            return Err(reason.to_owned());
        }
        access
            .check(Path::new(path))
            .map_err(|error| error.to_string())
    }

    /// Returns the flag that aborts waiting for files.
    pub fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.stop.clone()
    }

    /// Starts reading a file.
    ///
    /// # Errors
    /// The path is refused, or no reader thread can be started.
    pub fn open(&self, path: &Path) -> Result<FileReader, FileError> {
        FileReader::open(path, &self.access, ReadLimits::default(), self.stop.clone())
    }
}

/// Loads a plugin, creates a state to check it, and returns the path to load the plugin from. Runs
/// on a separate thread, because plugin code may block.
///
/// # Errors
/// The plugin or its parameters are invalid, or loading and creation exceed `time`.
pub fn try_plugin(
    path: &str,
    access: &FileAccess,
    parameters: &[(String, String)],
    time: Duration,
) -> Result<PathBuf, String> {
    let (sender, receiver) = channel();
    let (path, access, parameters) = (path.to_owned(), access.clone(), parameters.to_vec());
    let create = move || {
        let created = access.resolve(&path).map_err(|error| error.to_string());
        let created = created.and_then(|path| {
            let state = SharedState::create(&path.to_string_lossy(), &parameters);
            state.map(|_| path).map_err(|error| error.to_string())
        });
        // The caller may have timed out.
        let _ = sender.send(created);
    };
    let thread = thread::Builder::new().name("longwire-plugin".to_owned());
    thread.spawn(create).map_err(|error| error.to_string())?;
    receiver.recv_timeout(time).unwrap_or_else(|_| {
        let seconds = time.as_secs();
        Err(format!(
            "not loaded within {seconds} s; its create() may not have returned"
        ))
    })
}

impl Loader for FileLoader {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let said = |error: FileError| error.to_string();
        let mut reader = self.open(Path::new(path)).map_err(said)?;
        while let Some(piece) = reader.next_piece().map_err(said)? {
            take(&piece)?;
        }
        Ok(())
    }

    fn begin_link(&self) {
        let mut states = locked(&self.states);
        states.retain(|state| !state.shared.is_used());
        for state in &mut *states {
            state.hooks.clear();
        }
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        let said = |error: PluginError| error.to_string();
        self.check_plugin(path, &self.access)?;
        if self.plugins == PluginUse::Defer {
            let found = self.access.resolve(path);
            found.map_err(|error| error.to_string())?;
            return Ok(Box::new(DeferredPlugin));
        }
        let mut states = locked(&self.states);
        let fits = |state: &&mut LoadedState| {
            state.file == path && state.parameters == parameters && !state.hooks.contains(&hook)
        };
        if let Some(state) = states.iter_mut().find(fits) {
            let plugin = state.shared.hook(hook, &self.faults).map_err(said)?;
            state.hooks.push(hook);
            return Ok(Box::new(plugin));
        }
        let shared = SharedState::create(path, parameters).map_err(said)?;
        let plugin = shared.hook(hook, &self.faults).map_err(said)?;
        states.push(LoadedState {
            file: path.to_owned(),
            parameters: parameters.to_vec(),
            hooks: vec![hook],
            shared,
        });
        Ok(Box::new(plugin))
    }
}
