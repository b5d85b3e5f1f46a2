//! Files and plugins for models: what the engine, which does no I/O, is given
//! to read and load them with.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use longwire_engine::loader::{Hook, Loader, Plugin};

use crate::faults::Faults;
use crate::files::{FileAccess, FileError, FileReader, ReadLimits};
use crate::plugin::SharedState;

/// Reads the files and loads the plugins that the models of one direction of
/// a link name.
///
/// Hooks of that direction which name the same plugin with the same
/// parameters share one state of it. So each direction needs a loader of its
/// own; all of a run's report to the same [`Faults`].
#[derive(Debug, Default)]
pub struct FileLoader {
    faults: Faults,
    stop: Option<Arc<AtomicBool>>,
    states: Mutex<Vec<State>>,
}

/// A state of a plugin, and what it was made of.
#[derive(Debug)]
struct State {
    file: String,
    parameters: Vec<(String, String)>,
    /// The hooks that use it, each once: two models of one hook would share
    /// what they decide.
    hooks: Vec<Hook>,
    shared: SharedState,
}

impl FileLoader {
    /// A loader of files as this process sees them, whose plugins report to
    /// nobody: enough to see whether models are written well.
    pub fn new() -> FileLoader {
        FileLoader::default()
    }

    /// The same, with plugins that report to `faults` when they fail.
    pub fn reporting_to(faults: &Faults) -> FileLoader {
        FileLoader {
            faults: faults.clone(),
            ..FileLoader::default()
        }
    }

    /// The same, which gives up waiting for a file once this is set.
    #[must_use]
    pub fn until(self, stop: &Arc<AtomicBool>) -> FileLoader {
        FileLoader {
            stop: Some(Arc::clone(stop)),
            ..self
        }
    }

    /// What ends waiting for files.
    pub fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.stop.clone()
    }

    /// Begins to read a file.
    ///
    /// # Errors
    /// If there is no room for a thread that reads it.
    pub fn open(&self, path: &Path) -> Result<FileReader, FileError> {
        let (access, limits) = (FileAccess::Any, ReadLimits::default());
        FileReader::open(path, &access, limits, self.stop.clone())
    }
}

/// Loads a plugin and makes a state of it that nothing uses, on a thread of
/// its own: what a plugin does then may take any time. Returns the path to
/// load it by.
///
/// # Errors
/// What is wrong with the plugin or its parameters, or that it takes longer
/// than `time`.
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
        // Who asked may have given up.
        let _ = sender.send(created);
    };
    let thread = thread::Builder::new().name("longwire-plugin".to_owned());
    thread.spawn(create).map_err(|error| error.to_string())?;
    receiver.recv_timeout(time).unwrap_or_else(|_| {
        let seconds = time.as_secs();
        Err(format!(
            "was not loaded, or its create() not done, within {seconds} s"
        ))
    })
}

impl Loader for FileLoader {
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let said = |error: FileError| error.to_string();
        let mut reader = self.open(Path::new(path)).map_err(said)?;
        while let Some(piece) = reader.next_piece().map_err(said)? {
            take(&piece)?;
        }
        Ok(())
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        // Models that were only tried have given up theirs.
        states.retain(|state| state.shared.is_used());
        let fits = |state: &&mut State| {
            state.file == path && state.parameters == parameters && !state.hooks.contains(&hook)
        };
        if let Some(state) = states.iter_mut().find(fits) {
            let plugin = state.shared.hook(hook, &self.faults);
            let plugin = plugin.map_err(|error| error.to_string())?;
            state.hooks.push(hook);
            return Ok(Box::new(plugin));
        }
        let shared = SharedState::create(path, parameters).map_err(|error| error.to_string())?;
        let plugin = shared.hook(hook, &self.faults);
        let plugin = plugin.map_err(|error| error.to_string())?;
        states.push(State {
            file: path.to_owned(),
            parameters: parameters.to_vec(),
            hooks: vec![hook],
            shared,
        });
        Ok(Box::new(plugin))
    }
}
