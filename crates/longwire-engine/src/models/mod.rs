//! The models a link is made of, and their registry.
//!
//! A model is one file and one line in its kind's table, which stands at the
//! end of its folder's `mod.rs`. Names, help, defaults, the documentation and
//! the conformance tests follow from the tables.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub mod arrivals;
pub mod corruption;
pub mod delay;
pub mod duplication;
pub mod framing;
pub mod loss;
pub mod mtu;
pub mod order;
mod plugin;
pub mod queue;
pub mod rate;
pub mod reordering;
pub mod rewrite;
pub mod sizes;

use crate::loader::{Loader, NoLoader};
use crate::spec::{Arguments, ModelInfo, SpecError};

/// One line of a kind's table: what a model is called, and how it is made.
#[derive(Debug)]
pub struct Entry<M> {
    /// Name, parameters and help.
    pub info: &'static ModelInfo,
    /// Makes the model from checked arguments.
    pub build: fn(&Arguments<'_>) -> Result<M, SpecError>,
}

/// The models of one kind.
#[derive(Debug)]
pub struct Kind<M: 'static> {
    /// The option's name: `rate`, `delay`, …
    pub name: &'static str,
    /// A bare value that the default model takes.
    pub example: &'static str,
    /// The models; the first one takes bare values.
    pub entries: &'static [Entry<M>],
}

impl<M> Kind<M> {
    /// Makes a model from its text. One that needs a file or a plugin is
    /// refused: [`Kind::parse_with`] has a loader.
    pub fn parse(&self, text: &str) -> Result<M, SpecError> {
        self.parse_with(text, &NoLoader)
    }

    /// Makes a model from its text; files and plugins come from `loader`.
    pub fn parse_with(&self, text: &str, loader: &dyn Loader) -> Result<M, SpecError> {
        self.parse_noting(text, loader, &mut Vec::new())
    }

    /// Makes a model from its text. What is allowed and probably not meant is
    /// added to `doubts`.
    pub fn parse_noting(
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
        if let Some(entry) = self.entries.iter().find(|entry| entry.info.name == name) {
            let arguments = Arguments::parse(entry.info, arguments, loader)?;
            let model = (entry.build)(&arguments)?;
            doubts.extend(arguments.into_doubts());
            return Ok(model);
        }
        let default = &self.entries[0];
        // A word that is no number was meant as a name.
        let is_value = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if !is_value || text.contains(':') || default.info.params.is_empty() {
            return Err(self.unknown(name));
        }
        let arguments = Arguments::parse(default.info, text, loader)?;
        let model = (default.build)(&arguments).map_err(|error| match error {
            // The writer of a plain value need not know its parameter.
            SpecError::Value { source, .. } => SpecError::Plain(source),
            other => other,
        })?;
        doubts.extend(arguments.into_doubts());
        Ok(model)
    }

    /// The arguments of a text of the model `name`, if it is one, and they are
    /// right as far as can be seen without files.
    pub(crate) fn arguments(&self, name: &str, text: &str) -> Option<Arguments<'static>> {
        let (written, arguments) = text.trim().split_once(':')?;
        if written.trim() != name {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.info.name == name)?;
        Arguments::parse(entry.info, arguments, &NoLoader).ok()
    }

    fn unknown(&self, name: &str) -> SpecError {
        let known: Vec<&str> = self.entries.iter().map(|entry| entry.info.name).collect();
        SpecError::UnknownModel {
            kind: self.name,
            name: name.to_string(),
            known: known.join(", "),
            example: self.example,
        }
    }
}

pub use arrivals::KIND as ARRIVALS;
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
pub use sizes::KIND as SIZES;

/// Every registered model: the name of its kind and its description.
pub fn all() -> Vec<(&'static str, &'static ModelInfo)> {
    fn list<M>(kind: &Kind<M>) -> impl Iterator<Item = (&'static str, &'static ModelInfo)> {
        kind.entries.iter().map(|entry| (kind.name, entry.info))
    }
    list(&RATE)
        .chain(list(&FRAMING))
        .chain(list(&QUEUE))
        .chain(list(&LOSS))
        .chain(list(&CORRUPTION))
        .chain(list(&DUPLICATION))
        .chain(list(&DELAY))
        .chain(list(&REORDERING))
        .chain(list(&ORDER))
        .chain(list(&MTU))
        .chain(list(&REWRITE))
        .chain(list(&ARRIVALS))
        .chain(list(&SIZES))
        .collect()
}
