//! What models need from outside the engine, which does no I/O: files and
//! plugins, handed in by whoever reads a configuration.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::passing::Passing;
use crate::random::Stream;
use crate::units::Nanos;

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
/// it returns then does not matter.
pub trait Plugin: fmt::Debug + Send {
    /// Called once, before anything else: schedules count from `epoch`.
    fn start(&mut self, epoch: Nanos);

    /// Whether the frame is lost.
    fn lose(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> bool;

    /// The frame's propagation delay.
    fn delay(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> Nanos;

    /// When the last bit of a frame of `wire_bits` has left that is served
    /// from `frame.at` on.
    fn depart(&mut self, frame: &Passing<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos;

    /// Changes the frame's bytes, not its length.
    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream);
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
