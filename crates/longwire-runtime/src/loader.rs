//! Files and plugins for models: what the engine, which does no I/O, is given
//! to read and load them with.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::{Mutex, PoisonError};

use longwire_engine::loader::{Hook, Loader, Plugin};

use crate::faults::Faults;
use crate::plugin::SharedState;

/// How much is read at once: enough that system calls cost nothing beside
/// what is done with the bytes.
const PIECE: usize = 64 * 1024;

/// Reads the files and loads the plugins that the models of one direction of
/// a link name.
///
/// Hooks of that direction which name the same plugin with the same
/// parameters share one state of it. So each direction needs a loader of its
/// own; all of a run's report to the same [`Faults`].
#[derive(Debug, Default)]
pub struct FileLoader {
    faults: Faults,
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
            states: Mutex::default(),
        }
    }
}

impl Loader for FileLoader {
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        // Both directions of a link may read a file, and standard input can
        // be read only once.
        if path == "-" {
            return Err("standard input is not read here; name a file".to_owned());
        }
        let mut file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => "there is no such file".to_owned(),
            ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            _ => error.to_string(),
        })?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if metadata.is_dir() {
            return Err("it is a directory; name a file in it".to_owned());
        }
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => take(&piece[..length])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot be read to its end: {error}")),
            }
        }
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
