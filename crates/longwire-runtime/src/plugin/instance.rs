//! Plugin states: creation, hooks, destruction, and sharing between a link's hooks.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use longwire_engine::{BitRate, Hook, Nanos, PluginHints};

use super::abi::{self, Decide};
use super::calls::Function;
use super::host::{CreateParameters, HookRandom, PluginHost};
use super::library::{Library, PluginError};
use super::{CPlugin, Faults};
use crate::sync::locked;

/// A hook that fills an array of results: the function and its field.
pub(super) type DecideHook<T> = (Function, fn(&abi::Plugin) -> Option<Decide<T>>);

/// Decides which frames are lost.
pub(super) const LOSE: DecideHook<u8> = (Function::Lose, |plugin| plugin.lose);
/// Decides delays.
pub(super) const DELAY: DecideHook<i64> = (Function::Delay, |plugin| plugin.delay);
/// Decides departures.
pub(super) const DEPART: DecideHook<i64> = (Function::Depart, |plugin| plugin.depart);

/// A plugin's state, for one direction of a link.
pub(super) struct Instance {
    library: Arc<Library>,
    // The plugin keeps the host's address. An `Arc`, because moving a `Box` asserts that no other
    // pointer to its content is in use.
    host: Arc<PluginHost>,
    state: *mut c_void,
    hints: PluginHints,
}

// SAFETY: the header requires that different threads can use a state one after another, and this
// value's owner uses it from one thread at a time.
unsafe impl Send for Instance {}

impl Instance {
    /// Creates a plugin state.
    ///
    /// # Errors
    /// The plugin rejects its parameters.
    pub fn create(
        library: Arc<Library>,
        parameters: &[(String, String)],
    ) -> Result<Instance, PluginError> {
        let host = Arc::new(PluginHost::new(library.name.clone()));
        let site = library.site;
        let mut hints = abi::Hints {
            struct_size: size_of::<abi::Hints>() as u32,
            ..abi::Hints::default()
        };
        let mut state = std::ptr::null_mut();
        let given = CreateParameters::new(&host, parameters).map_err(PluginError::Parameters)?;
        let result = match library.plugin.create {
            // SAFETY: all pointers are valid during the call, and the host outlives the state.
            Some(create) => site.during(Function::Create, || unsafe {
                create(
                    host.as_raw(),
                    given.as_raw(),
                    &raw mut hints,
                    &raw mut state,
                )
            }),
            None => abi::OK,
        };
        if result != abi::OK || host.has_failed() {
            // A plugin cleans up after its own failed creation.
            return Err(PluginError::Create(host.failure()));
        }
        let unknown = given.unknown_parameter();
        drop(given);
        // From this point on, the state is always destroyed.
        let mut instance = Instance {
            library,
            host,
            state,
            hints: PluginHints::default(),
        };
        if let Some(message) = unknown {
            return Err(PluginError::Parameters(message));
        }
        instance.hints = checked_hints(&hints).map_err(PluginError::Hints)?;
        Ok(instance)
    }

    /// Calls the hook `ready`; `None` if the plugin lacks it.
    #[inline]
    pub fn ready(&mut self, random: &mut HookRandom<'_>, from: i64) -> Result<Option<i64>, String> {
        let Some(hook) = self.library.plugin.ready else {
            return Ok(None);
        };
        let mut ready = abi::INVALID;
        // SAFETY: the state is the plugin's own, and all pointers are valid during the call.
        self.call(Function::Ready, random, |state, random| unsafe {
            hook(state, random, from, &raw mut ready)
        })?;
        Ok(Some(ready))
    }

    /// Calls the hook `rewrite`. The packets point to `bytes`.
    #[inline]
    pub fn rewrite(
        &mut self,
        random: &mut HookRandom<'_>,
        packets: &[abi::Packet],
        bytes: &[*mut u8],
    ) -> Result<(), String> {
        debug_assert_eq!(packets.len(), bytes.len());
        let Some(hook) = self.library.plugin.rewrite else {
            return Err("the plugin has no rewrite hook".to_owned());
        };
        let count = packets.len().min(bytes.len());
        // SAFETY: as for `ready`; the caller lends the bytes for writing during the call.
        self.call(Function::Rewrite, random, |state, random| unsafe {
            hook(state, random, packets.as_ptr(), count, bytes.as_ptr())
        })
    }

