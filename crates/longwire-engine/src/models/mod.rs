//! Link models and their registry.
//!
//! A model is one row in its kind's table (`KIND`), with a constructor. Names, help, defaults,
//! documentation and conformance tests derive from the tables.

use core::fmt;
use core::ops::{Deref, DerefMut};

pub mod corruption;
pub mod delay;
pub mod duplication;
pub mod framing;
pub mod loss;
pub mod mtu;
pub mod order;
pub(crate) mod plugin;
pub mod queue;
pub mod rate;
pub mod reordering;
pub mod rewrite;
pub mod router;

use crate::loader::{Loader, NoLoader};
use crate::prelude::*;
use crate::spec::{Arguments, ModelInfo, Param, SpecError};

/// Names that most model files import.
pub(crate) mod prelude {
    pub(crate) use core::fmt;

    pub(crate) use longwire_units::random::Stream;
    pub(crate) use longwire_units::{BitRate, Bytes, Correlation, Nanos, Packets, Probability};

    pub(crate) use super::{Described, Entry, Kind};
    pub(crate) use crate::frame_context::FrameContext;
    pub(crate) use crate::prelude::*;
    pub(crate) use crate::spec::{Arguments, Param, SpecError, Unit};
    pub(crate) use crate::verdict::DropReason;
}

/// A boxed model with its specification text.
#[derive(Debug)]
pub struct Described<T: ?Sized> {
    text: String,
    pub(crate) model: Box<T>,
}

impl<T: ?Sized> Described<T> {
    /// Creates a model; `text` must parse to the same model.
    pub fn new(text: String, model: Box<T>) -> Described<T> {
        Described { text, model }
    }
}

impl<T: ?Sized> Clone for Described<T>
where
    Box<T>: Clone,
{
    fn clone(&self) -> Described<T> {
        Described::new(self.text.clone(), self.model.clone())
    }
}

impl<T: ?Sized> Deref for Described<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.model
    }
}

impl<T: ?Sized> DerefMut for Described<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.model
    }
}

impl<T: ?Sized> fmt::Display for Described<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One row in a kind's table: a model's description and constructor.
#[derive(Debug)]
pub struct Entry<M> {
    /// Name, parameters and help.
    pub info: ModelInfo,
    /// Builds the model from checked arguments.
    pub build: fn(&Arguments<'_>) -> Result<M, SpecError>,
}

impl<M> Entry<M> {
    /// Creates a row from the model's name, its one-line summary (with the source of the formula),
    /// its parameters and its constructor.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        params: &'static [Param],
        build: fn(&Arguments<'_>) -> Result<M, SpecError>,
    ) -> Entry<M> {
        let info = ModelInfo {
            name,
            summary,
            params,
        };
        Entry { info, build }
    }
}

/// The models of one kind.
#[derive(Debug)]
pub struct Kind<M: 'static> {
    /// Option name, such as `rate` or `delay`.
    pub name: &'static str,
    /// Example value for the default model.
    pub example: &'static str,
    /// Models; the first is the default for values without a model name.
    pub entries: &'static [Entry<M>],
}

impl<M> Kind<M> {
    /// Returns the kind's name with each model's description.
    pub fn infos(&self) -> impl Iterator<Item = (&'static str, &'static ModelInfo)> + use<M> {
        let (name, entries) = (self.name, self.entries);
        entries.iter().map(move |entry| (name, &entry.info))
    }

    /// Parses a model that needs no file or plugin; otherwise, use [`Kind::parse_with`].
    ///
    /// # Errors
    /// The errors of [`Kind::parse_with`], and [`SpecError::File`] if the model needs a file or
    /// plugin.
    pub fn parse(&self, text: &str) -> Result<M, SpecError> {
        self.parse_with(text, &NoLoader)
    }

    /// Parses a model; `loader` provides files and plugins.
    ///
    /// # Errors
    /// [`SpecError::Empty`] for empty text, [`SpecError::UnknownModel`] for an unknown name,
    /// [`SpecError::Plain`] for a plain value that does not parse; otherwise, the errors of
    /// [`Arguments::parse`] and of the model.
    pub fn parse_with(&self, text: &str, loader: &dyn Loader) -> Result<M, SpecError> {
        self.parse_noting(text, loader, &mut Vec::new())
    }

    /// Parses a model and appends warnings to `doubts`.
    pub(crate) fn parse_noting(
        &self,
        text: &str,
        loader: &dyn Loader,
        doubts: &mut Vec<String>,
    ) -> Result<M, SpecError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SpecError::Empty {
                expected: self.example.to_owned(),
            });
        }
        let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let named = self.entries.iter().find(|entry| entry.info.name == name);
        let (entry, arguments) = match named {
            Some(entry) => (entry, arguments),
            None => (&self.entries[0], text),
        };
        // A word that is not a number must be a model name.
        let is_value = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        // A colon within a parameter's value, such as an address, does not end a model name.
        let has_name = text.contains(':') && !name.contains('=');
        if named.is_none() && (!is_value || has_name || entry.info.params.is_empty()) {
            return Err(self.unknown(name));
        }
        let arguments = Arguments::parse(&entry.info, arguments, loader)?;
        let model = (entry.build)(&arguments).map_err(|error| match error {
            // For plain values, the error omits the parameter's name.
            SpecError::Value { source, .. } if named.is_none() => SpecError::Plain(source),
            other => other,
        })?;
        doubts.extend(arguments.into_doubts());
        Ok(model)
    }

    /// Returns the arguments in `text` if it specifies model `name` and is valid as far as can be
    /// checked without files.
    pub(crate) fn arguments(&self, name: &str, text: &str) -> Option<Arguments<'static>> {
        let text = text.trim();
        let (written, arguments) = text.split_once(':').unwrap_or((text, ""));
        if written.trim() != name {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.info.name == name)?;
        Arguments::parse(&entry.info, arguments, &NoLoader).ok()
    }

    /// Returns the error for an unknown name.
    pub(crate) fn unknown(&self, name: &str) -> SpecError {
        let known: Vec<&str> = self.entries.iter().map(|entry| entry.info.name).collect();
        SpecError::UnknownModel {
            kind: self.name,
            name: name.to_string(),
            known: known.join(", "),
            example: self.example,
        }
    }
}

/// Models that follow a schedule, starting at the link's epoch. Plugins may follow one too.
const SCHEDULED: [&str; 9] = [
    "steps",
    "trace",
    "sinusoid",
    "mahimahi",
    "cellreplay",
    "tdm",
    "outage",
    "outages",
    "plugin",
];

/// Whether `text` specifies a model that follows a schedule, starting at the link's epoch.
pub fn is_scheduled(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    SCHEDULED.contains(&name.trim())
}

/// Whether `text` specifies a plugin.
pub(crate) fn is_plugin(text: &str) -> bool {
    text.split(':').next().unwrap_or_default().trim() == plugin::NAME
}

pub use corruption::KIND as CORRUPTION;
pub use delay::KIND as DELAY;
pub use duplication::KIND as DUPLICATION;
pub use framing::KIND as FRAMING;
pub use loss::KIND as LOSS;
pub use mtu::KIND as MTU;
pub use order::KIND as ORDER;
pub use queue::KIND as QUEUE;
pub use rate::KIND as RATE;
pub use reordering::KIND as REORDERING;
pub use rewrite::KIND as REWRITE;
pub use router::KIND as ROUTER;
