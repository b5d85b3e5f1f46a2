//! What models need from outside the engine, which does no I/O: files and
//! plugins, handed in by whoever reads a configuration.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use crate::passing::Passing;
use crate::verdict::DropReason;

/// Reads files and loads plugins for models.
pub trait Loader {
    /// Reads a file from its start to its end, in pieces of any size. `take`
    /// ends the reading with its own message.
    ///
    /// # Errors
    /// What the system says of the file, or what `take` says.
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String>;

    /// Loads a plugin for one hook of one link, with the user's parameters as
    /// they were written.
    ///
    /// # Errors
    /// What was wrong with the file, its version, or its parameters.
    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String>;
}

/// Where a plugin takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Decides which frames are lost.
    Loss,
    /// Decides each frame's propagation delay.
    Delay,
    /// Decides when each frame has left.
    Rate,
    /// Changes frames' bytes.
    Rewrite,
}

/// The user's own code. A hook that it was not loaded for is not called.
///
/// A plugin that fails says so to whoever loaded it, who ends the run; what
/// it returns then does not matter, as long as times do not go back.
pub trait Plugin: fmt::Debug + Send {
    /// What it says of itself.
    fn hints(&self) -> PluginHints {
        PluginHints::default()
    }

    /// Called once, before anything else: schedules count from `epoch`.
    fn start(&mut self, epoch: Nanos);

    /// Whether the frame is lost, and as what.
    fn lose(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> Option<DropReason>;

    /// The frame's propagation delay.
    fn delay(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> Nanos;

    /// The earliest instant, at `from` or after it, at which the link takes
    /// the next frame out of the queue.
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        from
    }

    /// When the last bit of a frame of `wire_bits` has left that is served
    /// from `frame.at` on.
    fn depart(&mut self, frame: &Passing<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos;

    /// Changes the frame's bytes, not its length.
    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream);
}

/// What a plugin says of itself, for default queue limits and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginHints {
    /// The mean of its delays.
    pub delay_mean: Nanos,
    /// None of its delays is shorter.
    pub delay_least: Nanos,
    /// Its mean rate; `None` when it is not known.
    pub rate_mean: Option<BitRate>,
}

/// There are no files and no plugins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoader;

impl Loader for NoLoader {
    fn read(
        &self,
        _path: &str,
        _take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        Err("files cannot be read here".to_owned())
    }

    fn plugin(
        &self,
        _path: &str,
        _hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        Err("plugins cannot be loaded here".to_owned())
    }
}
