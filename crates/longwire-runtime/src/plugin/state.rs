//! A plugin's state and the hooks that use it: one alone, or several of a
//! link.

use std::sync::{Arc, Mutex, PoisonError};

use longwire_engine::{Hook, Nanos};

use super::instance::Instance;
use super::library::{Library, PluginError};
use super::{CPlugin, Faults};

/// A plugin's state that several hooks of a link may use.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    /// As the user wrote it, for messages.
    file: Arc<str>,
    // Hooks of one link are called by one thread; but nothing about two boxed
    // models says so.
    instance: Arc<Mutex<Instance>>,
}

impl SharedState {
    /// Loads a plugin and makes a state of it.
    ///
    /// # Errors
    /// When the file is no plugin, or it refuses its parameters.
    pub fn create(file: &str, parameters: &[(String, String)]) -> Result<SharedState, PluginError> {
        let library = Arc::new(Library::load(file)?);
        let instance = Instance::create(library, parameters)?;
        Ok(SharedState {
            file: file.into(),
            instance: Arc::new(Mutex::new(instance)),
        })
    }

    /// One of its hooks.
    ///
    /// # Errors
    /// If the plugin does not have it.
    pub fn hook(&self, hook: Hook, faults: &Faults) -> Result<CPlugin, PluginError> {
        let instance = self.instance.lock();
        let instance = instance.unwrap_or_else(PoisonError::into_inner);
        instance.require(hook)?;
        instance.site().report_to(faults);
        Ok(CPlugin {
            file: Arc::clone(&self.file),
            hints: instance.hints(),
            state: State::Shared(Arc::clone(&self.instance)),
            epoch: Nanos::ZERO,
            faults: faults.clone(),
        })
    }

    /// Whether a hook still uses it, beside this.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.instance) > 1
    }
}

/// A state as a hook has it.
#[derive(Debug)]
pub(super) enum State {
    /// For itself alone.
    Own(Instance),
    /// With others. A lock costs more than the call itself (decision 0012).
    Shared(Arc<Mutex<Instance>>),
    /// On its way from one to the other.
    Gone,
}

impl State {
    /// Whoever is the only one left needs no lock from here on.
    pub fn settle(&mut self) {
        *self = match std::mem::replace(self, State::Gone) {
            State::Shared(instance) => match Arc::try_unwrap(instance) {
                Ok(alone) => State::Own(alone.into_inner().unwrap_or_else(PoisonError::into_inner)),
                Err(shared) => State::Shared(shared),
            },
            settled => settled,
        };
    }

    /// Calls one of the state's hooks.
    #[inline]
    pub fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Instance) -> Result<T, String>,
    ) -> Result<T, String> {
        match self {
            State::Own(instance) => call(instance),
            State::Shared(shared) => {
                call(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
            }
            State::Gone => Err("its state is gone".to_owned()),
        }
    }
}
