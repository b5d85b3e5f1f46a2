//! The model `plugin` of each kind: decisions of user code.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display};

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use super::delay::DelayModel;
use super::loss::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use super::rate::{Rate, RateModel};
use super::rewrite::RewriteModel;
use crate::frame_context::FrameContext;
use crate::loader::{Hook, Loader, Plugin, PluginHints};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Name of the model in every kind.
pub(crate) const NAME: &str = "plugin";

/// Path of the plugin.
const FILE: Param = Param::new(
    "file",
    Unit::File("a shared library that exports longwire_plugin"),
)
.help("shared library built with longwire_plugin.h (docs/plugins.md)");

/// The plugin's own parameters.
const OWN: Param =
    Param::new("key", Unit::Rest).help("other key=value pairs are parameters of the plugin");

/// One hook of a plugin, as specified, with its state.
///
/// A clone has no state: the hooks of one link share a state, which only the link's loader
/// can provide ([`PluginHook::bind`]). Without a state, the hook neither loses, delays nor
/// changes frames.
#[derive(Debug)]
struct PluginHook {
    hook: Hook,
    file: String,
    own: Vec<(String, String)>,
    hints: PluginHints,
    state: Option<Box<dyn Plugin>>,
}

impl Clone for PluginHook {
    fn clone(&self) -> PluginHook {
        PluginHook {
            hook: self.hook,
            file: self.file.clone(),
            own: self.own.clone(),
            hints: self.hints,
            state: None,
        }
    }
}

impl PluginHook {
    /// Loads the plugin that the arguments name.
    fn load(arguments: &Arguments<'_>, hook: Hook) -> Result<PluginHook, SpecError> {
        let state = arguments.plugin(FILE.name, hook)?;
        Ok(PluginHook {
            hook,
            file: arguments.word(FILE.name).unwrap_or_default().into(),
            own: arguments.rest().to_vec(),
            hints: state.hints(),
            state: Some(state),
        })
    }

    /// Binds the hook to its state for one link.
    ///
    /// # Errors
    /// If the plugin cannot be loaded or rejects its parameters.
    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        let state = loader.plugin(&self.file, self.hook, &self.own);
        let state = state.map_err(|message| SpecError::File {
            model: NAME,
            key: FILE.name,
            path: self.file.clone(),
            message,
        })?;
        self.hints = state.hints();
        self.state = Some(state);
        Ok(())
    }

    fn start(&mut self, epoch: Nanos) {
        if let Some(state) = &mut self.state {
            state.start(epoch);
        }
    }

    /// Returns the state; `None` in an unbound clone.
    #[inline]
    fn state(&mut self) -> Option<&mut dyn Plugin> {
        match &mut self.state {
            Some(state) => Some(&mut **state),
            None => None,
        }
    }
}

impl fmt::Display for PluginHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}:{}={}", FILE.name, self.file)?;
        self.own
            .iter()
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

pub(super) const LOSS: Entry<PlacedLoss> = Entry {
    info: &ModelInfo {
        name: NAME,
        summary: "losses from the hook lose of a C plugin",
        params: &[FILE, PLACE, ECN, OWN],
    },
    build: |arguments| {
        let hook = PluginHook::load(arguments, Hook::Loss)?;
        placed(arguments, PluginLoss(hook))
    },
};

#[derive(Clone, Debug)]
struct PluginLoss(PluginHook);

impl LossModel for PluginLoss {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.0.state()?.lose(frame, stream)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) const DELAY: Entry<Box<dyn DelayModel>> = Entry {
    info: &ModelInfo {
        name: NAME,
        summary: "delays from the hook delay of a C plugin",
        params: &[FILE, OWN],
    },
    build: |arguments| {
        let hook = PluginHook::load(arguments, Hook::Delay)?;
        Ok(Box::new(PluginDelay(hook)))
    },
};

#[derive(Clone, Debug)]
struct PluginDelay(PluginHook);

impl DelayModel for PluginDelay {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn draw(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let least = self.least();
        let state = self.0.state();
        // A failed plugin returns no delay. The lower bound holds until the run ends,
        // because callers rely on it.
        state.map_or(least, |state| state.delay(frame, stream).max(least))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn least(&self) -> Nanos {
        self.0.hints.delay_least
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Nanos {
        self.0.hints.delay_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) const RATE: Entry<Rate> = Entry {
    info: &ModelInfo {
        name: NAME,
        summary: "departures from the hooks ready and depart of a C plugin",
        params: &[FILE, OWN],
    },
    build: |arguments| {
        let hook = PluginHook::load(arguments, Hook::Rate)?;
        Ok(Rate::Model(Box::new(PluginRate(hook))))
    },
};

#[derive(Clone, Debug)]
struct PluginRate(PluginHook);

impl RateModel for PluginRate {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        let state = self.0.state();
        state.map_or(from, |state| state.ready(from, stream))
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let state = self.0.state();
        state.map_or(frame.at, |state| state.depart(frame, wire_bits, stream))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Option<BitRate> {
        self.0.hints.rate_mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) const REWRITE: Entry<Box<dyn RewriteModel>> = Entry {
    info: &ModelInfo {
        name: NAME,
        summary: "rewriting by the hook rewrite of a C plugin, which cannot change the length",
        params: &[FILE, OWN],
    },
    build: |arguments| {
        let hook = PluginHook::load(arguments, Hook::Rewrite)?;
        Ok(Box::new(PluginRewrite(hook)))
    },
};

#[derive(Clone, Debug)]
struct PluginRewrite(PluginHook);

impl RewriteModel for PluginRewrite {
    fn start(&mut self, epoch: Nanos) {
        self.0.start(epoch);
    }

    fn bind(&mut self, loader: &dyn Loader) -> Result<(), SpecError> {
        self.0.bind(loader)
    }

    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        if let Some(state) = self.0.state() {
            state.rewrite(at, bytes, stream);
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
