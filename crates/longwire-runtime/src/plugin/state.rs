//! A plugin state, used by one or several hooks of a link.

use std::sync::{Arc, Mutex, PoisonError};

use longwire_engine::{Hook, Nanos};

use super::instance::Instance;
use super::library::{Library, PluginError};
use super::{CPlugin, Faults};

/// A plugin state that several hooks of a link may share.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    /// The path as given by the user, for messages.
    file: Arc<str>,
    // Hooks of one link run on one thread, but the types of two boxed models do not prove
    // it.
    instance: Arc<Mutex<Instance>>,
}

impl SharedState {
    /// Loads a plugin and creates a state.
    ///
    /// # Errors
    /// The file is not a plugin, or rejects its parameters.
    pub fn create(file: &str, parameters: &[(String, String)]) -> Result<SharedState, PluginError> {
        let library = Arc::new(Library::load(file)?);
        let instance = Instance::create(library, parameters)?;
        Ok(SharedState {
            file: file.into(),
            instance: Arc::new(Mutex::new(instance)),
        })
    }

    /// Returns one of its hooks.
    ///
    /// # Errors
    /// The plugin lacks it.
    pub fn hook(&self, hook: Hook, faults: &Faults) -> Result<CPlugin, PluginError> {
        let instance = self.instance.lock();
        let instance = instance.unwrap_or_else(PoisonError::into_inner);
        instance.require(hook)?;
        instance.site().report_to(faults);
        Ok(CPlugin {
            file: Arc::clone(&self.file),
            hints: instance.hints(),
            state: StateAccess::Shared(Arc::clone(&self.instance)),
            epoch: Nanos::ZERO,
            faults: faults.clone(),
        })
    }

    /// Whether a hook still uses the state.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.instance) > 1
    }
}

/// A hook's access to its state.
#[derive(Debug)]
pub(super) enum StateAccess {
    /// Exclusive. The lock is never taken; it makes the type `Sync`.
    Own(Mutex<Instance>),
    /// Shared by several hooks. A lock costs more than the call itself (decision 0012).
    Shared(Arc<Mutex<Instance>>),
    /// Temporary value during a transition.
    Gone,
}

impl StateAccess {
    /// Drops the lock if no other hook uses the state.
    pub fn settle(&mut self) {
        *self = match std::mem::replace(self, StateAccess::Gone) {
            StateAccess::Shared(instance) => match Arc::try_unwrap(instance) {
                Ok(alone) => StateAccess::Own(alone),
                Err(shared) => StateAccess::Shared(shared),
            },
            settled => settled,
        };
    }

    /// Calls a hook of the state.
    #[inline]
    pub fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Instance) -> Result<T, String>,
    ) -> Result<T, String> {
        match self {
            StateAccess::Own(own) => call(own.get_mut().unwrap_or_else(PoisonError::into_inner)),
            StateAccess::Shared(shared) => {
                call(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
            }
            StateAccess::Gone => Err("its state is gone".to_owned()),
        }
    }
}