    /// Calls a hook that fills an array of results.
    #[inline]
    pub fn decide<T>(
        &mut self,
        (function, hook): DecideHook<T>,
        random: &mut HookRandom<'_>,
        packets: &[abi::Packet],
        results: &mut [T],
    ) -> Result<(), String> {
        debug_assert_eq!(packets.len(), results.len());
        let Some(hook) = hook(&self.library.plugin) else {
            return Err(format!("the plugin has no {} hook", function.name()));
        };
        let count = packets.len().min(results.len());
        // SAFETY: the state is the plugin's own; there are `count` packets and results, all of
        // which live during the call.
        self.call(function, random, |state, random| unsafe {
            hook(state, random, packets.as_ptr(), count, results.as_mut_ptr())
        })
    }

    /// Calls a hook with the state and its random numbers, and checks its result.
    #[inline]
    fn call(
        &self,
        function: Function,
        random: &mut HookRandom<'_>,
        call: impl FnOnce(*mut c_void, *mut abi::Random) -> c_int,
    ) -> Result<(), String> {
        let (state, raw) = (self.state, random.as_raw());
        let site = self.library.site;
        let result = site.during(function, || call(state, raw));
        let misuse = random.misuse();
        if result == abi::OK && misuse.is_none() && !self.host.has_failed() {
            return Ok(());
        }
        Err(self.fault(function, misuse))
    }

    #[cold]
    fn fault(&self, function: Function, misuse: Option<String>) -> String {
        let why = misuse.unwrap_or_else(|| self.host.failure());
        format!("{}: {why}", function.name())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let plugin = &self.library.plugin;
        if let (Some(_), Some(destroy)) = (plugin.create, plugin.destroy) {
            let state = self.state;
            // SAFETY: `create` made this state; it is destroyed once, and nothing uses it
            // afterwards.
            let call = || unsafe { destroy(state) };
            self.library.site.during(Function::Destroy, call);
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Instance");
        debug.field("library", &self.library);
        debug.field("hints", &self.hints).finish_non_exhaustive()
    }
}

fn checked_hints(hints: &abi::Hints) -> Result<PluginHints, String> {
    let time = |name, nanos| {
        let time = u64::try_from(nanos).map_err(|_| format!("{name} is {nanos}, below 0"))?;
        Ok::<_, String>(Nanos::from_nanos(time))
    };
    let rate = hints.rate_mean_bits_per_second;
    let rate_mean = BitRate::from_bits_per_sec(rate);
    if rate_mean.is_none() && rate != 0 {
        return Err(format!(
            "rate_mean_bits_per_second is {rate}, above the maximum, {}",
            BitRate::MAX
        ));
    }
    Ok(PluginHints {
        delay_mean: time("delay_mean_ns", hints.delay_mean_ns)?,
        delay_least: time("delay_least_ns", hints.delay_least_ns)?,
        rate_mean,
    })
}

/// A plugin state that several of a link's hooks may share.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    /// The path given by the user, for messages.
    file: Arc<str>,
    // A link's hooks run on one thread, but the type system cannot prove this for two boxed models.
    instance: Arc<Mutex<Instance>>,
}

impl SharedState {
    /// Loads a plugin and creates a state.
    ///
    /// # Errors
    /// The file is not a plugin, or the plugin rejects its parameters.
    pub fn create(file: &str, parameters: &[(String, String)]) -> Result<SharedState, PluginError> {
        let library = Arc::new(Library::load(file)?);
        let instance = Instance::create(library, parameters)?;
        Ok(SharedState {
            file: file.into(),
            instance: Arc::new(Mutex::new(instance)),
        })
    }

