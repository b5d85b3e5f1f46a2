//! Access to files and plugins for models, provided by the caller: the engine does no I/O.

use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use crate::frame_context::FrameContext;
use crate::prelude::*;
use crate::verdict::DropReason;

/// Callback for each piece of a file; an error stops reading.
pub type TakePiece<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), String> + 'a);

/// Reads files and loads plugins for models.
pub trait Loader {
    /// Reads a file sequentially, in pieces of any size. An error from `take` stops reading.
    ///
    /// # Errors
    /// The system's error for the file, or the error from `take`.
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String>;

    /// Starts a new link: hooks loaded from now on share state only with each other.
    fn begin_link(&self) {}

    /// Loads a plugin for one hook of one link, with the user's parameters as written. By default,
    /// a loader has no plugins.
    ///
    /// # Errors
    /// If the file, its version or its parameters are invalid.
    fn plugin(
        &self,
        _path: &str,
        _hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        Err("plugins cannot be loaded in this context".to_owned())
    }
}

/// A plugin hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Decides frame losses.
    Loss,
    /// Decides each frame's propagation delay.
    Delay,
    /// Decides each frame's departure.
    Rate,
    /// Edits frame bytes.
    Rewrite,
}

/// A loaded plugin. Only the hook for which it was loaded is called. The default hooks have no
/// effect.
///
/// A failing plugin notifies its loader, which ends the run. Afterwards, its return values are
/// irrelevant, except that times must not decrease.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// Returns the plugin's hints.
    fn hints(&self) -> PluginHints {
        PluginHints::default()
    }

    /// Called once, before any other hook. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Returns the drop reason if the frame is lost.
    fn lose(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Option<DropReason> {
        None
    }

    /// Returns the frame's propagation delay.
    fn delay(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        Nanos::ZERO
    }

    /// Returns the earliest time, at or after `from`, at which the link dequeues the next
    /// frame.
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        from
    }

    /// Returns the time at which the last bit of a frame of `wire_bits` departs if its service
    /// begins at `frame.at`.
    fn depart(&mut self, frame: &FrameContext<'_>, _wire_bits: u64, _stream: &mut Stream) -> Nanos {
        frame.at
    }

    /// Edits the frame's bytes; the length stays fixed.
    fn rewrite(&mut self, _at: Nanos, _bytes: &mut [u8], _stream: &mut Stream) {}
}

/// Properties that a plugin declares, for default queue limits and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginHints {
    /// Mean delay.
    pub delay_mean: Nanos,
    /// Lower bound on delays.
    pub delay_least: Nanos,
    /// Mean rate; `None` if unknown.
    pub rate_mean: Option<BitRate>,
}

/// A loader that provides no files and no plugins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoader;

impl Loader for NoLoader {
    fn read(&self, _path: &str, _take: TakePiece<'_>) -> Result<(), String> {
        Err("files cannot be read in this context".to_owned())
    }
}
