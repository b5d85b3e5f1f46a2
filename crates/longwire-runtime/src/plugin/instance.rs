//! A state of a plugin: made, used by its hooks, and destroyed.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::Arc;

use longwire_engine::{BitRate, Hook, Nanos, PluginHints};

use super::abi::{self, Decide};
use super::host::{Host, Random};
use super::library::{Library, PluginError};
use super::parameters::Parameters;

/// A state of a plugin, for one direction of a link.
pub(super) struct Instance {
    library: Arc<Library>,
    // Boxed: the plugin keeps its address.
    host: Box<Host>,
    state: *mut c_void,
    hints: PluginHints,
}

// SAFETY: the header says that a state may be used by one thread after
// another, and whoever owns this value uses it from one at a time.
unsafe impl Send for Instance {}

impl Instance {
    /// Makes a state.
    ///
    /// # Errors
    /// When the plugin refuses its parameters.
    pub fn create(
        library: Arc<Library>,
        parameters: &[(String, String)],
    ) -> Result<Instance, PluginError> {
        let host = Box::new(Host::new(library.name().to_owned()));
        let mut hints = abi::Hints {
            struct_size: size_of::<abi::Hints>() as u32,
            ..abi::Hints::default()
        };
        let mut state = std::ptr::null_mut();
        let given = Parameters::new(&host, parameters).map_err(PluginError::Parameters)?;
        let result = match library.plugin().create {
            // SAFETY: all that is pointed to lives during the call, and the
            // host until after the state.
            Some(create) => unsafe {
                create(
                    host.as_raw(),
                    given.as_raw(),
                    &raw mut hints,
                    &raw mut state,
                )
            },
            None => abi::OK,
        };
        if result != abi::OK || host.has_failed() {
            // What failed half-way is the plugin's own to clear up.
            return Err(PluginError::Create(host.failure()));
        }
        let misspelt = given.misspelt();
        drop(given);
        // From here on the state is destroyed whatever happens.
        let mut instance = Instance {
            library,
            host,
            state,
            hints: PluginHints::default(),
        };
        if let Some(message) = misspelt {
            return Err(PluginError::Parameters(message));
        }
        instance.hints = checked_hints(&hints).map_err(PluginError::Hints)?;
        Ok(instance)
    }

    /// # Errors
    /// If the plugin does not have this hook.
    pub fn require(&self, hook: Hook) -> Result<(), PluginError> {
        self.library.require(hook)
    }

    /// What the plugin said of itself.
    pub fn hints(&self) -> PluginHints {
        self.hints
    }

    /// The hook `lose`.
    #[inline]
    pub fn lose(
        &mut self,
        random: &mut Random<'_>,
        packets: &[abi::Packet],
        fates: &mut [u8],
    ) -> Result<(), String> {
        let hook = self.library.plugin().lose;
        self.decide("lose", hook, random, packets, fates)
    }

    /// The hook `delay`.
    #[inline]
    pub fn delay(
        &mut self,
        random: &mut Random<'_>,
        packets: &[abi::Packet],
        delays: &mut [i64],
    ) -> Result<(), String> {
        let hook = self.library.plugin().delay;
        self.decide("delay", hook, random, packets, delays)
    }

    /// The hook `depart`.
    #[inline]
    pub fn depart(
        &mut self,
        random: &mut Random<'_>,
        packets: &[abi::Packet],
        departures: &mut [i64],
    ) -> Result<(), String> {
        let hook = self.library.plugin().depart;
        self.decide("depart", hook, random, packets, departures)
    }

    /// The hook `ready`; `None` if the plugin has none.
    #[inline]
    pub fn ready(&mut self, random: &mut Random<'_>, from: i64) -> Result<Option<i64>, String> {
        let Some(hook) = self.library.plugin().ready else {
            return Ok(None);
        };
        let mut ready = abi::INVALID;
        // SAFETY: the state is the plugin's own, and what is pointed to lives
        // during the call.
        let result = unsafe { hook(self.state, random.as_raw(), from, &raw mut ready) };
        self.after("ready", result, random)?;
        Ok(Some(ready))
    }

    /// The hook `rewrite`. `bytes` holds each packet's bytes, and the packets
    /// point to them.
    #[inline]
    pub fn rewrite(
        &mut self,
        random: &mut Random<'_>,
        packets: &[abi::Packet],
        bytes: &[*mut u8],
    ) -> Result<(), String> {
        debug_assert_eq!(packets.len(), bytes.len());
        let Some(hook) = self.library.plugin().rewrite else {
            return Err("the plugin has no hook rewrite".to_owned());
        };
        let count = packets.len().min(bytes.len());
        // SAFETY: as in `ready`; the caller lends the bytes to be written for
        // the time of the call.
        let result = unsafe {
            let (packets, bytes) = (packets.as_ptr(), bytes.as_ptr());
            hook(self.state, random.as_raw(), packets, count, bytes)
        };
        self.after("rewrite", result, random)
    }

    #[inline]
    fn decide<T>(
        &mut self,
        name: &'static str,
        hook: Option<Decide<T>>,
        random: &mut Random<'_>,
        packets: &[abi::Packet],
        results: &mut [T],
    ) -> Result<(), String> {
        debug_assert_eq!(packets.len(), results.len());
        let Some(hook) = hook else {
            return Err(format!("the plugin has no hook {name}"));
        };
        let count = packets.len().min(results.len());
        // SAFETY: the state is the plugin's own; there are `count` packets
        // and places for results, and all of them live during the call.
        let result = unsafe {
            let (packets, results) = (packets.as_ptr(), results.as_mut_ptr());
            hook(self.state, random.as_raw(), packets, count, results)
        };
        self.after(name, result, random)
    }

    /// Whether a hook that has returned did well.
    #[inline]
    fn after(
        &self,
        name: &'static str,
        result: c_int,
        random: &mut Random<'_>,
    ) -> Result<(), String> {
        let misuse = random.misuse();
        if result == abi::OK && misuse.is_none() && !self.host.has_failed() {
            return Ok(());
        }
        Err(self.fault(name, misuse))
    }

    #[cold]
    fn fault(&self, name: &'static str, misuse: Option<String>) -> String {
        let why = misuse.unwrap_or_else(|| self.host.failure());
        format!("{name}: {why}")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let plugin = self.library.plugin();
        if let (Some(_), Some(destroy)) = (plugin.create, plugin.destroy) {
            // SAFETY: the state that `create` made, once; nothing uses it
            // afterwards.
            unsafe { destroy(self.state) };
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
            "rate_mean_bits_per_second is {rate}, above the most, {}",
            BitRate::MAX
        ));
    }
    Ok(PluginHints {
        delay_mean: time("delay_mean_ns", hints.delay_mean_ns)?,
        delay_least: time("delay_least_ns", hints.delay_least_ns)?,
        rate_mean,
    })
}