    /// Returns one of the state's hooks.
    ///
    /// # Errors
    /// The plugin lacks the hook.
    pub fn hook(&self, hook: Hook, faults: &Faults) -> Result<CPlugin, PluginError> {
        let instance = locked(&self.instance);
        instance.library.require(hook)?;
        instance.library.site.report_to(faults);
        Ok(CPlugin {
            file: Arc::clone(&self.file),
            hints: instance.hints,
            state: StateAccess::Shared(Arc::clone(&self.instance)),
            epoch: Nanos::ZERO,
            faults: faults.clone(),
        })
    }

    /// Returns whether a hook still uses the state.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.instance) > 1
    }
}

/// A hook's access to its state.
#[derive(Debug)]
pub(super) enum StateAccess {
    /// Exclusive access. The lock is never taken; it makes the type `Sync`.
    Own(Mutex<Instance>),
    /// Shared between several hooks. A lock costs more than the call itself (decision 0012).
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

    /// Calls one of the state's hooks.
    #[inline]
    pub fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Instance) -> Result<T, String>,
    ) -> Result<T, String> {
        match self {
            StateAccess::Own(own) => call(own.get_mut().unwrap_or_else(PoisonError::into_inner)),
            StateAccess::Shared(shared) => call(&mut locked(shared)),
            StateAccess::Gone => Err("its state is gone".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_char;

    use longwire_units::random::{Purpose, Stream};

    use super::*;

    /// A state that keeps its host, as real plugins do.
    struct Kept {
        host: *const abi::Host,
    }

    unsafe extern "C" fn create(
        host: *const abi::Host,
        _: *const abi::Parameters,
        _: *mut abi::Hints,
        state: *mut *mut c_void,
    ) -> c_int {
        let kept = Box::into_raw(Box::new(Kept { host }));
        // SAFETY: `create` receives this place for the state.
        unsafe { state.write(kept.cast()) };
        abi::OK
    }

    unsafe extern "C" fn destroy(state: *mut c_void) {
        // SAFETY: `create` returned this pointer, which is released once.
        drop(unsafe { Box::from_raw(state.cast::<Kept>()) });
    }

    unsafe extern "C" fn lose(
        state: *mut c_void,
        random: *mut abi::Random,
        packets: *const abi::Packet,
        count: usize,
        fates: *mut u8,
    ) -> c_int {
        const WHY: *const c_char = c"a packet of 7 bytes".as_ptr();
        // SAFETY: `create` made the state with this host, and there are `count` packets and
        // results.
        unsafe {
            let host = (*state.cast::<Kept>()).host;
            for at in 0..count {
                fates.add(at).write(((*host).up_to)(random, 0) as u8);
                if (*packets.add(at)).length == 7 {
                    return ((*host).fail)(host, WHY);
                }
            }
        }
        abi::OK
    }

    /// The plugin is written in Rust, so that Miri can check that the host's address stays valid
    /// when the state moves.
    #[test]
    fn a_state_uses_its_host_after_it_has_moved() {
        let plugin = abi::Plugin {
            create: Some(create),
            destroy: Some(destroy),
            lose: Some(lose),
            abi: abi::VERSION,
            struct_size: size_of::<abi::Plugin>() as u32,
            name: c"moved".as_ptr(),
            delay: None,
            ready: None,
            depart: None,
            rewrite: None,
        };
        let library = Arc::new(Library::of(plugin, "moved"));
        let made = Instance::create(library, &[]).expect("it takes no parameters");
        let mut moved = [Box::new(made)];
        let mut stream = Stream::new(1, 0, Purpose::MediumLoss);
        let mut packet = abi::Packet {
            at_ns: 0,
            arrival_ns: 0,
            bytes: std::ptr::null(),
            bytes_count: 0,
            length: 60,
            wire_bits: 0,
            queue_packets: 0,
            queue_bytes: 0,
        };
        let mut fates = [abi::NO_FATE];
        let mut lose = |packet: abi::Packet| {
            let mut random = HookRandom::new(&mut stream);
            moved[0].decide(LOSE, &mut random, &[packet], &mut fates)
        };
        assert_eq!(lose(packet), Ok(()));
        packet.length = 7;
        let refused = lose(packet);
        assert_eq!(refused, Err("lose: a packet of 7 bytes".to_owned()));
        assert_eq!(fates, [0]);
    }
}
